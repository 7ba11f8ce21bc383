"""Names, aliases, AI-OS's flags, and which layer wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config.config_file import read_config, to_toml
from core.config.fields import FieldSpec
from core.config.layers import (
    DeviceCount,
    Given,
    config_from_given,
    config_from_mapping,
    former_settings,
    load_config,
    normalise,
    with_absolute_paths,
)
from core.config.run_config import RunConfig
from core.errors import ConfigError

LAYERS = FieldSpec("n_layer", "Layers", "int", 4, 1, 128)
PROMPT = FieldSpec("prompt", "Prompt", "str", "Once")


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"batch-size": 4}, {"batch_size": 4}),
        ({"micro_batch_size": 4}, {"batch_size": 4}),
        ({"dataset": "a.txt"}, {"dataset_file": "a.txt"}),
        ({"training": {"steps": 5}, "lr": 0.1}, {"steps": 5, "lr": 0.1}),
        ({"lr": "1e-3"}, {"lr": 0.001}),
        ({"steps": None}, {"steps": None}),
        ({"devices": "cpu:1, cpu:1"}, {"devices": ("cpu:1", "cpu:1")}),
        ({"devices": ["GPU-1"]}, {"devices": ("GPU-1",)}),
        ({"ddp": True}, {"mode": "ddp"}),
        ({"parallel-independent": True}, {"mode": "independent"}),
        ({"ddp": False, "mode": "single"}, {"mode": "single"}),
        ({"cuda-ids": "0,1"}, {"devices": ("cuda:0", "cuda:1")}),
        ({"cuda_ids": [1]}, {"devices": ("cuda:1",)}),
        ({"cuda_ids": 0}, {"devices": ("cuda:0",)}),
        ({"cuda_ids": "0,1", "world_size": 2}, {"devices": ("cuda:0", "cuda:1")}),
        ({"devices": "cpu:2", "world_size": "2"}, {"devices": ("cpu:2",)}),
        ({"devices": "cpu:0,cpu:1", "world_size": 2}, {"devices": ("cpu:0", "cpu:1")}),
        ({"devices": "cuda:0,cpu:2", "world_size": 3}, {"devices": ("cuda:0", "cpu:2")}),
        ({"zero_stage": "zero1"}, {"mode": "zero", "zero_stage": 1}),
        ({"ddp": True, "zero_stage": "zero2"}, {"mode": "zero", "zero_stage": 2}),
        ({"zero-stage": "none", "ddp": True}, {"mode": "ddp", "zero_stage": 1}),
        ({"mode": "zero", "zero_stage": 1}, {"mode": "zero", "zero_stage": 1}),
        ({"options": {"n_layer": 2}}, {"options": {"n_layer": 2}}),
        ({"set": ["n-layer=2"]}, {"options": {"n_layer": 2}}),
        ({"set": "prompt="}, {"options": {"prompt": ""}}),
        ({"n_layer": 2}, {"options": {"n_layer": 2}}),
        ({"run_dir": "x", "runs-dir": "y"}, {}),
    ],
)
def test_what_is_understood(mapping: dict[str, Any], expected: dict[str, Any]) -> None:
    config = config_from_given(normalise(mapping), RunConfig(), (LAYERS, PROMPT))
    assert config == RunConfig(**expected)


@pytest.mark.parametrize(
    ("mapping", "field", "words"),
    [
        ({"stpes": 1}, "stpes", "steps"),
        ({"qqqqqqqq": 1}, "qqqqqqqq", "--help"),
        ({"batch_size": 1, "batch-size": 2}, "batch_size", "given twice"),
        ({"batch_size": 1, "micro_batch_size": 2}, "batch_size", "given twice"),
        ({"a": {"b": {"c": 1}}}, "b", "one level"),
        ({"steps": True}, "steps", "not a number"),
        ({"steps": [1]}, "steps", "not a number"),
        ({"devices": []}, "devices", "is empty"),
        ({"devices": ""}, "devices", "is empty"),
        ({"devices": "cpu:1,,cpu:2"}, "devices", "empty place"),
        ({"devices": [None]}, "devices", "not a device"),
        ({"ddp": True, "parallel_independent": True}, "mode", "both given"),
        ({"mode": "single", "ddp": True}, "mode", "both given"),
        ({"mode": "single", "zero_stage": "zero1"}, "mode", "both given"),
        ({"mode": "zero", "zero_stage": "none"}, "zero_stage", "both given"),
        ({"zero_stage": "zero9"}, "zero_stage", "not a number"),
        ({"cuda_ids": "0", "devices": "cpu:1"}, "devices", "different devices"),
        ({"cuda_ids": "0,1", "world_size": 3}, "world_size", "are 2"),
        ({"world_size": 0}, "world_size", "below 1"),
        ({"set": ["n_layer"]}, "options", "KEY=VALUE"),
        ({"options": {"n_layers": 2}}, "n_layers", "n_layer"),
        ({"options": {"n_layer": 0}}, "n_layer", "below 1"),
    ],
)
def test_what_is_not_understood_is_named(mapping: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from_given(normalise(mapping), RunConfig(), (LAYERS, PROMPT))
    assert caught.value.field == field
    assert words in caught.value.cause + caught.value.next_step


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"batch_size": 4, "options": {"val_batches": 16}}, 64),
        ({"batch_size": "4", "set": ["val_batches=16"]}, 64),
        ({"batch_size": 4, "set": ["val_batches=16"], "val_samples": 7}, 7),
        ({"set": ["val_batches=16"]}, None),
    ],
)
@pytest.mark.parametrize("fields", [(LAYERS,), ()])
def test_micro_batches_of_validation_are_read_as_samples(
    fields: tuple[FieldSpec, ...], mapping: dict[str, Any], expected: int | None
) -> None:
    config = config_from_given(normalise({"recipe": "minigpt", **mapping}), RunConfig(recipe="actv1"), fields)
    assert config.val_samples == expected
    assert "val_batches" not in config.options


def test_a_run_that_went_back_ends_instead() -> None:
    assert normalise({"non_finite": "rollback"}).values == {"non_finite": "stop"}


def test_an_own_recipes_option_of_that_name_stays() -> None:
    given = {"recipe": "/mine/minigpt", "batch_size": 4, "options": {"val_batches": 16}}
    config = config_from_mapping(given)
    assert config.val_samples is None and config.options == {"val_batches": 16}
    with pytest.raises(ConfigError, match="no setting named 'val_batches'"):
        config_from_given(normalise(given), RunConfig(), (LAYERS,))


def test_an_option_that_holds_a_list_is_refused_even_without_a_recipe() -> None:
    with pytest.raises(ConfigError, match="neither a number nor a text"):
        config_from_mapping({"options": {"x": [1]}})


def test_a_value_in_a_file_is_named_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("lr = 0.1\nbatch-size = 0\n", encoding="utf-8", newline="\n")
    with pytest.raises(ConfigError) as caught:
        config_from_mapping({"lr": 0.1, "batch-size": 0}, source=path)
    assert f"{path}, line 2" in caught.value.cause


def test_flags_win_over_the_file() -> None:
    file = normalise({"mode": "independent", "steps": 5, "cuda_ids": "0,1", "options": {"a": 1, "b": 1}})
    flags = normalise({"ddp": True, "devices": "cpu:2", "set": ["b=2"]})
    config = config_from_given(flags.over(file), RunConfig())
    assert (config.mode, config.steps, config.devices) == ("ddp", 5, ("cpu:2",))
    assert config.options == {"a": 1, "b": "2"}


def test_named_devices_make_an_earlier_world_size_moot() -> None:
    file = normalise({"world_size": 2})
    assert normalise({"steps": 1}).over(file).count == DeviceCount(2)
    assert normalise({"devices": "cpu:3"}).over(file).count is None
    assert normalise({"world_size": 4}).over(file).count == DeviceCount(4)


def test_paths_become_absolute_and_names_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.toml").touch()
    given = Given({"dataset_file": "a b.txt", "log_file": "m.jsonl", "run_dir": "r", "recipe": "mine", "model": "gpt2"})
    values = with_absolute_paths(given, tmp_path).values
    assert values == {
        "dataset_file": str(tmp_path / "a b.txt"),
        "log_file": str(tmp_path / "m.jsonl"),
        "run_dir": str(tmp_path / "r"),
        "recipe": str(tmp_path / "mine"),
        "model": "gpt2",
    }
    kept = Given({"dataset_file": "stdlib://", "recipe": "minigpt"})
    assert with_absolute_paths(kept, tmp_path).values == kept.values


@pytest.mark.parametrize(
    ("name", "line"), [("a.toml", "steps = 1.000"), ("a.json", '{"steps": 1.000}'), ("a.yaml", "steps: 1.000")]
)
def test_a_files_number_is_read_as_it_stands_there(name: str, line: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(line, encoding="utf-8")
    with pytest.raises(ConfigError, match="can be read as 1 and as 1000"):
        config_from_mapping(read_config(tmp_path / name), tmp_path / name)
    (tmp_path / name).write_text(line.replace("1.000", "1e3"), encoding="utf-8")
    assert config_from_mapping(read_config(tmp_path / name), tmp_path / name).steps == 1000


def test_paths_are_taken_as_they_are_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_DATA", str(tmp_path))
    folder = tmp_path / "Meine Daten"
    for text in (f'"{folder}"', f" '{folder}' ", folder.as_uri(), f'"{folder.as_uri()}"', "$MY_DATA/Meine Daten"):
        given = with_absolute_paths(normalise({"dataset_file": text, "runs_dir": text}), Path.cwd())
        assert given.values == {"dataset_file": str(folder), "runs_dir": str(folder)}


@pytest.mark.parametrize("text", ["hf://owner/name", "stdlib://", "s3://bucket/x"])
def test_other_addresses_are_no_paths(text: str) -> None:
    assert with_absolute_paths(normalise({"dataset_file": text}), Path.cwd()).values == {"dataset_file": text}


def test_the_word_that_empties_a_setting_is_no_path() -> None:
    given = {"log_file": "none", "deepspeed_config": "none", "model": "none", "stop_at": "none"}
    config = config_from_given(with_absolute_paths(normalise(given), Path.cwd()), RunConfig(stop_at="val_loss=1"))
    assert (config.log_file, config.deepspeed_config, config.model, config.stop_at) == (None, None, None, None)


def test_a_run_of_an_earlier_version_keeps_all_files_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('rankdeck = 1\ndataset_file = "/data"\n', encoding="utf-8")
    assert load_config(tmp_path / "run.toml").data_files == "all"
    (tmp_path / "run.toml").write_text(to_toml(RunConfig()), encoding="utf-8")
    assert load_config(tmp_path / "run.toml").data_files == RunConfig().data_files == "auto"


def test_a_setting_of_an_earlier_version_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    former = ["keep_micro_batch = true", "max_kwh = 2.0", "work_stealing = true", "nodes = '1:2'", "nic = 'eth0'"]
    path.write_text("\n".join([*former, "batch_size = 4"]), encoding="utf-8")
    assert load_config(path).batch_size == 4
    assert former_settings(path) == ["keep_micro_batch", "max_kwh", "work_stealing", "nodes", "nic"]


def test_a_choice_of_an_earlier_version_is_read_but_not_offered(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('gradient_exchange = "powersgd"\n', encoding="utf-8")
    assert load_config(path).gradient_exchange == "powersgd"
    with pytest.raises(ConfigError, match="not one of the choices") as caught:
        RunConfig(gradient_exchange="other")
    assert "powersgd" not in caught.value.next_step

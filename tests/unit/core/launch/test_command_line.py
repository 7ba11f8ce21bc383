"""The flags of `train`: all of the contract's, their values, and the way back to a command."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from core.config.layers import DeviceCount
from core.config.run_config import RunConfig
from core.errors import ConfigError
from core.launch.command_line import (
    TrainRequest,
    add_train_flags,
    command_text,
    request_from_arguments,
    to_command_line,
)
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe, apply_recipe, recipe_defaults

CONTRACT_FLAGS = shlex.split("""--config --recipe --mode --devices --strict --dataset-file --samples-per-block
--dataset-chunk-size --model --steps --epochs --batch-size --global-batch-size --grad-accum-steps --seq-len --lr --seed
--precision --eval-every --checkpoint-every-steps --checkpoint-every-s --run-dir --runs-dir --log-file --set --ddp
--parallel-independent --cuda-ids --world-size --zero-stage --halt-max-steps""")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_train_flags(parser)
    return parser


def _request(*words: str) -> TrainRequest:
    return request_from_arguments(_parser().parse_args(words))


@pytest.fixture
def minigpt() -> Recipe:
    return get_recipe("minigpt")


def test_every_flag_of_the_contract_is_there() -> None:
    words = set(re.findall(r"--[a-z-]+", _parser().format_help()))
    assert sorted(set(CONTRACT_FLAGS) - words) == []


def test_without_flags_the_recipes_defaults_hold(minigpt: Recipe) -> None:
    request = _request()
    assert request.config == RunConfig(**recipe_defaults(minigpt))
    assert (request.run_dir, request.runs_dir, request.count) == (None, None, None)


def test_the_contracts_example_flags() -> None:
    request = _request(
        *shlex.split(
            "--recipe minigpt --mode ddp --devices cpux2 --strict --dataset-file data.txt --samples-per-block 100 "
            "--dataset-chunk-size 10 --steps 5 --batch-size 4 --grad-accum-steps 2 --global-batch-size 16 --seq-len 32 "
            "--lr 1e-3 --seed 7 --precision fp32 --eval-every 5 --checkpoint-every-steps 3 --checkpoint-every-s 9 "
            "--run-dir r --runs-dir rs --log-file m.jsonl --set n_layer=2 --set n_head=2"
        )
    )
    config = request.config
    assert config.dataset_file == str(Path.cwd() / "data.txt")
    assert (config.mode, config.devices, config.strict, config.steps, config.lr) == ("ddp", ("cpux2",), True, 5, 0.001)
    assert (config.batch_size, config.grad_accum_steps, config.global_batch_size) == (4, 2, 16)
    assert (config.options["n_layer"], config.options["n_head"]) == (2, 2)
    assert (request.run_dir, request.runs_dir) == (Path.cwd() / "r", Path.cwd() / "rs")


def test_world_size_is_kept_for_when_the_devices_are_known() -> None:
    assert _request("--world-size", "2").count == DeviceCount(2)


def test_halt_max_steps_needs_a_recipe_that_has_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _request("--halt-max-steps", "1")
    assert "MiniGPT" in caught.value.cause
    folder = tmp_path / "act"
    folder.mkdir()
    (folder / "train.py").touch()
    (folder / "recipe.toml").write_text(
        'format = "rankdeck-recipe"\nversion = 1\nname = "act"\n'
        '[[fields]]\nname = "halt_max_steps"\ntype = "int"\ndefault = 4\n',
        encoding="utf-8",
    )
    config = _request("--recipe", str(folder), "--halt-max-steps", "1").config
    assert config.options == {"halt_max_steps": 1}
    assert config.recipe == str(folder)


def test_a_config_file_and_flags_over_it(tmp_path: Path) -> None:
    path = tmp_path / "my run.toml"
    path.write_text(
        'steps = 7\nlr = 0.5\ndataset-file = "texts"\nrun-dir = "here"\n[options]\nn_layer = 3\n', encoding="utf-8"
    )
    request = _request("--config", str(path), "--lr", "0.25", "--set", "n_head=1")
    config = request.config
    assert (config.steps, config.lr, config.dataset_file) == (7, 0.25, str(tmp_path / "texts"))
    assert (config.options["n_layer"], config.options["n_head"]) == (3, 1)
    assert request.run_dir == tmp_path / "here"


def test_a_recipes_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's host lives in another folder than the person who asked."""
    monkeypatch.chdir(tmp_path)
    words = ["--recipe", "hf_causal_lm", "--set"]
    assert _request(*words, "tokenizer_file=mine/t.json").config.options["tokenizer_file"] == str(
        tmp_path / "mine/t.json"
    )
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "t.json").touch()
    (beside / "run.toml").write_text('recipe = "hf_causal_lm"\ntokenizer_file = "t.json"\n', encoding="utf-8")
    options = _request("--config", str(beside / "run.toml")).config.options
    assert options["tokenizer_file"] == str(beside / "t.json")
    assert "tokenizer_file" not in _request("--recipe", "hf_causal_lm").config.options


def test_what_a_flag_or_a_file_names_is_known_even_as_the_default(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("steps = 7\n", encoding="utf-8")
    assert _request("--config", str(path), "--seq-len", str(RunConfig().seq_len)).named == {"steps", "seq_len"}


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--steps", "-3"], "steps"),
        (["--lr", "fast"], "lr"),
        (["--recipe", "minigtp"], "recipe"),
        (["--set", "n_layers=3"], "n_layers"),
        (["--set", "n_layer=zero"], "n_layer"),
        (["--config", "does-not-exist.toml"], "config"),
        (["--recipe", ""], "recipe"),
    ],
)
def test_a_wrong_flag_names_its_field(words: list[str], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _request(*words)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epochs": 2, "steps": None},
        {"dataset_file": str(Path("a b's.txt").absolute()), "log_file": str(Path("x=y").absolute())},
        {"lr": 1 / 3, "seed": 2**63 - 1, "precision": "bf16"},
        {"options": {"n_layer": 2}},
        {"mode": "zero", "zero_stage": 1},
    ],
)
def test_the_command_asks_for_the_same_config(changes: dict[str, Any], minigpt: Recipe) -> None:
    config = apply_recipe(RunConfig(**recipe_defaults(minigpt)), minigpt).replace(**changes)
    if "options" in changes:
        config = config.replace(options={**recipe_defaults(minigpt)["options"], **changes["options"]})
    words = to_command_line(config)
    assert words[:2] == ["rankdeck", "train"]
    assert _request(*words[2:]).config == config
    assert _request(*shlex.split(command_text(words, windows=False))[2:]).config == config


def test_a_value_that_is_the_common_default_but_not_the_recipes_is_named(minigpt: Recipe) -> None:
    base = RunConfig(**recipe_defaults(minigpt))
    assert base.samples_per_block != RunConfig().samples_per_block
    config = base.replace(steps=None, epochs=1, samples_per_block=RunConfig().samples_per_block)
    words = to_command_line(config, minigpt)
    assert words == shlex.split("rankdeck train --epochs 1 --samples-per-block 100000")
    assert _request(*words[2:]).config == config


def test_the_command_is_short(minigpt: Recipe) -> None:
    config = RunConfig(**recipe_defaults(minigpt)).replace(devices=("cpux2",), steps=40)
    assert to_command_line(config, minigpt) == shlex.split("rankdeck train --devices cpux2 --steps 40")


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("cuda:0,cuda:1", '"cuda:0,cuda:1"'),
        ("C:\\a b\\", '"C:\\a b\\\\"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("C:\\plain\\x.txt", "C:\\plain\\x.txt"),
        ("", '""'),
    ],
)
def test_windows_quoting_works_in_powershell_and_cmd(word: str, quoted: str) -> None:
    assert command_text([word], windows=True) == quoted


def test_any_config_of_a_recipe_comes_back_from_its_command(minigpt: Recipe) -> None:
    pytest.importorskip("hypothesis", reason="hypothesis is not installed")
    from hypothesis import given, settings
    from hypothesis import strategies as st

    numbers = st.one_of(st.none(), st.integers(1, 10**6))
    fields = st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("steps", "epochs", "batch_size", "grad_accum_steps", "global_batch_size"), numbers),
            "eval_every": numbers,
            "checkpoint_every_s": st.one_of(st.none(), st.floats(1.0, 1e7)),
            "lr": st.floats(0.0, 100.0),
            "seq_len": st.integers(2, 10**6),
            "samples_per_block": st.sampled_from([10_000, 100_000, 7]),
            "mode": st.sampled_from(["auto", "single", "ddp", "independent", "zero"]),
            "strict": st.booleans(),
            "devices": st.sampled_from([("auto",), ("cpux2",), ("GPU-1", "GPU-2")]),
            "model": st.one_of(st.none(), st.just("gpt2")),
        },
    )

    @settings(max_examples=60, deadline=None)
    @given(changes=fields)
    def check(changes: dict[str, Any]) -> None:
        config = RunConfig(**recipe_defaults(minigpt)).replace(**changes)
        assert _request(*to_command_line(config, minigpt)[2:]).config == config

    check()

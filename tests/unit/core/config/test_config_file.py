"""Config files are read and written without loss, and what is wrong in one is named with its line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.config.config_file import find_line, read_config, to_json, to_toml
from core.config.layers import config_from_mapping
from core.config.run_config import RunConfig
from core.errors import ConfigError

ODD = RunConfig(
    dataset_file='C:\\Träining data\\"quoted"\ttab \u2028 ☃.txt',
    devices=("GPU-1234", "cpu:2"),
    steps=10**12,
    lr=1e-05,
    eval_every=None,
    checkpoint_every_s=None,
    strict=True,
    env={"NCCL_DEBUG": "INFO", "GREETING": " a b=c 'd' \"é\" ", "EMPTY": ""},
    options={"n_layer": 4, "dropout": 0.1, "bpe": False, "prompt": "", "odd key": "yes"},
)


def to_yaml(config: RunConfig) -> str:
    return yaml.safe_dump(json.loads(to_json(config)), allow_unicode=True)


@pytest.mark.parametrize("config", [RunConfig(), ODD])
@pytest.mark.parametrize(("suffix", "write"), [(".toml", to_toml), (".json", to_json), (".yaml", to_yaml)])
def test_what_is_written_reads_back(
    tmp_path: Path, suffix: str, write: Callable[[RunConfig], str], config: RunConfig
) -> None:
    path = tmp_path / f"run{suffix}"
    path.write_text(write(config), encoding="utf-8", newline="\n")
    assert config_from_mapping(read_config(path)) == config


def test_a_run_of_an_older_version_reads_the_same(tmp_path: Path) -> None:
    """Its lists stood on one line, and control characters were escaped otherwise."""
    text = (
        'rankdeck = 1\nrecipe = "minigpt"\ndevices = ["GPU-1234", "cpu:2"]\n'
        'dataset_file = "C:\\\\Tr\u00e4ining \\"data\\"\\ttab \\u007f.txt"\n'
        'lr = 1e-05\neval_every = ""\nstrict = true\n'
        '\n[env]\nA = "b"\n\n[options]\nn_layer = 4\n"odd key" = "yes"\n'
    )
    config = config_from_mapping(read_config(_write(tmp_path, "old.toml", text)))
    assert config.dataset_file == 'C:\\Träining "data"\ttab \x7f.txt'
    assert (config.devices, config.lr, config.eval_every, config.strict) == (("GPU-1234", "cpu:2"), 1e-05, None, True)
    assert (dict(config.env), dict(config.options)) == ({"A": "b"}, {"n_layer": 4, "odd key": "yes"})
    assert config_from_mapping(read_config(_write(tmp_path, "new.toml", to_toml(config)))) == config


def test_any_text_and_number_survives_toml() -> None:
    pytest.importorskip("hypothesis", reason="hypothesis is not installed")
    from hypothesis import given, settings
    from hypothesis import strategies as st

    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    values = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), text)

    @settings(max_examples=60, deadline=None)
    @given(options=st.dictionaries(text, values, max_size=4), data=text.filter(str.strip))
    def check(options: dict[str, Any], data: str) -> None:
        config = RunConfig(dataset_file=data, options=options)
        document = tomllib.loads(to_toml(config))
        assert document["dataset_file"] == data
        assert document.get("options", {}) == options

    check()


def test_a_file_name_that_is_not_unicode_is_named() -> None:
    with pytest.raises(ConfigError, match="not Unicode") as caught:
        to_toml(RunConfig(dataset_file="bad\udc80name"))
    assert caught.value.field == "dataset_file"


def _write(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.toml", "steps = 1\nlr = = 2\n", "line 2"),
        ("a.json", '{"steps": 1,\n "lr": }', "line 2, column 8"),
        ("a.json", "[1, 2]", "no table of settings"),
        ("a.json", "[" * 100_000, "nested more than 64 levels deep"),
        ("a.ini", "steps=1", "'.ini'"),
        ("a", "steps=1", "nothing"),
        ("a.toml", b"lr = \xff\n", "not UTF-8"),
        ("a.toml", "rankdeck = 2\n", "format 2"),
        ("a.toml", 'rankdeck = "x"\n', "not a format version"),
        ("a.toml", "#" * (1 << 20) + "\n", "larger than 1 MiB"),
        ("a.yaml", "steps: 1\n  lr: [\n", "line 2"),
        ("a.yaml", "a: !!python/object:os.system {}", "cannot be read as YAML"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    path = _write(tmp_path, name, content)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert words in caught.value.cause
    assert str(path) in caught.value.cause
    assert caught.value.next_step


def test_an_empty_yaml_file_sets_nothing(tmp_path: Path) -> None:
    assert read_config(_write(tmp_path, "a.yml", "# nothing yet\n")) == {}


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError):
        read_config(tmp_path)


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    assert read_config(_write(tmp_path, "a.toml", b"\xef\xbb\xbfsteps = 3\r\n")) == {"steps": 3}


def test_the_line_of_a_key(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.toml", "steps = 1\n[more]\ngrad-accum-steps = 0\n")
    assert find_line(path, "grad_accum_steps") == 3
    assert find_line(path, "lr") is None
    assert find_line(_write(tmp_path, "a.json", json.dumps({"lr": 1}, indent=1)), "lr") == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"steps": 5, "lr": 0.1, "steps": 10}'),
        ("a.json", '{"options": {"n_layer": 1, "n_layer": 2}}'),
        ("a.yaml", "steps: 5\nlr: 0.1\nsteps: 10\n"),
        ("a.yaml", "options:\n  n_layer: 1\n  n_layer: 2\n"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"it has '(steps|n_layer)' twice"):
        read_config(tmp_path / name)

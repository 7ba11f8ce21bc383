"""Environment variables of a run: read from flags, files and the window alike; Rankdeck's own are refused by name."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from core.config import RunConfig
from core.config.layers import config_from_mapping
from core.config.run_config import FIELD_BY_NAME
from core.config.variables import read_variables, variable_lines
from core.errors import ConfigError
from core.launch.command_line import add_train_flags, request_from_arguments, to_command_line
from core.recipes.catalog import find_recipes


def parsed(*words: str) -> RunConfig:
    parser = argparse.ArgumentParser()
    add_train_flags(parser)
    return request_from_arguments(parser.parse_args(words)).config


def test_lines_flags_and_tables_say_the_same() -> None:
    lines = "\n  NCCL_DEBUG=INFO\n\nEMPTY=\n"
    expected = {"NCCL_DEBUG": "INFO", "EMPTY": ""}
    assert read_variables(lines) == expected
    assert read_variables(["NCCL_DEBUG=INFO", "EMPTY="]) == expected
    assert read_variables({"NCCL_DEBUG": "INFO", "EMPTY": ""}) == expected
    assert read_variables(variable_lines(expected)) == expected
    assert FIELD_BY_NAME["env"].parse(lines) == expected
    assert RunConfig(env={"OMP_NUM_THREADS": 2}).env == {"OMP_NUM_THREADS": "2"}  # as TOML has a number


def test_flags_are_laid_over_a_file_by_name(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('steps = 5\n[env]\nNCCL_DEBUG = "INFO"\nOMP_NUM_THREADS = 2\n', encoding="utf-8")
    config = parsed("--config", str(file), "--env", "OMP_NUM_THREADS=3", "--env", "MINE=a=b")
    assert dict(config.env) == {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "3", "MINE": "a=b"}
    words = to_command_line(config)
    assert parsed(*words[2:]).env == config.env


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RANK=3", "RANK cannot be set for a run"),
        ("rank=3", "rank cannot be set"),  # Windows does not tell them apart
        ("WORLD_SIZE=3", "devices and mode"),
        ("MASTER_ADDR=10.0.0.1", "Leave it out"),
        ("MASTER_PORT=1", "Leave it out"),
        ("RANKDECK_TOKEN=x", "RANKDECK_TOKEN"),
        ("CUDA_VISIBLE_DEVICES=0", "Choose devices for the run"),
        ("ROLE_RANK=0", "ROLE_RANK"),
        ("NCCL_DEBUG", "NAME=VALUE"),
        ("two words=1", "name"),
        ("=1", "name"),
        ("A=\0", "line break"),
    ],
)
def test_what_cannot_be_given_is_named_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig(env=[text])
    assert words in f"{caught.value.cause} {caught.value.next_step}" and caught.value.field == "env"


@pytest.mark.parametrize("value", [{"A": True}, {"A": ["b"]}, 3, {"A": "b\nc"}])
def test_values_are_texts_of_one_line(value: object) -> None:
    with pytest.raises(ConfigError):
        RunConfig(env=value)


def test_a_script_may_host_its_rendezvous_store_itself() -> None:
    assert parsed("--env", "TORCHELASTIC_USE_AGENT_STORE=False").env == {"TORCHELASTIC_USE_AGENT_STORE": "False"}


def test_a_run_of_an_older_version_keeps_its_scripts_variables() -> None:
    old = {"recipe": "script", "options": {"script": "train.py", "environment": "A=1 B='x y' MASTER_PORT=7"}}
    read = config_from_mapping(old)
    assert dict(read.env) == {"A": "1", "B": "x y"} and dict(read.options) == {"script": "train.py"}
    other = config_from_mapping({"recipe": "clstm_ppo", "options": {"environment": "Pendulum-v1"}})
    assert not other.env and other.options["environment"] == "Pendulum-v1"


def test_no_recipe_has_a_field_for_variables_of_its_own() -> None:
    assert not [recipe.name for recipe in find_recipes() if any(spec.type == "variables" for spec in recipe.fields)]

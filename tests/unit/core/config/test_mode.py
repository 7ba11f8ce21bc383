"""`core.config.mode`: what a mode knows of itself, and that its names are compared nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.config.config_file import to_toml
from core.config.mode import RESOLVED_MODES, Mode, mode_label
from core.config.run_config import FIELDS, RunConfig

ROOT = Path(__file__).parents[4]
NAMES = frozenset(mode.value for mode in Mode)
QUOTED = re.compile("|".join(f"[\"']{name}[\"']" for name in NAMES))
HOMES = ("core/config/mode.py", "workers/recipes/hf_causal_lm/check.py")  # the enum; a reader of a config as JSON


@pytest.mark.parametrize(("mode", "groups"), [(mode, 4 if mode == "independent" else 1) for mode in RESOLVED_MODES])
def test_a_mode_knows_how_many_replica_groups_its_ranks_form(mode: Mode, groups: int) -> None:
    assert mode.replica_groups(4) == groups
    assert mode.group_size(4) * groups == 4


def test_connected_modes_are_those_that_exchange_tensors_at_every_step() -> None:
    assert [mode.value for mode in Mode if mode.is_connected] == ["ddp", "zero", "fsdp"]
    assert [mode.value for mode in Mode if mode.is_sharded] == ["zero", "fsdp"]


def test_a_config_holds_a_mode_and_writes_its_name() -> None:
    config = RunConfig(mode="ddp")  # type: ignore[arg-type]  # as a file gives it
    assert config.mode is Mode.DDP
    assert type(config.as_dict()["mode"]) is str
    assert 'mode = "ddp"' in to_toml(config)


def test_a_name_that_no_mode_has_is_read_as_auto_and_keeps_its_text() -> None:
    assert Mode.read("pipeline") is Mode.AUTO
    assert mode_label("pipeline", "pipeline") == "pipeline"
    assert mode_label("zero") == "ZeRO"


def _texts(node: ast.AST | None) -> set[str]:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def _bare_names(tree: ast.AST) -> Iterator[int]:
    """Lines that compare with a mode's name as a string, or look something up by all of them as keys."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            named = set().union(*(_texts(part) for part in (node.left, *node.comparators)))
            # "auto" is also a value of other settings, so it counts only where a mode is compared with it.
            if named & (NAMES - {"auto"}) or ("auto" in named and "mode" in ast.unparse(node)):
                yield node.lineno
        elif isinstance(node, ast.Dict) and node.keys:
            keys = [_texts(key) for key in node.keys]
            if all(len(key) == 1 and key <= NAMES for key in keys):
                yield node.lineno


def test_no_code_outside_the_enum_compares_with_a_modes_name_as_a_string() -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}"
        for package in ("app", "core", "workers")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.relative_to(ROOT).as_posix() not in HOMES
        if QUOTED.search(text := path.read_text(encoding="utf-8"))  # quicker than to parse all of it
        for line in _bare_names(ast.parse(text))
    ]
    assert found == []


def test_settings_of_some_modes_say_so_in_their_declaration() -> None:
    by_mode = {mode: [spec.name for spec in FIELDS if mode in spec.modes] for mode in RESOLVED_MODES}
    assert by_mode[Mode.SINGLE] == []
    assert by_mode[Mode.FSDP] == ["offload_optimizer", "offload_parameters"]
    assert "sync_every" in by_mode[Mode.INDEPENDENT]
    assert "zero_stage" in by_mode[Mode.ZERO]

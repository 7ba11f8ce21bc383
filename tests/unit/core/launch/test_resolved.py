"""`core.launch.resolved`: what a config comes to on a machine, and that an attempt's file says all of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from core.config.config_file import to_toml
from core.config.layers import load_config
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.launch.resolved import resolve, resolve_on
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from tests.helpers.resolved_run import resolved_run

pytestmark = pytest.mark.windows

LINUX = Platform("linux", "2.13.0+cpu", None, 8)
SLOTS = [Device(f"cpu:{i}", "cpu", i, f"CPU {i}") for i in range(4)]
ROOT = Path(__file__).resolve().parents[4]
BUILT_IN = ("minigpt", "hf_causal_lm", "actv1", "clstm_ppo", "script")


def _config(recipe: str = "minigpt", **changes: object) -> RunConfig:
    return RunConfig(**recipe_defaults(get_recipe(recipe))).replace(**changes)


@pytest.mark.parametrize(
    ("mode", "groups", "batch"),
    [("ddp", 1, "16 = 4 × 4 × 1"), ("independent", 4, "4 = 4 × 1 × 1"), ("auto", 1, "16 = 4 × 4 × 1")],
)
def test_a_config_comes_to_ranks_replica_groups_and_a_batch(mode: str, groups: int, batch: str) -> None:
    run = resolve(_config(mode=mode, devices=("cpux4",), batch_size=4), get_recipe("minigpt"), SLOTS, LINUX)
    assert (run.world_size, run.replica_groups, str(run.batch)) == (4, groups, batch)
    assert run.mode is not Mode.AUTO
    assert run.steps_per_epoch(1600) == 100


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_file_of_an_attempt_reads_back_as_the_complete_config(name: str, tmp_path: Path) -> None:
    config = resolve_on(_config(name), get_recipe(name), SLOTS[:1], LINUX).config
    file = tmp_path / "attempt.toml"
    file.write_text(to_toml(config), encoding="utf-8")
    assert load_config(file) == config


def test_each_decision_of_a_launch_is_made_in_one_module() -> None:
    """Devices, mode, the recipe's defaults and the batch: whoever else needs them is handed a `ResolvedRun`."""
    decisions = {"choose_devices", "choose_mode", "apply_recipe", "resolve_batch"}
    found = set()
    for path in (path for folder in ("app", "core", "workers") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in decisions):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in decisions:
                found.add(path.relative_to(ROOT).as_posix())
    of_old_runs = {"workers/programs/export_main.py", "core/compare/settings.py"}
    judges = {"core/doctor/modes.py", "app/draft/draft_checks_controller.py"}  # of a machine, without a recipe
    assert found == {"core/launch/resolved.py", *of_old_runs, *judges}


def test_one_device_is_no_reason_for_a_note_on_a_mode_that_nobody_chose() -> None:
    cpu, linux = Device("cpu:0", "cpu", 0, "A processor"), Platform("linux", "2.13.0", None, 8)
    for name in ("minigpt", "script"):
        recipe = get_recipe(name)
        config = RunConfig(**recipe_defaults(recipe))
        assert resolve_on(config, recipe, [cpu], linux).choice.notes == ()
    (note,) = resolve_on(RunConfig(mode=Mode.DDP), get_recipe("minigpt"), [cpu], linux).choice.notes
    assert "With one device" in note


def test_only_what_differs_from_the_check_before_is_named() -> None:
    run = resolved_run(RunConfig(), "ddp", 2)
    assert run.note_on(run.decision) == run.note_on(None) == ""
    assert "devices cpu:0, cpu:1 instead of cpu:0." in run.note_on({**run.decision, "devices": "cpu:0"})

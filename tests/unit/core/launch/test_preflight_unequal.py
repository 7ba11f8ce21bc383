"""Settings for unequal devices and for precision: what contradicts itself is refused, what has no effect is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config.run_config import RunConfig
from core.launch.preflight import Checked, check
from core.launch.resolved import resolve
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults

pytestmark = pytest.mark.usefixtures("checked_here")

LINUX = Platform("linux", "2.13.0+cpu", None, 4)
SLOTS = [Device(f"cpu:{n}", "cpu", n, "Processor") for n in range(2)]


def checked(tmp_path: Path, **changes: Any) -> Checked:
    """The check of a run on two slots."""
    text = tmp_path / "text.txt"
    text.write_bytes(b"some text to learn\n" * 1000)
    recipe = get_recipe("minigpt")
    base = {"dataset_file": str(text), "devices": ("cpu:2",), "seq_len": 32}
    config = RunConfig(**recipe_defaults(recipe)).replace(**{**base, **changes})
    return check(resolve(config, recipe, SLOTS, LINUX), tmp_path / "runs")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mode": "independent", "balance": "measured"}, "never wait for each other"),
        ({"mode": "fsdp", "balance": "measured"}, "shared out equally"),
        ({"mode": "zero", "zero_stage": 2, "balance": "measured"}, "shared out equally"),
        ({"mode": "ddp", "precision": "fp16"}, "many times slower"),
    ],
)
def test_what_has_no_effect_here_is_said(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert sum(words in note for note in checked(tmp_path, **changes).notes) == 1


def test_measured_shares_need_no_note_where_they_work(tmp_path: Path) -> None:
    for changes in ({"mode": "ddp"}, {"mode": "zero", "zero_stage": 1}):
        assert not any("balance" in note for note in checked(tmp_path, balance="measured", **changes).notes)

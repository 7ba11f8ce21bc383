"""What pressing Start will do, in a sentence."""

from __future__ import annotations

import pytest

from app.state.draft import Draft, check_draft
from app.state.start_plan import plan_text
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe

pytestmark = pytest.mark.windows
LINUX = Platform("linux", "2.13.0", None, 8)
SLOTS = [Device(f"cpu:{i}", "cpu", i, "A processor") for i in range(2)]


def test_the_plan_says_what_is_trained_on_which_devices() -> None:
    recipe = get_recipe("minigpt")
    checked = check_draft(Draft(mode="zero"), recipe, SLOTS, LINUX)
    assert plan_text(checked, SLOTS) == (
        "Start trains MiniGPT on Python's standard library, on 2 CPU devices with ZeRO. Nothing is downloaded."
    )
    script = check_draft(Draft("script", fields={"script": "a/b.py"}), get_recipe("script"), SLOTS[:1], LINUX)
    assert plan_text(script, SLOTS[:1]) == "Start runs b.py on 1 CPU device."


def test_a_wrong_draft_has_no_plan() -> None:
    checked = check_draft(Draft(fields={"lr": "x"}), get_recipe("minigpt"), SLOTS, LINUX)
    assert plan_text(checked, SLOTS) == "Fix the marked settings first."

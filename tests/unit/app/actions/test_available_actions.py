"""Available actions, and the reason for each that is unavailable."""

from __future__ import annotations

from pathlib import Path

from app.actions.available_actions import ActionContext, available_actions
from app.draft.draft import Draft, check_draft
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

SLOT = Device("cpu:0", "cpu", 0, "A processor")
GOOD = check_draft(Draft(), get_recipe("minigpt"), [SLOT], Platform("linux", "2.13.0", None, 2))
BAD = check_draft(Draft(), get_recipe("minigpt"), [], Platform("linux", "2.13.0", None, 2))


def going(**changes: object) -> RunState:
    return RunState("r", "r", "training", devices=("cpu:0",), step=5, total_steps=10).replace(**changes)


def test_nothing_shown_and_a_good_draft() -> None:
    actions = available_actions(ActionContext(checked=GOOD, ticked=[SLOT]))
    assert actions.start is None and actions.resume is None
    assert actions.stop == "No run is selected." and actions.shown == "No run is selected."


def test_a_wrong_draft_says_what_is_wrong() -> None:
    looking = check_draft(Draft(), get_recipe("minigpt"), [], Platform("linux", "2.13.0", None, 2), looking=True)
    assert available_actions(ActionContext(checked=BAD)).start == "No device is selected."
    assert available_actions(ActionContext()).start == "Checking settings…"
    assert available_actions(ActionContext(checked=looking)).start == "Looking for devices…"


def test_a_device_in_use_is_not_started_on_twice() -> None:
    def why_not(run: RunState, device: Device) -> str:
        context = ActionContext(runs=[RunEntry(Path("live"), run)], checked=GOOD, ticked=[device])
        return available_actions(context).start or ""

    other = Device("GPU-1", "cuda", 0, "A card")
    assert "live is using a selected device" in why_not(going(), SLOT) and not why_not(going(), other)
    assert why_not(going(state="starting", devices=()), other) and not why_not(going(state="stopped"), SLOT)


def test_the_second_stop_ends_at_once_and_there_is_no_third() -> None:
    first = available_actions(ActionContext(shown=going()))
    assert first.stop is None and not first.stop_is_now
    second = available_actions(ActionContext(shown=going(), stop_asked=True))
    assert second.stop is None and second.stop_is_now
    elsewhere = available_actions(ActionContext(shown=going(state="stopping")))
    assert elsewhere.stop_is_now
    third = available_actions(ActionContext(shown=going(), stop_asked=True, end_asked=True))
    assert third.stop == "The run is already stopping."
    assert available_actions(ActionContext(shown=going(state="stopped"), stop_asked=True)).stop is not None


def test_a_stop_says_what_it_does_to_a_script() -> None:
    script = going(recipe="script")
    assert available_actions(ActionContext(shown=script)).stop_tip == "Ask the script to stop"
    assert available_actions(ActionContext(shown=script, stop_asked=True)).stop_tip == "Stop the script immediately"
    assert available_actions(ActionContext(shown=going())).stop_tip == "Save a checkpoint at the next step and stop"


def test_while_something_is_done_nothing_else_is_begun() -> None:
    actions = available_actions(ActionContext(checked=GOOD, ticked=[SLOT], busy="starting a run"))
    assert actions.start == actions.resume == "Rankdeck is starting a run."


def test_a_recipe_is_not_offered_what_it_cannot_make() -> None:
    def exports(recipe: str) -> dict[str, str | None]:
        context = ActionContext(shown=going(recipe=recipe), recipe=get_recipe(recipe))
        return dict(available_actions(context).exports)

    assert exports("hf_causal_lm")["hf"] is None
    minigpt = exports("minigpt")
    assert minigpt["hf"] == "MiniGPT cannot be exported as a Hugging Face folder." and minigpt["safetensors"] is None
    assert exports("script")["safetensors"] is not None and exports("script")["csv"] is None
    assert available_actions(ActionContext(shown=going(recipe="gone"))).exports["hf"] is None
    assert available_actions(ActionContext()).exports["csv"] == "No run is selected."

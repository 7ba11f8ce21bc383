"""Available actions of the window, with the reason for each that is not available now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from core.export import KINDS
from core.recipes.user_script import RECIPE as USER_SCRIPT

if TYPE_CHECKING:
    from app.draft.draft import CheckedDraft
    from core.machine.devices import Device
    from core.recipes.manifest import Recipe
    from core.run_folder.state import RunState
    from core.run_folder.store import RunEntry


@dataclass(frozen=True, slots=True)
class ActionContext:
    """State that decides which actions are available.

    Attributes:
        shown, recipe: The state and recipe of the run in sight; None where they are not known.
        checked: New run's draft; None before it was checked.
        ticked: The selected devices.
        busy: The operation in progress ("starting a run"); empty when there is none.
        stop_asked, end_asked: The window asked the run in sight to stop, and to end at once.
    """

    shown: RunState | None = None
    runs: Sequence[RunEntry] = ()
    name_of: Callable[[Path], str] = attrgetter("name")
    checked: CheckedDraft | None = None
    ticked: Sequence[Device] = ()
    recipe: Recipe | None = None
    busy: str = ""
    stop_asked: bool = False
    end_asked: bool = False


@dataclass(frozen=True, slots=True)
class AvailableActions:
    """The reason why each action and each kind of export is unavailable; None where it is available.

    Attributes:
        shown: Of all that is done with the run in sight.
        stop_is_now: The next Stop ends the run at once, because it was asked before.
        stop_tip: The effect of the next Stop.
    """

    start: str | None
    stop: str | None
    resume: str | None
    shown: str | None
    stop_is_now: bool
    stop_tip: str
    exports: Mapping[str, str | None]


def available_actions(context: ActionContext) -> AvailableActions:
    shown = context.shown
    live = shown is not None and shown.is_live
    stopping = live and (context.stop_asked or (shown is not None and shown.state == "stopping"))
    return AvailableActions(
        start=_why_not_start(context),
        stop=_why_not_stop(context, live),
        resume=f"Rankdeck is {context.busy}." if context.busy else None,
        shown=None if shown is not None else "No run is selected.",
        stop_is_now=stopping,
        stop_tip=_stop_tip(shown, stopping),
        exports={kind: _why_not_export(kind, context) for kind in KINDS},
    )


def _why_not_export(kind: str, context: ActionContext) -> str | None:
    """Exports that the recipe cannot make are not offered; an unknown recipe fails in the attempt."""
    recipe = context.recipe
    if context.shown is None:
        return "No run is selected."
    if recipe is None:
        return None
    if kind == "hf" and kind not in recipe.exports:
        return f"{recipe.title} cannot be exported as a Hugging Face folder."
    if kind in ("hf", "safetensors") and recipe.self_contained:
        return f"{recipe.title} keeps its own weights."
    return None


def _stop_tip(shown: RunState | None, stopping: bool) -> str:
    if shown is not None and shown.recipe == USER_SCRIPT:
        return "Stop the script immediately" if stopping else "Ask the script to stop"
    return "Stop immediately, without saving" if stopping else "Save a checkpoint at the next step and stop"


def _why_not_start(context: ActionContext) -> str | None:
    if context.busy:
        return f"Rankdeck is {context.busy}."
    checked = context.checked
    if checked is None:
        return "Checking settings…"
    if checked.config is None:
        first = next(iter(checked.problems.values()), None)
        return first.cause if first is not None else checked.waiting or "Some settings are missing or invalid."
    return _in_use(context)


def _in_use(context: ActionContext) -> str | None:
    ticked = {device.uuid for device in context.ticked}
    for entry in context.runs:
        state = entry.state
        # A run that is just starting has not said yet which devices it takes.
        if state is not None and state.is_live and (not state.devices or ticked.intersection(state.devices)):
            return f"{context.name_of(entry.path)} is using a selected device. Stop that run, or select other devices."
    return None


def _why_not_stop(context: ActionContext, live: bool) -> str | None:
    if not live:
        return "No run is selected." if context.shown is None else "This run isn't running."
    return "The run is already stopping." if context.end_asked else None

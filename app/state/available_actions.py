"""Which of the window's verbs can be used now; for those that cannot, why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.state.setup_form import CheckedDraft
from core.machine.devices import Device
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


@dataclass(frozen=True, slots=True)
class Situation:
    """All that decides what can be done.

    Attributes:
        shown: State of the run that is shown.
        runs: Every run there is.
        checked: What Setup holds; None before it was looked at.
        ticked: The devices that are ticked.
        busy: What is being done just now ("starting a run"); empty when nothing is.
        stop_asked: The shown run was asked to stop from here.
        end_asked: … and to end at once.
    """

    shown: RunState | None = None
    runs: Sequence[RunEntry] = ()
    checked: CheckedDraft | None = None
    ticked: Sequence[Device] = ()
    busy: str = ""
    stop_asked: bool = False
    end_asked: bool = False


@dataclass(frozen=True, slots=True)
class Verbs:
    """Why each verb cannot be used now; None where it can.

    Attributes:
        stop_is_now: The next Stop ends the run at once, because it was asked before.
        stop_tip: What the next Stop does.
    """

    start: str | None
    stop: str | None
    resume: str | None
    replay: str | None
    measure: str | None
    stop_is_now: bool
    stop_tip: str


def verbs_of(situation: Situation) -> Verbs:
    """What can be done in a situation."""
    shown = situation.shown
    live = shown is not None and shown.is_live
    stopping = live and (situation.stop_asked or (shown is not None and shown.state == "stopping"))
    return Verbs(
        start=_why_not_start(situation),
        stop=_why_not_stop(situation, live),
        resume=f"Rankdeck is {situation.busy}." if situation.busy else None,
        replay=None if shown is not None else "No run is selected.",
        measure=_why_not_measure(situation),
        stop_is_now=stopping,
        stop_tip=_stop_tip(shown, stopping),
    )


def _stop_tip(shown: RunState | None, stopping: bool) -> str:
    if shown is not None and shown.recipe == USER_SCRIPT:
        return "Stop the script immediately" if stopping else "Ask the script to stop"
    return "Stop immediately, without committing" if stopping else "Commit at the next step and stop"


def _why_not_start(situation: Situation) -> str | None:
    if situation.busy:
        return f"Rankdeck is {situation.busy}."
    checked = situation.checked
    if checked is None:
        return "Checking settings…"
    if checked.config is None:
        first = next(iter(checked.problems.values()), None)
        return first.cause if first is not None else "Some settings are missing or invalid."
    return _in_use(situation)


def _why_not_measure(situation: Situation) -> str | None:
    if situation.busy:
        return f"Rankdeck is {situation.busy}."
    if len(situation.ticked) < 2:
        return "Select at least two devices to measure the link between them."
    return _in_use(situation)


def _in_use(situation: Situation) -> str | None:
    ticked = {device.uuid for device in situation.ticked}
    for entry in situation.runs:
        state = entry.state
        # A run that is just starting has not said yet which devices it takes.
        if state is not None and state.is_live and (not state.devices or ticked.intersection(state.devices)):
            return f"{entry.path.name} is using a selected device. Stop that run, or select other devices."
    return None


def _why_not_stop(situation: Situation, live: bool) -> str | None:
    if not live:
        return "No run is selected." if situation.shown is None else "This run isn't running."
    return "The run is already stopping." if situation.end_asked else None

"""Available actions, and the reason for each that is unavailable."""

from __future__ import annotations

from pathlib import Path

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.state.available_actions import ActionContext, available_actions
from app.state.run_summary import summarise
from app.state.setup_form import Draft, check_draft
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


def test_nothing_shown_and_a_good_setup() -> None:
    actions = available_actions(ActionContext(checked=GOOD, ticked=[SLOT]))
    assert actions.start is None and actions.resume is None
    assert actions.stop == "No run is selected." and actions.replay == "No run is selected."


def test_a_wrong_setup_says_what_is_wrong() -> None:
    assert available_actions(ActionContext(checked=BAD)).start == "No device is selected."
    assert available_actions(ActionContext()).start == "Checking settings…"


def test_a_device_in_use_is_not_started_on_twice() -> None:
    runs = [RunEntry(Path("live"), going())]
    assert "live is using a selected device" in (
        available_actions(ActionContext(runs=runs, checked=GOOD, ticked=[SLOT])).start or ""
    )
    other = Device("GPU-1", "cuda", 0, "A card")
    assert available_actions(ActionContext(runs=runs, checked=GOOD, ticked=[other])).start is None
    starting = [RunEntry(Path("live"), going(state="starting", devices=()))]
    assert available_actions(ActionContext(runs=starting, checked=GOOD, ticked=[other])).start is not None
    assert (
        available_actions(
            ActionContext(runs=[RunEntry(Path("p"), going(state="stopped"))], checked=GOOD, ticked=[SLOT])
        ).start
        is None
    )


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
    tips = [
        available_actions(ActionContext(shown=going(recipe="script"), stop_asked=asked)).stop_tip
        for asked in (False, True)
    ]
    assert tips == ["Ask the script to stop", "Stop the script immediately"]
    assert available_actions(ActionContext(shown=going())).stop_tip == "Save a checkpoint at the next step and stop"


def test_while_something_is_done_nothing_else_is_begun() -> None:
    actions = available_actions(ActionContext(checked=GOOD, ticked=[SLOT], busy="starting a run"))
    assert actions.start == actions.resume == "Rankdeck is starting a run."


def test_the_time_left_follows_the_newest_steps() -> None:

    series = RunSeries()
    lines = [f'{{"event":"step","rank":0,"step":{n},"ts":{1000 + 2 * n},"loss":1}}'.encode() for n in range(1, 7)]
    series.apply(parse_lines(lines))
    summary = summarise(going(), series)
    assert summary.step == 6 and summary.seconds_left == 8.0 and summary.share == 0.6
    assert summarise(going(state="stopped"), series).seconds_left is None
    assert summarise(going(total_steps=None), series).share is None
    assert summarise(None, series).word == "idle"


def test_a_scripts_step_and_epoch_are_those_it_printed() -> None:
    assert summarise(going(epoch=2), RunSeries()).epoch == 3, "recipes count from 0"
    assert summarise(going(recipe="script", epoch=2), RunSeries()).epoch == 2
    nothing = summarise(going(recipe="script", epoch=0, step=0), RunSeries())
    assert (nothing.epoch, nothing.step) == (None, None)


def test_what_is_wrong_while_it_trains_is_said_in_place_of_where_it_trains() -> None:
    assert summarise(going(), RunSeries()).detail == "on cpu:0"
    assert summarise(going(phase="Rank 0 may hang: see Alerts"), RunSeries()).detail == "Rank 0 may hang: see Alerts"
    assert summarise(going(state="stopped", phase="merging"), RunSeries()).detail == ""


def test_a_goal_that_ends_the_run_stands_beside_where_it_trains() -> None:
    goal = "600 of 600 episodes"
    summary = summarise(going(goal=goal, total_steps=None), RunSeries())
    assert summary.detail == f"on cpu:0 · {goal}" and summary.share is None and summary.seconds_left is None
    assert summarise(going(state="finished", goal=goal), RunSeries()).detail == goal

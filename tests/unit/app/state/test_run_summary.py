"""What the header shows of a run."""

from __future__ import annotations

import pytest

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.state.run_summary import RATE_ROWS, RunSummary, summarise
from core.run_folder.state import RunState


def going(**changes: object) -> RunState:
    return RunState("r", "r", "training", devices=("cpu:0",), step=5, total_steps=10).replace(**changes)


def trained(*moments: tuple[int, float]) -> RunSeries:
    """A rank that reported these steps at these times."""
    series = RunSeries()
    series.apply(parse_lines([f'{{"event":"step","rank":0,"step":{n},"ts":{ts}}}'.encode() for n, ts in moments]))
    return series


def test_the_time_left_follows_the_newest_steps() -> None:
    series = trained(*((n, 1000.0 + 2 * n) for n in range(1, 7)))
    summary = summarise(going(), series)
    assert summary.step == 6 and summary.seconds_left == 8.0 and summary.share == 0.6
    assert summarise(going(state="stopped"), series).seconds_left is None
    assert summarise(going(total_steps=None), series).share is None
    assert summarise(None, series).word == "idle"


def test_a_scripts_step_and_epoch_are_those_it_printed() -> None:
    assert summarise(going(epoch=2), RunSeries()).epoch == 3, "recipes count from 0"
    assert summarise(going(recipe="script", epoch=2), RunSeries()).epoch == 2
    assert summarise(going(recipe="script"), RunSeries()).step == 5
    assert summarise(going(step=0), RunSeries()).step == 0
    nothing = summarise(going(recipe="script", epoch=0, step=0), RunSeries())
    assert (nothing.epoch, nothing.step) == (None, None)


def test_what_is_wrong_while_it_trains_is_said_in_place_of_where_it_trains() -> None:
    assert summarise(going(), RunSeries()).detail == "on CPU 0"
    assert summarise(going(phase="Rank 0 may hang: see Alerts"), RunSeries()).detail == "Rank 0 may hang: see Alerts"
    assert summarise(going(state="stopped", phase="merging"), RunSeries()).detail == ""


def test_a_goal_that_ends_the_run_stands_beside_where_it_trains() -> None:
    goal = "600 of 600 episodes"
    summary = summarise(going(goal=goal, total_steps=None), RunSeries())
    assert summary.detail == f"on CPU 0 · {goal}" and summary.share is None and summary.seconds_left is None
    assert summarise(going(state="finished", goal=goal), RunSeries()).detail == goal


@pytest.mark.parametrize(
    ("moments", "left"),
    [
        (((8, 100.0), (9, 101.0)), None),  # too few
        (((7, 100.0), (8, 100.0), (9, 100.0)), None),  # no time has passed
        (((9, 100.0), (9, 101.0), (9, 102.0)), None),  # no step was made
        (((7, 100.0), (8, 104.0), (9, 108.0)), 4.0),
        (((10, 100.0), (11, 104.0), (12, 108.0)), 0.0),  # more than it was to train
    ],
)
def test_the_time_left_needs_a_pace(moments: tuple[tuple[int, float], ...], left: float | None) -> None:
    assert summarise(going(), trained(*moments)).seconds_left == left


def test_only_the_newest_steps_make_the_pace() -> None:
    slow = [(n, n * 100.0) for n in range(1, 50)]
    fast = [(50 + n, 5000.0 + n) for n in range(RATE_ROWS)]
    assert summarise(going(total_steps=50 + RATE_ROWS), trained(*slow, *fast)).seconds_left == 1.0


def test_a_run_that_cannot_write_has_no_pace_and_says_why() -> None:
    state = going(trouble={"title": "The disk is full"}, phase="training", tokens_per_s=9.0)
    summary = summarise(state, trained((7, 100.0), (8, 104.0), (9, 108.0)))
    assert (summary.detail, summary.seconds_left, summary.tokens_per_s) == ("The disk is full", None, None)
    assert summarise(state.replace(trouble=None), RunSeries()).tokens_per_s == 9.0


def test_the_step_is_the_newest_that_is_known() -> None:
    ahead = trained((7, 1.0))
    assert summarise(going(), ahead).step == 7
    assert summarise(going(step=9), ahead).step == 9
    assert summarise(going(state="stopped"), ahead).step == 5, "an ended run stands where its state says"


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({}, "on RTX 4090"),
        ({"fallback": "gloo failed"}, "on RTX 4090 alone"),
        ({"devices": ("GPU-1", "cpu:0"), "mode": "independent"}, "independently on 2 devices"),
        ({"devices": ("GPU-1", "cpu:0"), "mode": "ddp"}, "DDP on 2 devices"),
        ({"devices": ()}, ""),
        ({"step": 0}, ""),
        ({"state": "starting"}, ""),
    ],
)
def test_where_it_trains(changes: dict[str, object], detail: str) -> None:
    names = {"GPU-1": "RTX 4090 (24 GB)"}
    assert summarise(going(devices=("GPU-1",)).replace(**changes), RunSeries(), names).detail == detail


@pytest.mark.parametrize(
    ("step", "total", "share"), [(5, 10, 0.5), (12, 10, 1.0), (None, 10, None), (5, 0, None), (0, 10, 0.0)]
)
def test_the_share_that_is_done(step: int | None, total: int | None, share: float | None) -> None:
    assert RunSummary(step=step, total_steps=total).share == share

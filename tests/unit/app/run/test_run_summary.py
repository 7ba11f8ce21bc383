"""What the header shows of a run."""

from __future__ import annotations

import dataclasses

import pytest

from app.run.run_summary import RATE_ROWS, RunSummary, progress_text, seconds_run, summarise
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from core.run_folder.state import RunState
from tests.helpers.synthetic_run import series_of


def going(**changes: object) -> RunState:
    return RunState("r", "r", "training", devices=("cpu:0",), step=5, total_steps=10).replace(**changes)


def trained(*moments: tuple[int, float]) -> RunSeries:
    """A rank that reported these steps at these times."""
    return series_of(*({"event": "step", "rank": 0, "step": n, "ts": ts} for n, ts in moments))


def test_the_time_left_follows_the_newest_steps() -> None:
    series = trained(*((n, 1000.0 + 2 * n) for n in range(1, 7)))
    summary = summarise(going(), series)
    assert summary.step == 6 and summary.seconds_left == 8.0 and summary.share == 0.6
    assert summarise(going(state="stopped"), series).seconds_left is None
    assert summarise(going(total_steps=None), series).share is None


def test_a_scripts_step_and_epoch_are_those_it_printed() -> None:
    assert summarise(going(epoch=2), RunSeries()).epoch == 3, "recipes count from 0"
    assert summarise(going(recipe="script", epoch=2), RunSeries()).epoch == 2
    assert summarise(going(recipe="script"), RunSeries()).step == 5
    assert summarise(going(step=0), RunSeries()).step == 0
    nothing = summarise(going(recipe="script", epoch=0, step=0), RunSeries())
    assert (nothing.epoch, nothing.step) == (None, None)


def test_what_it_is_doing_is_said_until_it_ends() -> None:
    assert summarise(going(), RunSeries()).doing == ""
    assert summarise(going(phase="Rank 0 may hang: see Alerts"), RunSeries()).doing == "Rank 0 may hang: see Alerts"
    assert summarise(going(phase="CPU 0: importing torch"), RunSeries()).doing == "CPU 0: importing torch"
    assert summarise(going(state="stopped", phase="merging"), RunSeries()).doing == ""


@pytest.mark.parametrize("phase", ["stopping", "Stopping…", "stopping."])
def test_a_phase_that_is_the_state_is_not_said_twice(phase: str) -> None:
    assert summarise(going(state="stopping", phase=phase), RunSeries()).doing == ""
    assert summarise(going(state="stopping", phase="saving"), RunSeries()).doing == "Saving"


def test_a_goal_that_ends_the_run_stands_beside_the_progress() -> None:
    goal = "600 of 600 episodes"
    summary = summarise(going(goal=goal, total_steps=None), RunSeries())
    assert progress_text(summary, 0.0) == ("step 5", goal) and summary.share is None
    assert summarise(going(state="finished", goal=goal), RunSeries()).goal == goal


def test_progress_says_how_far_it_is_and_when_it_ends() -> None:
    summary = RunSummary("training", step=502, total_steps=1000, seconds_left=216.0, is_live=True)
    steps, rest = progress_text(summary, 1_780_000_000.0)
    assert steps == "502 / 1,000" and rest.startswith("3 m 36 s left · ends ")
    took = RunSummary("finished", step=1000, total_steps=1000, seconds_run=590.0)
    assert progress_text(took, 0.0) == ("1,000 / 1,000", "took 9 m 50 s")
    assert (
        progress_text(RunSummary("failed", step=502, total_steps=1000, seconds_run=242.0), 0.0)[1] == "after 4 m 02 s"
    )
    assert progress_text(RunSummary(), 0.0) == ("", "")


def test_a_phase_without_a_share_is_no_progress() -> None:
    resumed = RunSummary("starting", doing="CPU 1: importing torch", step=500, total_steps=1000, is_live=True)
    assert resumed.share is None and resumed.is_preparing
    tokenising = dataclasses.replace(resumed, doing="CPU 0: tokenising 45 %")
    assert tokenising.share == 0.45 and not tokenising.is_preparing
    evaluating = dataclasses.replace(resumed, word="training", doing="Evaluating")
    assert evaluating.share == 0.5 and not evaluating.is_preparing, "the steps are made"
    assert not dataclasses.replace(resumed, is_live=False).is_preparing


def test_a_phase_with_a_share_fills_the_bar() -> None:
    summary = summarise(going(state="starting", step=0, phase="CPU 0: preparing data (tokenising, 45 %)"), RunSeries())
    assert summary.share == 0.45
    assert progress_text(summary, 0.0) == ("", "CPU 0: preparing data (tokenising, 45 %)")


def test_pauses_are_no_work() -> None:
    first, second = ({"event": "step", "rank": 0, "step": n, "ts": ts} for n, ts in ((1, 110.0), (2, 510.0)))
    series = series_of({"event": "launch", "ts": 100.0}, first, {"event": "launch", "ts": 500.0}, second)
    assert seconds_run(series) == 10.0 and seconds_run(RunSeries()) is None


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


def test_the_pause_before_a_resume_is_no_part_of_the_pace() -> None:
    series = trained(*((n, 1000.0 + n) for n in range(1, 6)))
    series.apply(parse_lines([b'{"ts":5000.0,"event":"launch","attempt":2,"resumed_from":{"0":5}}']))
    assert summarise(going(), series).seconds_left is None, "no step since"
    later = [f'{{"event":"step","rank":0,"step":{n},"ts":{5000 + 2 * n},"attempt":2}}' for n in range(6, 10)]
    series.apply(parse_lines([line.encode() for line in later]))
    assert summarise(going(), series).seconds_left == 2.0


def test_a_run_that_cannot_write_has_no_pace_and_says_why() -> None:
    state = going(trouble={"title": "The disk is full"}, phase="training")
    summary = summarise(state, trained((7, 100.0), (8, 104.0), (9, 108.0)))
    assert (summary.doing, summary.seconds_left) == ("The disk is full", None)


def test_the_step_is_the_newest_that_is_known() -> None:
    ahead = trained((7, 1.0))
    assert summarise(going(), ahead).step == 7
    assert summarise(going(step=9), ahead).step == 9
    assert summarise(going(state="stopped"), ahead).step == 5, "an ended run stands where its state says"


@pytest.mark.parametrize(
    ("changes", "about"),
    [
        ({}, "MiniGPT · RTX 4090"),
        ({"name": "MiniGPT · stdlib"}, "MiniGPT · stdlib · RTX 4090"),
        ({"fallback": "gloo failed"}, "MiniGPT · RTX 4090 alone"),
        ({"devices": ("GPU-1", "cpu:0"), "mode": "ddp"}, "MiniGPT · DDP on RTX 4090 + CPU 0"),
        ({"devices": ("GPU-1", "GPU-2"), "mode": "ddp"}, "MiniGPT · DDP on 2 × RTX 4090"),
        ({"devices": tuple("ABCD"), "mode": "ddp"}, "MiniGPT · DDP on 4 devices"),
        ({"devices": ()}, "MiniGPT"),
    ],
)
def test_what_a_run_is(changes: dict[str, object], about: str) -> None:
    labels = {"GPU-1": "GPU 0 · RTX 4090", "GPU-2": "GPU 1 · RTX 4090"}
    state = going(devices=("GPU-1",)).replace(**changes)
    assert summarise(state, RunSeries(), labels, "MiniGPT").about == about


def test_what_the_title_says_is_not_said_again() -> None:
    state = going(name="MiniGPT · stdlib").replace(mode="single")
    assert summarise(state, RunSeries(), {}, "MiniGPT", "MiniGPT · stdlib · 12:17").about == "CPU 0"
    summary = summarise(state, RunSeries(), {}, "MiniGPT", "my run")
    assert (summary.about, summary.about_short) == ("MiniGPT · stdlib · CPU 0", "1 CPU")


@pytest.mark.parametrize(
    ("step", "total", "share"), [(5, 10, 0.5), (12, 10, 1.0), (None, 10, None), (5, 0, None), (0, 10, 0.0)]
)
def test_the_share_that_is_done(step: int | None, total: int | None, share: float | None) -> None:
    assert RunSummary(step=step, total_steps=total).share == share

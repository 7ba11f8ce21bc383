"""Tuning with real ranks: what fails in a trial is a row, and no process is left behind."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.errors import ConfigError
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices.device import Device
from core.machine.platform import this_platform
from core.measure.estimate.figures import Baselines, ModelFigures
from core.measure.estimate.free import Free
from core.measure.room import Room
from core.measure.tune.tuned import Tuned
from core.measure.tune.tuner import Pace, Progress, tune
from core.recipes.catalog import get_recipe
from tests.helpers.deepspeed_here import needs_deepspeed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
DEVICES = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(2)]
RECIPE = Path(__file__).parents[4] / "helpers" / "recipes" / "failing_trial"
MB = 1 << 20
LINES = ((0, MB),)
FIGURES = ModelFigures(161, 161, 644, 0, 644, (644,), 2.0, step_lines=LINES, added_lines=LINES, seconds_per_sample=1e-3)
QUICK = Pace(steps_s=0.2, turn_s=0.2, limit_s=3)
ROOM = Room(FIGURES, Baselines({"single": MB}), Free(ram=10_000 * MB))


@pytest.fixture(autouse=True)
def no_process_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "home"))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if child.pid not in before and "workers.programs.measure_main" in child.cmdline():
                left.append(child.pid)
    assert not left


def made(mode: Mode = Mode.DDP, ranks: int = 2, what: str = "", **changes: object) -> ResolvedRun:
    options: dict[str, Any] = {"what": what, "most": 4, "bad_rank": ranks - 1}
    config = RunConfig(recipe=str(RECIPE), mode=mode, batch_size=2, global_batch_size=16 * ranks, options=options)
    return resolve_on(config.replace(**changes), get_recipe(str(RECIPE)), DEVICES[:ranks], this_platform())


def outcomes(found: Tuned) -> dict[int, str]:
    return {result.micro_batch: result.outcome for result in reversed(found.results)}


@pytest.mark.windows
def test_a_larger_micro_batch_is_found_and_compared() -> None:
    on_progress: list[Progress] = []
    found = tune(made(), ROOM, seconds=200, pace=QUICK, on_progress=on_progress.append)
    assert found.results[0].micro_batch == 2
    assert {2, 4, 8, 16} <= outcomes(found).keys()
    assert set(outcomes(found).values()) == {"measured"}
    best = found.changes["batch_size"]  # which of the larger ones is the fastest is chance on a busy machine
    assert best > 2
    assert found.changes["grad_accum_steps"] == 16 // best
    assert found.comparison is not None and found.comparison.gain > 1  # a pass takes 20 ms, however large
    assert found.flags[:4] == ["--batch-size", f"{best}", "--grad-accum-steps", f"{16 // best}"]
    assert "as fast as your settings" in found.sentence
    assert on_progress[-1].doing.startswith("Comparing") and len(on_progress[-1].results) == len(found.results)


@pytest.mark.parametrize(
    ("what", "outcome", "cause"),
    [("memory", "out_of_memory", "Rank 1: "), ("kill", "killed", "The process of rank 1 "), ("hang", "timed_out", "")],
)
def test_what_fails_on_one_rank_is_a_row_and_the_search_goes_on(what: str, outcome: str, cause: str) -> None:
    found = tune(made(what=what), ROOM, seconds=200, pace=QUICK)
    assert outcomes(found)[8] == outcome
    failed = next(result for result in found.results if result.outcome == outcome)
    assert failed.cause.startswith(cause or "Rank ")
    measured = [result for result in found.results if result.is_measured]
    assert {result.micro_batch for result in measured} == {2, 4}
    assert found.comparison is not None and found.comparison.ratios, "ranks make steps again after it"
    assert found.best is not None and found.best.micro_batch < 8  # which is the fastest is chance when busy


def test_settings_that_fail_themselves_give_way_to_smaller_ones() -> None:
    found = tune(made(what="memory", batch_size=8), ROOM, seconds=200, pace=QUICK)
    assert found.results[0].outcome == "out_of_memory"
    micro = found.changes["batch_size"]
    assert micro < 8 and found.changes["grad_accum_steps"] == 16 // micro
    assert "don't work here" in found.sentence


def test_a_recipe_that_cannot_is_said_and_ends_the_search() -> None:
    found = tune(made(what="error", batch_size=8), ROOM, seconds=200, pace=QUICK)
    (only,) = found.results
    assert only.outcome == "failed"
    assert "this recipe cannot" in found.sentence


@pytest.mark.parametrize(
    ("mode", "ranks", "changes"),
    [
        (Mode.SINGLE, 1, {}),
        (Mode.INDEPENDENT, 2, {}),
        (Mode.INDEPENDENT, 2, {"sync_every": 2}),
        (Mode.ZERO, 2, {"zero_stage": 1, "zero_engine": "torch"}),
        (Mode.ZERO, 2, {"zero_stage": 2, "zero_engine": "torch"}),
        (Mode.FSDP, 2, {}),
    ],
)
def test_every_mode_is_tuned_and_goes_on_after_a_shortage(mode: Mode, ranks: int, changes: dict[str, object]) -> None:
    share = 16 if mode == Mode.INDEPENDENT else 16 * ranks
    found = tune(made(mode, ranks, "memory", global_batch_size=share, **changes), ROOM, seconds=200, pace=QUICK)
    assert outcomes(found)[8] == "out_of_memory"
    assert outcomes(found)[4] == outcomes(found)[2] == "measured"
    assert found.best is not None and found.best.micro_batch < 8


@pytest.mark.windows
def test_what_the_estimate_says_is_too_large_is_never_tried() -> None:
    tight = Room(FIGURES, Baselines({"single": MB}), Free(ram=44 * MB))
    found = tune(made(what="kill"), tight, seconds=200, pace=QUICK)  # would be killed, if it were tried
    assert outcomes(found)[8] == "too_large"
    assert "more than 80 % of the" in next(result.cause for result in found.results if result.outcome == "too_large")
    assert "killed" not in outcomes(found).values()


@pytest.mark.windows
def test_stopping_leaves_no_process_and_keeps_what_was_found() -> None:
    stop = threading.Event()

    def on_progress(progress: Progress) -> None:
        if len(progress.results) == 2:
            threading.Timer(0.5, stop.set).start()

    began = time.monotonic()
    found = tune(
        made(what="hang"), ROOM, seconds=300, pace=Pace(0.2, 0.2, 300), on_progress=on_progress, cancelled=stop.is_set
    )
    assert found.is_stopped
    assert [result.micro_batch for result in found.results] == [2, 4]
    assert found.changes == {}
    assert found.sentence.startswith("Stopped early. Fastest so far: micro-batch 4")
    assert time.monotonic() - began < 200  # it did not wait for the hung rank


@needs_deepspeed
def test_what_cannot_be_tuned_is_refused() -> None:
    with pytest.raises(ConfigError, match="DeepSpeed"):
        tune(made(Mode.ZERO, zero_engine="deepspeed"), ROOM)

"""Ranks of real runs that hang: the one that holds up the others is named, and the run ends or restarts as asked."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run, processes, write_text
from tests.helpers.wine import not_under_wine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

RECIPE = str(Path(__file__).parents[2] / "helpers" / "recipes" / "hanging")
# On a crowded machine a rank may be late once more: so the first alert and the first restart are looked at.
LIMIT_S = 4.0


def make_hanging(folder: Path, mode: str, how: str = "forward", **settings: Any) -> RunStore:
    """A run of 40 steps; rank 1 hangs in its 30th, once."""
    text = folder.parent / "text.txt"
    if not text.exists():
        write_text(text)
    options = {"hang_rank": 1, "hang_how": how, "hang_batch": 30}
    if how == "not":
        options = {}
    values = {
        "steps": 40,
        "epochs": 3,
        "checkpoint_every_steps": 4,
        "zero_stage": 2,
        "zero_engine": "torch",
        **settings,
    }
    return make_run(folder, text, mode, 2, recipe=RECIPE, options=options, hang_timeout_s=LIMIT_S, **values)


def log_of(store: RunStore, rank: int) -> str:
    return (store.logs / f"rank{rank}.log").read_text(encoding="utf-8")


def meanwhile(do: Callable[[], None], reached: Callable[[], bool]) -> threading.Thread:
    """Does something once the run has come to the right place."""

    def wait() -> None:
        while not reached():
            time.sleep(0.02)
        do()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("mode", "how", "function"),
    [
        ("ddp", "collective", "sleep_in_backward"),
        ("ddp", "busy", "loop_for_ever"),
        ("zero", "collective", "sleep_in_backward"),
        ("fsdp", "forward", "sleep_in_forward"),
        ("independent", "forward", "sleep_in_forward"),
    ],
)
def test_the_device_that_holds_up_the_others_is_named_and_all_restart(
    mode: str, how: str, function: str, tmp_path: Path
) -> None:
    store = make_hanging(tmp_path / "hung", mode, how, hang_policy="restart")
    assert host(store) == 0, log_of(store, 1)
    alert, *_ = lines(store, "alert")
    assert (alert["kind"], alert["ranks"], alert["certain"]) == ("hang", [1], mode != "independent"), alert
    assert function in alert["places"]["1"]
    assert f"in {function}" in log_of(store, 1)
    restart, *_ = lines(store, "restart")
    assert (restart["number"], restart["of"], restart["title"]) == (1, 3, "CPU 1: The process hangs")
    undisturbed = make_hanging(tmp_path / "undisturbed", mode, "not")
    assert host(undisturbed) == 0
    assert curve(store) == curve(undisturbed)
    assert store.model.read_bytes() == undisturbed.model.read_bytes()


@not_under_wine("does not tell that a process is suspended")
@pytest.mark.parametrize("mode", ["ddp", "independent"])
def test_a_stopped_process_is_named_and_the_run_ends_with_what_is_saved(mode: str, tmp_path: Path) -> None:
    store = make_hanging(tmp_path / "stopped", mode, "not", hang_policy="stop", steps=100_000, epochs=1000)
    stopping = meanwhile(
        lambda: psutil.Process(processes(store)[1].pid).suspend(), lambda: len(lines(store, "commit")) > 3
    )
    assert host(store) == 1
    stopping.join()
    alert, *_ = lines(store, "alert")
    assert (alert["kind"], alert["ranks"], alert["certain"]) == ("hang", [1], True), alert
    assert "its process is stopped" in alert["places"]["1"]
    state = store.state()
    assert state.state == "failed" and state.error is not None
    assert state.error["title"] == "CPU 1: The process hangs" and "Resume the run" in state.error["next_step"]
    assert "Thread" in log_of(store, 0) and "its process is stopped" in log_of(store, 1)


def test_a_rank_that_holds_the_interpreter_lock_is_named_and_leaves_its_stacks(tmp_path: Path) -> None:
    store = make_hanging(tmp_path / "locked", "ddp", "lock", hang_policy="restart")
    assert host(store) == 0
    alert, *_ = lines(store, "alert")
    assert (alert["ranks"], alert["certain"]) == ([1], True) and "does not answer" in alert["places"]["1"]
    assert sys.platform == "win32" or "in sleep_with_the_lock" in log_of(store, 1), "Windows has no signal for it"


def test_a_run_that_is_only_warned_about_continues_as_if_nothing_had_been(tmp_path: Path) -> None:
    store = make_hanging(tmp_path / "warned", "ddp", "not", steps=200)
    stopped = list[psutil.Process]()

    def stop_rank() -> None:
        stopped.append(psutil.Process(processes(store)[1].pid))
        stopped[0].suspend()

    stopping = meanwhile(stop_rank, lambda: len(lines(store, "commit")) > 3)
    going = meanwhile(lambda: stopped[0].resume(), lambda: bool(lines(store, "alert")))
    assert host(store) == 0
    stopping.join()
    going.join()
    alert, *_ = lines(store, "alert")
    assert (alert["ranks"], alert["policy"]) == ([1], "warn")
    undisturbed = make_hanging(tmp_path / "undisturbed", "ddp", "not", steps=200)
    assert host(undisturbed) == 0
    assert store.model.read_bytes() == undisturbed.model.read_bytes()

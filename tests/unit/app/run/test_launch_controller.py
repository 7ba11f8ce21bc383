"""Planning a resume off the GUI thread: right after a stop, while live, and when a newer question overtakes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.run.launch_controller import LaunchController
from app.threads.background import OperationRunner
from core.config.run_config import RunConfig
from core.errors import DatasetError, RunBusyError
from core.launch.resolved import resolve_on
from core.machine.devices.cpu import cpu_slots
from core.machine.platform import Platform
from core.processes import identity
from core.recipes.catalog import get_recipe
from core.resume.planner import ResumePlan
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows


@pytest.fixture
def launching(qtbot: QtBot, runs_dir: Path) -> Iterator[LaunchController]:
    assert qtbot is not None
    runner = OperationRunner()
    made = LaunchController(runner, runs_dir)
    yield made
    runner.close()
    made.deleteLater()
    runner.deleteLater()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_bytes(TEXT)
    return tmp_path


def test_a_run_that_has_just_stopped_can_be_resumed_at_once(
    launching: LaunchController, place: Path, runs_dir: Path, qtbot: QtBot
) -> None:
    store = make_run(place, runs_dir=runs_dir)
    lock = store.lock()  # the host has said "stopped" and is still on its way out
    leaving = threading.Timer(0.4, lock.release)
    leaving.start()
    with qtbot.waitSignal(launching.planned, timeout=10_000) as planned:
        launching.plan(str(store.dir), {}, cpu_slots(2))
    leaving.join()
    assert isinstance(planned.args[0], ResumePlan) and planned.args[0].run_dir == store.dir


def test_a_live_run_is_refused_at_once(launching: LaunchController, place: Path, runs_dir: Path, qtbot: QtBot) -> None:
    store = make_run(place, "training", runs_dir=runs_dir)
    store.write_state(store.stored_state().replace(host=identity.own()))
    with qtbot.waitSignal(launching.plan_failed, timeout=3_000) as failed:
        launching.plan(str(store.dir), {}, cpu_slots(2))
    assert isinstance(failed.args[0], RunBusyError)


def test_a_start_that_is_refused_leaves_nothing_behind(
    launching: LaunchController, place: Path, runs_dir: Path, qtbot: QtBot
) -> None:
    config = RunConfig(dataset_file=str(place / "nowhere.txt"), steps=1)
    run = resolve_on(config, get_recipe("minigpt"), cpu_slots(1), Platform("linux", "2.13.0+cpu", None, 2))
    with qtbot.waitSignal(launching.start_failed, timeout=10_000) as failed:
        launching.start(run)
        assert launching.busy == "starting a run"
    assert isinstance(failed.args[0], DatasetError) and launching.busy == ""
    assert list(runs_dir.iterdir()) == []

"""The real window on simulated GPUs: cards that come, go, hang and keep quiet, looked at as a person does.

Each story runs in a process of its own, started under the simulator (`python -m
tests.runs.app.test_gpus_in_window STORY FOLDER`): its library has to be found before any other, and it stays loaded.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.devices.device_row import DeviceRow
from app.main import Rankdeck
from app.threads.garbage import GarbageCollection
from core.cli.entry import main
from core.run_folder.naming import label
from core.run_folder.record import notes_of
from tests.helpers.host_fixture import FakeRun
from tests.helpers.nvml_sim import NEEDS_SIMULATOR, pretend_cuda_torch, with_gpus
from tests.helpers.settings_file import settings_in

SCENARIOS: Final = Path(__file__).with_name("scenarios")
ADA, CARD = "GPU-6ada6000-1111-4aaa-8aaa-0000000000a1", "GPU-40904090-2222-4bbb-8bbb-0000000000b2"
LIMIT_S: Final = 60.0
pytestmark = [*NEEDS_SIMULATOR, pytest.mark.timeout(300)]  # the first test waits for all stories


def wait_for(reached: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Lets the window live until something is so."""
    deadline = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < deadline, "the window did not get there"
        QApplication.processEvents()
        time.sleep(0.01)


@contextmanager
def window(folder: Path) -> Iterator[Rankdeck]:
    """A window that knows its devices."""
    rankdeck = Rankdeck(settings_in(folder / "settings.ini"), folder / "runs")
    gc.disable()
    GarbageCollection(rankdeck).start()
    rankdeck.open()
    wait_for(lambda: rankdeck.table.is_known and rankdeck.drafting.latest is not None)
    rankdeck.window.actions_.new_run.trigger()
    wait_for(rankdeck.window.new_run.isVisible)
    yield rankdeck
    rankdeck.window.close_now()


def rows(rankdeck: Rankdeck) -> list[DeviceRow]:
    picker = rankdeck.window.new_run.devices
    return [picker.row(device.uuid) for device in rankdeck.table.devices if device.kind == "cuda"]


def ticked(rankdeck: Rankdeck) -> list[str]:
    return [device.uuid for device in rankdeck.window.new_run.devices.selected()]


def devices_of_the_draft(rankdeck: Rankdeck) -> list[str]:
    latest = rankdeck.drafting.latest
    return [] if latest is None or latest.config is None else list(latest.config.devices)


def story_lost(folder: Path) -> None:
    """Unequal cards, one of which is lost and comes back; its tick goes with it."""
    with window(folder) as rankdeck:
        ada, card = rows(rankdeck)
        assert ada.box.text() == "GPU 0 · RTX 6000 Ada Generation" and card.box.text() == "GPU 1 · RTX 4090"
        assert ADA in ada.box.toolTip()
        wait_for(lambda: "61 °C  287 W. memory 12 of 48 GiB" in ada.box.accessibleDescription())
        assert "in use" in ada.status.full_text and "in use" in card.status.full_text
        rankdeck.window.new_run.devices.all.click()
        first = ada.box.accessibleDescription()
        wait_for(lambda: ada.box.accessibleDescription() != first)  # it is live
        wait_for(lambda: devices_of_the_draft(rankdeck) == [ADA, CARD])
        wait_for(lambda: card.is_lost)
        assert "GPU is lost" in card.warning.text() and "GPU is lost" in card.box.toolTip()
        assert not card.box.isEnabled() and not card.box.isChecked() and "– %" in card.box.accessibleDescription()
        assert ada.box.isEnabled() and ada.warning.text() == "" and ticked(rankdeck) == [ADA]
        wait_for(lambda: devices_of_the_draft(rankdeck) == [ADA])
        QTest.keyClick(ada.box, Qt.Key.Key_Space)
        assert ticked(rankdeck) == [] and rankdeck.window.new_run.devices.wished() == [CARD]
        wait_for(lambda: not card.is_lost)
        assert ticked(rankdeck) == [CARD] and card.warning.text() == ""
    with window(folder) as rankdeck:  # and it is remembered
        assert ticked(rankdeck) == [CARD]


def story_hang(folder: Path) -> None:
    """A driver that stops answering: said of each card, none can be ticked, and the window closes all the same."""
    with window(folder) as rankdeck:
        assert len(ticked(rankdeck)) == 2
        wait_for(lambda: all(row.is_lost for row in rows(rankdeck)))
        for row in rows(rankdeck):
            assert "Has not answered for" in row.warning.text() and "has not answered" in row.box.toolTip()
            assert not row.box.isEnabled() and not row.box.isChecked()
        wait_for(lambda: not rankdeck.window.actions_.start.isEnabled())
        assert "No device is selected" in rankdeck.window.actions_.start.toolTip()


def story_cpu_torch(folder: Path) -> None:
    """GPUs that this PyTorch cannot train on: said of each, not ticked, and refused when a person ticks one."""
    with window(folder) as rankdeck:
        sheet = rankdeck.window.new_run
        assert [device.uuid for device in rankdeck.table.devices][:3] == [ADA, CARD, "cpu:0"]
        assert ticked(rankdeck) == ["cpu:0", "cpu:1"] and rankdeck.window.actions_.start.isEnabled()
        ada, card, *_ = rows(rankdeck)
        assert all("own Python interpreter can train on it" in row.box.toolTip() for row in (ada, card))
        assert ada.status.full_text.startswith("needs a CUDA build of PyTorch")
        assert "built for the CPU only" in sheet.devices._notice.text() and sheet.devices.get_cuda.isVisible()
        sheet.devices.get_cuda.click()
        dialog = rankdeck.new_run.install_dialog
        assert dialog is not None and "torch==2.13.0+cu130" in dialog.command.toPlainText()
        dialog.reject()
        ada.box.click()
        wait_for(lambda: not rankdeck.window.actions_.start.isEnabled())
        assert "is built for the CPU only" in sheet.devices.problem.text()
        assert sheet.devices._notice.isHidden()  # it would say the same
        ada.box.click()
        wait_for(lambda: rankdeck.window.actions_.start.isEnabled())


def story_eight(folder: Path) -> None:
    """Eight cards of one name in a run of eight ranks: told apart, all in sight, the legend whole where narrow."""
    with window(folder) as rankdeck:
        names = [row.box.accessibleName() for row in rows(rankdeck)]
        assert len(set(names)) == 8
        run = FakeRun(folder, devices=tuple(str(n) for n in range(8))).behave(steps=10_000, step_s=0.05)
        run.start().wait_for_step(1)
        rankdeck.showing.show(run.run_dir)
        plots = rankdeck.window.plots
        wait_for(lambda: "device/utilisation" in plots.cards.shown)
        busy = plots.cards.frame("device/utilisation").chart
        wait_for(lambda: [one.label for one in busy.legend()] == [f"GPU {n}" for n in range(8)])
        wait_for(lambda: "%" in busy.legend()[7].text)
        run.stop(now=True).end()


def story_own(folder: Path) -> None:
    """A card that a run of ours trains on names the run, in the window and on the command line, and is not ticked."""
    used = folder / "used.txt"
    os.environ["NVMLSIM_PROCFILE"] = str(used)
    with window(folder) as rankdeck:
        ada, card = rows(rankdeck)
        wait_for(lambda: ada.status.full_text.startswith("free") and ada.box.isChecked())
        run = FakeRun(folder, runs_dir=folder / "runs").behave(steps=10_000, step_s=0.05).start().wait_for_step(1)
        host = run.store.state().host
        assert host is not None
        ranks = psutil.Process(host.pid).children(recursive=True)
        used.write_text(f"0 {ranks[-1].pid} 300\n1 {os.getpid()} 9000\n", encoding="utf-8")
        name = label(run.store.state(), notes_of(run.run_dir))
        wait_for(lambda: ada.status.full_text.startswith(f"in use by the run {name}, "))
        assert f"{name} (pid {ranks[-1].pid}): 0.29 GiB" in ada.box.toolTip()
        wait_for(lambda: f"(pid {os.getpid()})" in card.status.full_text)
        printed = StringIO()
        with redirect_stdout(printed):
            assert main(["devices", "--runs-dir", str(folder / "runs")]) == 0
        lines = [line for line in printed.getvalue().splitlines() if "GPU-" in line]
        assert f"the run {name}" in lines[0] and f"(pid {os.getpid()}), 8.8 GiB" in lines[1]
        run.stop(now=True).end()


def story_training(folder: Path) -> None:
    """A run on slots of the processor beside GPUs: both are plotted, each under its name."""
    with window(folder) as rankdeck:
        run = FakeRun(folder).behave(steps=10_000, step_s=0.05).start().wait_for_step(1)
        rankdeck.showing.show(run.run_dir)
        plots = rankdeck.window.plots
        wait_for(lambda: {"device/utilisation", "device/memory"} <= set(plots.cards.shown))
        busy, memory = (plots.cards.frame(f"device/{name}").chart for name in ("utilisation", "memory"))
        wait_for(lambda: [one.label for one in busy.legend()] == ["CPU 0", "CPU 1", "GPU 0", "GPU 1"])
        assert [one.key.partition(" ")[0] for one in busy.legend()[:2]] == ["rank", "rank"]
        wait_for(lambda: "/ 48 GiB" in memory.legend()[2].text)
        wait_for(lambda: bool(busy.source.layers(busy.view(), 100, busy.palette())))
        wait_for(lambda: busy.legend()[3].text == "88 %")
        wait_for(lambda: busy.legend()[3].text == "–")  # lost: not the figure from before
        run.stop(now=True).end()


STORIES: Final[dict[str, Callable[[Path], None]]] = {
    name.removeprefix("story_"): story for name, story in list(globals().items()) if name.startswith("story_")
}


TOLD: Final = (
    ("lost", "lost"),
    ("hang", "hang"),
    ("cpu_torch", "two_workstation"),
    ("eight", "eight"),
    ("own", "two_free"),
    ("training", "lost_for_good"),
)


@pytest.fixture(scope="module")
def endings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, subprocess.CompletedProcess[str]]:
    """How each story that is to be tested ended, by scenario; three at a time, as they mostly wait for their GPUs."""
    wanted = [item.callspec.id for item in request.session.items if item.path == Path(__file__)]
    # Made here, not in the threads: `mktemp`'s first call makes pytest's own folder, and two at once undo each other.
    stories = tmp_path_factory.mktemp("stories")

    def tell(story: str, scenario: str) -> subprocess.CompletedProcess[str]:
        folder = stories / scenario
        folder.mkdir()
        file = SCENARIOS / f"{scenario}.txt"
        return with_gpus(
            str(file) if file.exists() else scenario,
            ["-m", __name__, story, str(folder)],
            env={
                "RANKDECK_HOME": str(folder / "runs"),
                **({} if story == "cpu_torch" else pretend_cuda_torch(folder / "torch")),
            },
            limit_s=2 * LIMIT_S,
        )

    with ThreadPoolExecutor(3) as pool:
        going = {scenario: pool.submit(tell, story, scenario) for story, scenario in TOLD if scenario in wanted}
        return {scenario: ending.result() for scenario, ending in going.items()}


@pytest.mark.parametrize("scenario", [scenario for _, scenario in TOLD])
def test_story(scenario: str, endings: dict[str, subprocess.CompletedProcess[str]]) -> None:
    done = endings[scenario]
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QApplication([])
    os.environ["NVMLSIM_T0"] = str(time.time())  # second 0 of the scenario is now, however long the start took
    STORIES[sys.argv[1]](Path(sys.argv[2]))

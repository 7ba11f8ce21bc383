"""Other machines in the window: a run starts there from New run, is followed, and continues here or there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.launch.resume_dialog import ResumeDialog
from app.main import Rankdeck
from core.config.config_file import to_toml
from core.run_folder.remote_run import read_remote
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run
from tests.helpers.ssh_server import SshServer
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow
from tests.runs.machines.conftest import Command

pytestmark = [OFFSCREEN_NOISE, pytest.mark.spawned, pytest.mark.timeout(300)]
SOON_MS = 60_000


def tick(rankdeck: Rankdeck, uuid: str, qtbot: QtBot) -> None:
    groups = rankdeck.window.new_run.machines
    qtbot.waitUntil(lambda: "box" in groups.groups and uuid in groups.groups["box"].boxes, timeout=SOON_MS)
    groups.groups["box"].boxes[uuid].setChecked(True)


def choose(dialog: ResumeDialog, where: str) -> None:
    """Choose a place as a person does."""
    box = dialog.form.where
    row = next(row for row in range(box.count()) if where in box.itemText(row))
    box.setCurrentIndex(row)
    box.activated.emit(row)


def test_a_run_starts_there_and_a_removed_machine_goes(
    machine: SshServer, command: Command, open_sheet: OpenWindow, runs_dir: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    rankdeck = open_sheet()
    window = rankdeck.window
    script = tmp_path / "zähle.py"
    script.write_text("for step in range(1, 6):\n    print(f'step {step} loss {1 / step}')\n", encoding="utf-8")
    sheet = window.new_run
    sheet.recipe.setCurrentIndex(sheet.recipe.findData("script"))
    sheet.set_field("script", str(script))
    before = sheet.devices.selected()
    tick(rankdeck, "cpu:0", qtbot)
    assert before and sheet.devices.selected() == [] and len(sheet.chosen_devices()) == 1
    sheet.devices.select([before[0].uuid])  # here instead
    assert sheet.machines.chosen() is None
    tick(rankdeck, "cpu:0", qtbot)
    qtbot.waitUntil(window.actions_.start.isEnabled, timeout=SOON_MS)
    window.actions_.start.trigger()
    qtbot.waitUntil(lambda: rankdeck.showing.run_dir is not None, timeout=SOON_MS)
    run_dir = rankdeck.showing.run_dir
    assert run_dir is not None and run_dir.parent == runs_dir
    remote = read_remote(run_dir)
    assert remote is not None and remote.machine == "box"
    store = RunStore(run_dir)
    qtbot.waitUntil(lambda: store.state().state == "finished" and not store.is_locked(), timeout=SOON_MS)
    assert store.metrics.read_bytes() == RunStore(machine.runs / run_dir.name).metrics.read_bytes()

    rankdeck.resuming.resume_run(run_dir)
    dialog = rankdeck.resuming.dialog
    assert dialog is not None and dialog.form.machine == "box"
    qtbot.waitUntil(lambda: "It continues on box, where it is." in dialog.message.toPlainText(), timeout=SOON_MS)
    assert dialog.go.isEnabled() and dialog.form.trust.isHidden(), "the person has started this code"
    choose(dialog, "This computer")
    qtbot.waitUntil(lambda: "It continues on this computer." in dialog.message.toPlainText(), timeout=SOON_MS)
    qtbot.waitUntil(dialog.go.isEnabled, timeout=SOON_MS)
    dialog.go.click()
    qtbot.waitUntil(lambda: store.state().attempt == 2 and store.state().state == "finished", timeout=SOON_MS)
    remote = read_remote(run_dir)
    assert remote is not None and not remote.is_there
    qtbot.waitUntil(lambda: not store.is_locked(), timeout=SOON_MS)

    command("machines", "remove", "box")
    for is_open in (False, True):
        window.actions_.new_run.setChecked(is_open)
    qtbot.waitUntil(lambda: not sheet.machines.groups, timeout=SOON_MS)


def test_received_code_is_asked_about_before_it_is_sent(
    machine: SshServer, open_sheet: OpenWindow, runs_dir: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    ran, store = tmp_path / "ran", make_run(tmp_path, runs_dir=runs_dir, checkpoints=0)
    script = store.dir / "theirs.py"
    script.write_text(f"open({str(ran)!r}, 'w').close()\nprint('step 1 loss 1.0')\n", encoding="utf-8")
    config = store.config().replace(
        recipe="script", options={"script": str(script)}, devices=("cpu:0",), mode="single", env={"MODE": "theirs"}
    )
    store.run_toml.write_text(to_toml(config), encoding="utf-8")
    rankdeck = open_sheet()
    groups = rankdeck.window.new_run.machines.groups
    qtbot.waitUntil(lambda: "box" in groups and "cpu:0" in groups["box"].boxes, timeout=SOON_MS)
    rankdeck.resuming.resume_run(store.dir)
    dialog = rankdeck.resuming.dialog
    assert dialog is not None
    choose(dialog, "box")
    qtbot.waitUntil(lambda: "It continues on box." in dialog.message.toPlainText(), timeout=SOON_MS)
    assert (
        f"starts the program {script}" in dialog.message.toPlainText() and "MODE=theirs" in dialog.message.toPlainText()
    )
    assert dialog.form.trust.isVisible() and not dialog.go.isEnabled()
    assert not ran.exists() and not (machine.runs / store.dir.name).exists(), "nothing was sent"
    dialog.form.trust.click()
    qtbot.waitUntil(dialog.go.isEnabled, timeout=SOON_MS)
    dialog.go.click()
    qtbot.waitUntil(ran.exists, timeout=SOON_MS)
    qtbot.waitUntil(lambda: store.state().state == "finished" and not store.is_locked(), timeout=SOON_MS)

"""Resuming in the window where other machines have part: what ran there continues here, and there again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from core.cli import main
from core.run_folder.remote_run import read_remote
from core.run_folder.store import RunStore
from tests.helpers.ssh_server import SshServer
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow, open_window

__all__ = ["open_window"]
pytestmark = [OFFSCREEN_NOISE, pytest.mark.slow, pytest.mark.timeout(300)]
SOON_MS = 120_000
SMALL = ("--seq-len", "32", "--batch-size", "4", "--set", "n_layer=1", "--set", "n_head=2", "--set", "n_embd=32")


def pick(box: QComboBox, text: str) -> None:
    """Chooses an entry as a person does."""
    row = next(row for row in range(box.count()) if text in box.itemText(row))
    box.setCurrentIndex(row)
    box.activated.emit(row)


def resume(rankdeck: Rankdeck, store: RunStore, where: str, mode: str, steps: int, qtbot: QtBot) -> None:
    """Resumes the run as asked for, and waits for its end."""
    rankdeck.resuming.resume_run(store.dir)
    dialog = rankdeck.resuming.dialog
    assert dialog is not None
    pick(dialog.form.where, where)
    qtbot.waitUntil(lambda: dialog.form.devices.count() > 1, timeout=SOON_MS)  # the devices of that place
    pick(dialog.form.mode, mode)
    dialog.form.steps.setText(str(steps))
    dialog.form.steps.textEdited.emit(str(steps))

    def can_go() -> None:
        """With the plan of what was asked last: those before it may still be answered, and say that the run is done."""
        assert dialog.go.isEnabled(), dialog.notice.text
        assert f"It continues on {where[:1].lower() + where[1:]}." in dialog.message.text()

    qtbot.waitUntil(can_go, timeout=SOON_MS)
    dialog.go.click()
    attempt = store.stored_state().attempt + 1

    def is_over() -> bool:
        state = store.state()
        return state.attempt == attempt and not state.is_live and not store.is_locked()

    qtbot.waitUntil(is_over, timeout=SOON_MS)
    assert store.state().state == "finished", store.state().error


def steps_of(store: RunStore, attempt: int) -> list[int]:
    lines = [json.loads(line) for line in store.metrics.read_text(encoding="utf-8").splitlines()]
    return [line["step"] for line in lines if (line["event"], line["rank"], line["attempt"]) == ("step", 0, attempt)]


def test_a_run_moves_in_any_mode(
    open_window: OpenWindow, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "Eigenes"))
    corpus = tmp_path / "korpus ü.txt"
    corpus.write_text("alpha beta gamma delta epsilon zeta. " * 2000, encoding="utf-8")
    server = SshServer(tmp_path / "drüben")
    try:
        assert main(["machines", "add", "box", *server.add]) == 0
        train = ["train", "--machine", "box", "--dataset-file", f"there://{corpus}", "--steps", "4", *SMALL]
        assert main([*train, "--mode", "ddp", "--devices", "cpux2"]) == 0
        (store,) = [RunStore(path.parent) for path in runs_dir.glob("*/remote.json")]
        origin = RunStore(server.runs / store.dir.name)

        rankdeck = open_window()
        qtbot.waitUntil(lambda: store.dir in rankdeck.runs.model.machines(), timeout=SOON_MS)
        resume(rankdeck, store, "This computer", "FSDP", 7, qtbot)
        assert steps_of(store, 2) == [5, 6, 7] and origin.stored_state().attempt == 1
        remote = read_remote(store.dir)
        assert remote is not None and not remote.is_there

        resume(rankdeck, store, "box", "parallel-independent", 9, qtbot)
        assert steps_of(store, 3) == [8, 9] and store.metrics.read_bytes() == origin.metrics.read_bytes()
        qtbot.waitUntil(lambda: rankdeck.runs.model.machines().get(store.dir) == "box", timeout=SOON_MS)

        rankdeck.resuming.resume_run(store.dir)
        dialog = rankdeck.resuming.dialog
        assert dialog is not None and dialog.form.machine == "box", "it stays there unless another place is chosen"
        dialog.reject()
    finally:
        server.close()

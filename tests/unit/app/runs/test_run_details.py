"""Curves of runs, read beside the GUI thread."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.runs import run_details
from app.runs.run_details import CurveRead, RunDetails
from app.runs.run_list import CURVE, RunList
from app.runs.run_scanner import RunScanner
from core.formatting import byte_size
from core.metrics.curve import POINTS
from core.run_folder.removal import folder_bytes
from tests.helpers.synthetic_run import Shape, write_lines

pytestmark = pytest.mark.windows
SOON_MS = 10_000


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_details, "START_AFTER_S", 0.0)


def test_a_curve_is_read_when_its_row_is_painted(tmp_path: Path, qtbot: QtBot) -> None:
    write_lines(tmp_path / "r", Shape(steps=400), with_columns=True)
    runs = RunList()
    runs.open(tmp_path)
    qtbot.waitUntil(lambda: runs.model.rowCount() == 1, timeout=SOON_MS)
    index = runs.model.index(0)
    assert index.data(CURVE).points == ()
    with qtbot.assertNotEmitted(runs.model.curve_wanted):
        index.data(CURVE)  # painted again before it is read
    qtbot.waitUntil(lambda: len(index.data(CURVE).points) == POINTS, timeout=SOON_MS)
    tip = index.data(Qt.ItemDataRole.ToolTipRole).splitlines()
    assert tip[-1] == f"r · {byte_size(folder_bytes(tmp_path / 'r'))}", "its size on the disk"
    runs.close()


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 4000, b"[" * 9000])
def test_a_damaged_run_has_no_curve_and_holds_nothing_up(tmp_path: Path, qtbot: QtBot, content: bytes) -> None:
    bad = write_lines(tmp_path / "bad", Shape(steps=10), created=2.0)
    good = write_lines(tmp_path / "good", Shape(steps=10), created=1.0)
    bad.metrics.write_bytes(content)
    bad.columns.mkdir(exist_ok=True)
    (bad.columns / "index.json").write_bytes(content)
    details = RunDetails()
    read: dict[str, CurveRead] = {}
    details.curve_read.connect(lambda curve: read.update({curve.path.name: curve}))
    for row in RunScanner(tmp_path).scan():
        details.want_curve(row)
    details.open()
    qtbot.waitUntil(lambda: len(read) == 2, timeout=SOON_MS)
    assert read["bad"].curve.points == () and len(read["good"].curve.points) > 1
    assert read["good"].path == good.dir
    details.close()

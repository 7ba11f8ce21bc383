"""A thousand runs in the list, and folders with anything in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.runs import run_scanner
from app.runs.run_list import RunListModel
from app.runs.run_row import RunRow
from app.runs.run_scanner import RunScanner
from app.runs.runs_panel import RunsPanel
from core.run_folder.notes import NOTES, RunNotes, write_notes
from tests.helpers.synthetic_run import Shape, make_many_runs, write_lines

pytestmark = [
    pytest.mark.windows,
    pytest.mark.timeout(300),  # a thousand folders take a minute to make under Wine
    pytest.mark.qt_log_ignore("This plugin does not support", extend=True),  # the offscreen platform
]
COUNT = 1000
OLD_NS = 10**18


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    make_many_runs(folder, COUNT)
    for path in folder.iterdir():
        os.utime(path, ns=(OLD_NS, OLD_NS))  # a folder that has just changed is looked into at each scan
    return folder


def shown(qtbot: QtBot, rows: list[RunRow]) -> RunsPanel:
    model = RunListModel()
    panel = RunsPanel(model)
    qtbot.addWidget(panel)
    panel.resize(264, 800)
    panel.show()
    model.show(rows)
    QApplication.processEvents()
    return panel


def test_all_are_listed_found_and_chosen(many: Path, qtbot: QtBot) -> None:
    panel = shown(qtbot, RunScanner(many).scan())
    model = panel.view.model()
    assert isinstance(model, RunListModel)
    assert model.rowCount() == COUNT and panel.totals.full_text == "1,000 runs"
    panel.filter.setText("state:failed")
    assert model.rowCount() == len(range(1, COUNT, 3))
    panel.filter.setText("0042")
    assert [row.path.name for row in model.rows()] == ["minigpt-0042"]
    panel.filter.clear()
    panel.view.selectAll()
    assert panel.totals.full_text == "1000 selected" and not panel.compare.isEnabled()


def test_only_rows_in_sight_ask_for_curves(many: Path, qtbot: QtBot) -> None:
    panel = shown(qtbot, [])
    model = panel.view.model()
    assert isinstance(model, RunListModel)
    wanted: list[str] = []
    model.curve_wanted.connect(lambda row: wanted.append(row.path.name))
    model.show(RunScanner(many).scan())
    QApplication.processEvents()
    first = set(wanted)
    assert 5 < len(first) < 30, "a screenful"
    panel.view.scrollToBottom()
    QApplication.processEvents()
    assert len(set(wanted) - first) < 60 and "minigpt-0999" in wanted


def test_a_scan_looks_into_a_few_folders_only(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = RunScanner(many)
    rows = scanner.scan()
    looked: list[str] = []
    real = RunScanner._look
    monkeypatch.setattr(
        RunScanner, "_look", lambda self, folder, *rest: looked.append(folder) or real(self, folder, *rest)
    )
    assert all(new is old for new, old in zip(scanner.scan(), rows, strict=True))
    assert len(looked) == run_scanner.SWEEP
    looked.clear()
    write_notes(many / "minigpt-0500", RunNotes(name="renamed elsewhere"))
    changed = [new for new, old in zip(scanner.scan(), rows, strict=True) if new is not old]
    assert [row.record.label for row in changed] == ["renamed elsewhere"]
    assert len(looked) <= run_scanner.SWEEP + 1
    (many / "minigpt-0500" / NOTES).unlink()


def test_a_file_written_in_place_is_seen_in_the_end(many: Path) -> None:
    scanner = RunScanner(many)
    scanner.scan()
    path = many / "minigpt-0700" / "state.json"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace('"step": 12', '"step": 9 '), encoding="utf-8", newline="\n")
    steps = []
    for _ in range(COUNT // run_scanner.SWEEP + 2):
        steps.append(next(row.entry.state.step for row in scanner.scan() if row.path.name == "minigpt-0700"))
    path.write_text(before, encoding="utf-8", newline="\n")
    assert steps[-1] == 9


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\xfe" * 100, b"{", b"[]", b'{"format": "rankdeck-notes"}', b"9" * 10**6]
)
def test_damaged_files_hide_no_run(tmp_path: Path, qtbot: QtBot, content: bytes) -> None:
    for name in (NOTES, "state.json", "run.toml", "metrics.jsonl"):
        write_lines(tmp_path / f"bad {name}", Shape(steps=5))
        (tmp_path / f"bad {name}" / name).write_bytes(content)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a file").write_bytes(content)
    scanner = RunScanner(tmp_path)
    scanner.wants_settings = True
    panel = shown(qtbot, scanner.scan())
    model = panel.view.model()
    assert model.rowCount() == 4
    for number in range(4):
        assert model.index(number, 0).data(Qt.ItemDataRole.ToolTipRole)
    panel.filter.setText("state:damaged")
    assert [row.path.name for row in panel.view.model().rows()] == ["bad state.json"]  # type: ignore[attr-defined]

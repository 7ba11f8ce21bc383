"""The tabs under the plots: log, ledger, samples, alerts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.run_tabs.alerts_view import AlertsView
from app.run_tabs.config_view import ConfigView
from app.run_tabs.ledger_view import MOST_STRIPS, ROW, LedgerView
from app.run_tabs.log_view import LogView
from app.run_tabs.samples_view import SamplesView
from app.shown_run.ledger_data import LedgerSnapshot
from app.shown_run.rank_log import RankLog
from app.style.tones import muted, tone
from core.compare.settings import ChangedSetting
from core.config.run_config import RunConfig
from core.errors import StateFileError
from core.ledger.progress import BlockProgress, LedgerProgress
from core.machine.devices.names import RankNames
from core.metrics.event_text import event_text
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]


@pytest.fixture
def log(qapp: QApplication) -> Iterator[RankLog]:
    made = RankLog(qapp)
    yield made
    made.close()
    made.deleteLater()


@pytest.fixture
def view(log: RankLog, qtbot: QtBot) -> LogView:
    made = LogView(log)
    qtbot.addWidget(made)
    made.log_chosen.connect(lambda choice: log.open(choice) if choice is not None else log.close())
    made.resize(500, 200)
    made.show()
    return made


def lines(view: LogView) -> list[str]:
    text = view.lines.toPlainText()
    return text.split("\n") if text else []


def test_the_log_follows_until_one_scrolls_up(view: LogView, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    path.write_text("".join(f"line {n}\n" for n in range(500)), encoding="utf-8")
    assert view.page.is_empty
    view.set_sources([path])
    qtbot.waitUntil(lambda: len(lines(view)) == 500)
    bar = view.lines.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    bar.setSliderPosition(10)
    bar.triggerAction(bar.SliderAction.SliderMove)
    assert not view.follow.isChecked()
    with path.open("a", encoding="utf-8") as file:
        file.write("the end\n")
    qtbot.waitUntil(lambda: len(lines(view)) == 501)
    assert bar.value() < bar.maximum()
    view.follow.click()
    assert bar.value() == bar.maximum()


def test_the_log_is_searched_round_and_round(view: LogView, log: RankLog, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    path.write_text("one\nError: two\nthree\nerror: four\n", encoding="utf-8")
    view.set_sources([path, tmp_path / "rank1.log"])
    qtbot.waitUntil(lambda: len(lines(view)) == 4)
    qtbot.keyClicks(view.search, "error")
    assert view.found.text() == "2 lines"
    rows = []
    for _ in range(3):
        assert view.find_next()
        rows.append(view.lines.textCursor().blockNumber())
    assert rows == [1, 3, 1] and not view.follow.isChecked()
    assert view.find_next(backwards=True) and view.lines.textCursor().blockNumber() == 3
    view.search.setText("Error")
    assert view.find_next() and view.find_next() and view.lines.textCursor().blockNumber() == 1, "a capital: as typed"
    view.search.setText("nowhere")
    assert not view.find_next()
    view.choose("rank1.log")
    assert log.choice is not None and log.choice.logs == (tmp_path / "rank1.log",)
    view.show_names(RankNames(("cpu:0", "cpu:1"), {}))
    assert view.source.currentText() == "CPU 1"


def test_the_log_offers_everything_the_host_and_each_device_by_name(view: LogView, tmp_path: Path) -> None:
    view.show_names(RankNames(("GPU-1", "cpu:0"), {"GPU-1": "GPU 0 · RTX 4090"}))
    view.set_sources([tmp_path / "rank0.log", tmp_path / "rank1.log", tmp_path / "host.log"])
    assert [view.source.itemText(row) for row in range(view.source.count())] == [
        "All",
        "Host",
        "GPU 0 · RTX 4090",
        "CPU 0",
    ]
    view.choose("rank1.log")
    assert view.page.note.text() == "This device has printed nothing."


def test_the_log_of_a_run_that_prints_nothing_has_the_hosts_events(view: LogView, qtbot: QtBot, tmp_path: Path) -> None:
    view.set_sources([tmp_path / "rank0.log", tmp_path / "host.log"])
    view.add_events(
        [
            {"event": "commit", "step": 25, "checkpoint": 1, "ts": 1.0},
            {"event": "sample", "step": 25, "text": "once", "ts": 1.0},
            {"event": "failed", "title": "CPU 0: out of memory", "ts": 2.0},
        ]
    )
    view.copy.click()
    first, second = QGuiApplication.clipboard().text().splitlines()
    assert first.endswith("Host  Step 25: checkpoint 1 saved.") and second.endswith("Host  CPU 0: out of memory.")
    assert not view.page.is_empty
    last = view.lines.document().lastBlock().begin()
    colours = []
    while not last.atEnd():
        colours.append(last.fragment().charFormat().foreground().color())
        last += 1
    assert colours[-1] == tone(view.palette(), "error") and colours[0] == muted(view.palette())
    view.clear_events()
    qtbot.waitUntil(lambda: lines(view) == [] and view.page.is_empty)


def test_events_become_lines_once_the_log_is_seen(view: LogView, tmp_path: Path) -> None:
    """A run that is opened has a thousand of them; its charts come first."""
    view.set_sources([tmp_path / "rank0.log", tmp_path / "host.log"])
    view.hide()
    view.add_events([{"event": "commit", "step": 25, "checkpoint": 1, "ts": 1.0}])
    assert lines(view) == []
    view.show()
    view.add_events([{"event": "commit", "step": 50, "checkpoint": 2, "ts": 2.0}])
    assert [line.partition("Host  ")[2] for line in lines(view)] == [
        "Step 25: checkpoint 1 saved.",
        "Step 50: checkpoint 2 saved.",
    ]
    view.hide()
    view.add_events([{"event": "commit", "step": 75, "checkpoint": 3, "ts": 3.0}])
    view.clear_events()
    view.show()
    assert lines(view) == []


def test_data_progress_says_how_far_the_data_is(qtbot: QtBot) -> None:
    view = LedgerView()
    qtbot.addWidget(view)
    view.resize(600, 200)
    view.show()
    assert view.page.is_empty
    progress = LedgerProgress(1, 2, 6, 3, 1, 600, 320, 920, 0, False)
    blocks = (BlockProgress(0, 4, {0: 0, 1: 1}, {2: 0}), BlockProgress(1, 2, {0: 1}, {}))
    view.show_snapshot(LedgerSnapshot(progress, blocks, 7, 100, 400))
    assert not view.page.is_empty
    for part in ("Epoch 2 of 2: 53\N{NO-BREAK SPACE}% trained", "920 samples trained", "checkpoint 7 saved"):
        assert part in view.headline.text()
    assert "Each cell is 100 samples." in view.legend.text()
    assert not view.strip.grab().isNull()
    assert view.resume.text() == (
        "Resume continues from checkpoint 7; 320 of 600 samples of this epoch are done; none is trained twice."
    )
    view.notice.show_error(StateFileError("It is cut in half.", "Move it away."))
    assert view.notice.text == "It is cut in half. Move it away."
    view.show_snapshot(None)
    assert view.page.is_empty and view.notice.isHidden()


def test_of_very_many_blocks_those_that_are_begun_are_shown(qtbot: QtBot) -> None:
    view = LedgerView()
    qtbot.addWidget(view)
    progress = LedgerProgress(0, None, 100_000, 50_000, 1, 10**7, 5 * 10**6, 5 * 10**6, 0, False)
    full = dict.fromkeys(range(10), 0)
    blocks = tuple(BlockProgress(b, 10, full if b < 5000 else {}, {0: 1} if b == 5000 else {}) for b in range(10_000))
    view.show_snapshot(LedgerSnapshot(progress, blocks, None, 100, 1000))
    assert view.strip.height() < 2 * ROW and "5,000 of 10,000 parts of the data are trained" in view.legend.text()
    assert view.resume.text() == "Nothing is saved yet: a resumed run would start from the beginning."
    view.show_snapshot(LedgerSnapshot(progress, blocks[:MOST_STRIPS], None, 100, 1000))
    assert view.strip.height() == MOST_STRIPS * ROW + 4


def samples(first: int, last: int) -> list[dict[str, object]]:
    return [{"step": n, "rank": 0, "ts": float(n), "prompt": "def ", "text": f"f{n}():"} for n in range(first, last)]


@pytest.fixture
def sampled(qtbot: QtBot) -> SamplesView:
    made = SamplesView()
    qtbot.addWidget(made)
    made.show()
    return made


def test_the_newest_sample_is_shown_until_another_is_chosen(sampled: SamplesView) -> None:
    assert sampled.page.is_empty
    sampled.show_samples(samples(1, 81))
    assert sampled.steps.count() == 80 and sampled.steps.item(0).text() == "step 80"
    assert sampled.text.toPlainText() == "step 80\ndef f80():"
    sampled.show_samples(samples(1, 82))
    assert sampled.text.toPlainText().startswith("step 81")
    sampled.steps.setCurrentRow(3)
    sampled.show_samples(samples(1, 83))
    assert sampled.text.toPlainText().startswith("step 78"), "what one reads stays"
    assert sampled.steps.item(0).text() == "step 82"
    sampled.steps.setCurrentRow(0)
    sampled.show_samples(samples(1, 84))
    assert sampled.text.toPlainText().startswith("step 83"), "back on the newest, it is followed again"
    sampled.show_samples([])
    assert sampled.page.is_empty and sampled.text.toPlainText() == ""


def test_older_samples_may_be_read_later_and_another_run_starts_anew(sampled: SamplesView) -> None:
    sampled.show_samples(samples(50, 61))
    sampled.steps.setCurrentRow(5)
    sampled.show_samples(samples(1, 61))
    assert sampled.steps.count() == 60 and sampled.text.toPlainText().startswith("step 55")
    sampled.show_samples([{"step": 7, "rank": 1, "ts": 900.0, "prompt": "", "text": "other"}])
    assert sampled.text.toPlainText() == "step 7 · rank 1\nother"


def test_headings_of_samples_follow_the_theme(sampled: SamplesView) -> None:
    sampled.show_samples([{"step": 1, "rank": 0, "ts": 1.0, "prompt": "", "text": "line\n" * 200}])
    bar = sampled.text.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    place = bar.value()

    def heading() -> QColor:
        return sampled.text.document().firstBlock().begin().fragment().charFormat().foreground().color()

    for colour in ("#aabbcc", "#334455"):
        palette = sampled.palette()
        palette.setColor(QPalette.ColorRole.PlaceholderText, QColor(colour))
        sampled.setPalette(palette)
        QApplication.processEvents()
        assert heading() == QColor(colour)
    assert bar.value() == place > 0, "what one reads stays in sight"


def test_alerts_are_counted_and_said_in_words(qtbot: QtBot) -> None:
    view = AlertsView()
    qtbot.addWidget(view)
    events = [
        {"event": "commit", "ts": 1.0, "rank": -1},
        {"event": "fallback", "ts": 2.0, "rank": -1, "reason": "rank 1 died before the first step"},
        {"event": "failed", "ts": 3.0, "rank": -1, "ranks": [0, 1], "step": 7}
        | {"error": {"title": "No memory", "cause": "It is full."}},
    ]
    with qtbot.waitSignal(view.count_changed) as counted:
        view.show_events(events)
    assert counted.args == [2] and view.table.rowCount() == 2
    texts = [view.table.item(row, 3).text() for row in range(2)]
    assert texts == ["No memory\nIt is full.", "The run continued on one device.\nrank 1 died before the first step."]
    assert view.table.item(0, 1).text() == "7" and view.table.item(1, 1).text() == "–"
    assert [view.table.item(row, 2).text() for row in range(2)] == ["rank 0, rank 1", "all"]
    view.show_names(RankNames(("cpu:0", "cpu:1")))
    assert view.table.item(0, 2).text() == "CPU 0, CPU 1" and view.table.item(0, 2).toolTip().endswith("CPU 1 (rank 1)")
    assert event_text({"event": "alert", "ts": 1.0, "value": 3}, RankNames()) == "value: 3."


def test_an_alert_has_its_title_cause_and_next_step_on_lines_of_their_own(qtbot: QtBot) -> None:
    view = AlertsView()
    qtbot.addWidget(view)
    long = "Look at these samples, and lower the learning rate if it happens again. " * 4
    texts = {"title": "DDD", "cause": "DDD", "next_step": long}
    view.show_events([{"event": "alert", "ts": 2.0, "rank": 0, "step": 12, **texts}])
    view.resize(1200, 300)
    view.show()
    QApplication.processEvents()
    assert view.table.item(0, 3).text().split("\n") == ["DDD", "DDD.", long.strip()]
    wide = view.table.rowHeight(0)
    assert wide >= 3 * view.fontMetrics().height()
    view.resize(500, 300)
    QApplication.processEvents()
    assert view.table.rowHeight(0) > wide, "the text wraps, and its row grows"


def test_config_shows_what_differs_and_folds_the_rest(qtbot: QtBot) -> None:
    view = ConfigView()
    qtbot.addWidget(view)
    view.show()
    config = RunConfig(lr=0.5)
    view.show_config("lr = 0.5\nseed = 0\n", config, (ChangedSetting("lr", "Learning rate", "0.5", "0.001"),))
    view.show_notes(["The model has 840,448 parameters."])
    line = [view.grid.itemAtPosition(0, column) for column in range(3)]
    texts = [item.widget().text() for item in line if item is not None and isinstance(item.widget(), QLabel)]
    assert texts == ["Learning rate", "0.5", "default 0.001"] and view.title.text().startswith("1 setting differs")
    assert view.notes.isVisible() and not view.text.isVisible()
    view.whole.click()
    assert view.text.isVisible() and view.text.toPlainText() == "lr = 0.5\nseed = 0\n"
    view.show_config("seed = 0\n", RunConfig(), ())
    assert view.title.text() == "Every setting has its default" and view.grid.itemAtPosition(0, 0) is None
    view.show_config(None)
    assert view.page.is_empty and not view.copy.isEnabled()

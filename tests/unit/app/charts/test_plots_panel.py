"""The plots of a run as a person uses them: real widgets, real events, a real run folder."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QExposeEvent, QImage, QMouseEvent, QPalette, QRegion, QWheelEvent, QWindow
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.charts import plots_panel
from app.charts.plots_panel import SLOWEST_S, PlotsPanel
from app.plots.chart import Chart
from app.plots.curve_options import MOST_RANKS
from app.plots.drawing import Line, Points
from app.run_data.metrics_batch import MetricsBatch
from app.shown_run.run_data import RunData
from app.style.palette import plot_colours, rank_colour
from core.processes import identity
from core.run_folder.store import RunStore
from tests.helpers.event_counts import EventCounts
from tests.helpers.synthetic_run import START_S, UUIDS, Shape, make_run, write_events, write_lines
from tests.unit.app.charts.conftest import Make, settle

# Qt's offscreen platform says so whenever a window's least size changes.
pytestmark = [pytest.mark.windows, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return write_lines(tmp_path / "run", Shape(steps=400), state="training", host=identity.own())


def append(store: RunStore, first: int, last: int, **values: float | None) -> None:
    lines = [
        {"ts": START_S + 0.05 * s, "event": "step", "rank": r, "attempt": 1, "step": s, "loss": 1.0} | values
        for s in range(first, last + 1)
        for r in range(2)
    ]
    with store.metrics.open("ab") as file:
        file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


class Drawn:
    """Counts how often a panel drew what was new, from now on."""

    def __init__(self, panel: PlotsPanel) -> None:
        self.times = 0
        panel.drawn.connect(self._count)

    def _count(self) -> None:
        self.times += 1


def paints_from_now_on(panel: PlotsPanel, qtbot: QtBot) -> list[EventCounts]:
    """Counts how often each chart is painted, once what was asked for before is on the screen."""
    counts = [EventCounts(chart.viewport(), QEvent.Type.Paint) for chart in panel.cards.charts()]
    seen = -1
    while seen != (seen := sum(count.total for count in counts)):
        qtbot.wait(50)
    for count in counts:
        count.counts.clear()
    return counts


def image(chart: Chart) -> QImage:
    return chart.grab().toImage()


def colours_in(chart: Chart) -> set[int]:
    picture = image(chart)
    return {picture.pixel(x, y) for x in range(0, picture.width(), 2) for y in range(picture.height())}


def turn(chart: Chart, x: float, notches: int, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    place = QPointF(x, chart.plot_area().center().y())
    event = QWheelEvent(
        place, chart.mapToGlobal(place), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton, modifiers,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(chart.viewport(), event)


def point_at(chart: Chart, place: QPointF) -> None:
    """As if the pointer were there; the real one may be anywhere on a person's screen."""
    nothing = Qt.MouseButton.NoButton
    event = QMouseEvent(
        QEvent.Type.MouseMove, place, chart.mapToGlobal(place), nothing, nothing, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(chart.viewport(), event)


def send(chart: Chart, place: QPointF, *events: tuple[QEvent.Type, Qt.MouseButton, Qt.MouseButton]) -> None:
    """Mouse events: of which kind, by which button, with which one held."""
    for kind, button, held in events:
        event = QMouseEvent(kind, place, chart.mapToGlobal(place), button, held, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(chart.viewport(), event)


def double_click(chart: Chart, place: QPointF) -> None:
    left, nothing = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
    up = (QEvent.Type.MouseButtonRelease, left, nothing)
    send(
        chart, place, (QEvent.Type.MouseButtonPress, left, left), up, (QEvent.Type.MouseButtonDblClick, left, left), up
    )


def drag(chart: Chart, start: QPointF, end: QPointF, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
    """Pressed, moved and released, as a mouse tells it: with the button held in each move."""
    nothing = Qt.MouseButton.NoButton
    send(chart, start, (QEvent.Type.MouseMove, nothing, nothing), (QEvent.Type.MouseButtonPress, button, button))
    send(chart, (start + end) / 2, (QEvent.Type.MouseMove, nothing, button))
    send(chart, end, (QEvent.Type.MouseMove, nothing, button), (QEvent.Type.MouseButtonRelease, button, nothing))


def has_hue(drawn: set[int], wanted: QColor) -> bool:
    """Whether one of the pixels has a colour, or nearly: lines are antialiased."""
    return any(abs(QColor(c).hue() - wanted.hue()) < 8 and QColor(c).saturation() > 100 for c in drawn)


def test_a_run_is_drawn_from_its_first_point_to_its_last(panel: PlotsPanel) -> None:
    assert (panel.time_axis.low, panel.time_axis.high) == (1, 400)
    palette = panel.palette()
    drawn = colours_in(panel.loss.chart)
    assert has_hue(drawn, rank_colour(0, palette)) and has_hue(drawn, rank_colour(1, palette))
    assert panel.loss.chart.scale is not None
    devices = panel.cards.frame("device/utilisation").chart.legend()
    assert [reading.label for reading in devices] == [f"{uuid[:12]}…" for uuid in UUIDS]


def test_cards_are_aligned_and_named(panel: PlotsPanel) -> None:
    charts = panel.cards.charts()
    assert len({chart.plot_area().left() for chart in charts}) == 1
    left = {chart.mapTo(panel, QPoint(0, 0)).x() for chart in charts}
    assert len(left - {panel.cards.frame("step_time").chart.mapTo(panel, QPoint(0, 0)).x()}) == 1
    for frame in panel.frames():
        assert frame.readout.accessibleName() and frame.chart.accessibleName()
        assert frame.readout.geometry().bottom() < frame.chart.geometry().top(), "never on its curves"
    for control in (panel.smoothing.slider, panel.mean_box, panel.axis_box, panel.fit_button, panel.log_box):
        assert control.accessibleName() and control.toolTip()


def test_what_a_person_zoomed_does_not_jump(make_panel: Make, run: RunStore, qtbot: QtBot) -> None:
    panel = make_panel(run)
    chart = panel.loss.chart
    drag(chart, QPointF(chart.x_of(300), 60), QPointF(chart.x_of(400), 60))
    assert panel.time_axis.low == pytest.approx(300, abs=2)
    shown, scale = (panel.time_axis.low, panel.time_axis.high), chart.scale
    append(run, 401, 500, loss=50.0)
    qtbot.waitUntil(lambda: panel._data.series.rank(0).rows == 500)
    settle(qtbot, panel)
    assert (panel.time_axis.low, panel.time_axis.high) == shown
    assert chart.scale == scale
    double_click(chart, QPointF(200, 60))
    assert (panel.time_axis.low, panel.time_axis.high) == (1, 500)
    assert chart.scale is not None
    assert chart.scale.high > 40


def test_a_tall_drag_zooms_values_too(panel: PlotsPanel) -> None:
    chart = panel.loss.chart
    area, whole = chart.plot_area(), chart.scale
    drag(chart, QPointF(area.left() + 50, area.top() + 10), QPointF(area.left() + 200, area.center().y()))
    chosen = chart.scale
    assert whole is not None
    assert chosen is not None
    assert (chosen.high - chosen.low) < 0.55 * (whole.high - whole.low)
    chart.refresh()
    assert chart.scale == chosen
    other = panel.cards.frame("throughput").chart.scale
    assert other is not None
    assert other.low == 0.0


DRAGS = {
    "flat": ((0.5, 0.9), (0.95, 0.95)),
    "flat, leftwards": ((0.95, 0.95), (0.5, 0.9)),
    "flat, upwards": ((0.1, 0.95), (0.4, 0.8)),
    "tall": ((0.5, 0.3), (0.95, 0.95)),
    "tall, leftwards and up": ((0.95, 0.95), (0.5, 0.3)),
    "upright": ((0.5, 0.2), (0.5, 0.9)),
    "beyond the edges": ((0.02, 0.98), (1.4, 1.6)),
    "beside all curves": ((0.6, 0.05), (0.9, 0.4)),
    "tiny": ((0.5, 0.5), (0.502, 0.505)),
}


@pytest.mark.parametrize("log", [False, True])
def test_no_drag_empties_a_chart(panel: PlotsPanel, log: bool) -> None:
    chart = panel.loss.chart  # its first values are far above the last
    chart.set_log(log)
    for drag_name, places in DRAGS.items():
        chart.fit()
        check_drag(panel, drag_name, places, log)


def check_drag(panel: PlotsPanel, drag_name: str, places: tuple[tuple[float, float], ...], log: bool) -> None:
    chart = panel.loss.chart
    area, whole = chart.plot_area(), (panel.time_axis.low, panel.time_axis.high)
    before = chart.scale
    ends = [QPointF(area.left() + x * area.width(), area.top() + y * area.height()) for x, y in places]
    drag(chart, *ends)
    after, span = chart.scale, panel.time_axis.span
    assert before is not None and after is not None
    assert after.low < after.high
    seen = np.concatenate(chart._seen())
    seen = np.log10(seen) if log else seen
    inside = seen[(seen >= after.low) & (seen <= after.high)]
    if drag_name == "tiny":
        assert (panel.time_axis.low, panel.time_axis.high) == whole
        assert after == before
    elif drag_name == "upright":
        assert span == whole[1] - whole[0], "time stays as it is"
        assert after.high - after.low < 0.8 * (before.high - before.low)
    elif drag_name.startswith("flat"):
        assert span == pytest.approx((whole[1] - whole[0]) * abs(ends[1].x() - ends[0].x()) / area.width(), rel=0.02)
        assert inside.size > 0.9 * seen.size, "values are fitted to the part that is shown"
    else:
        assert span < whole[1] - whole[0]
    if drag_name.startswith("tall"):
        assert after.high - after.low < 0.8 * (before.high - before.low)
    if drag_name != "upright":
        assert inside.size, "something is drawn"


def test_wheel_with_keys_and_keyboard(panel: PlotsPanel, qtbot: QtBot) -> None:
    chart = panel.loss.chart
    scale = chart.scale
    assert scale is not None
    turn(chart, 200, 2, Qt.KeyboardModifier.ControlModifier)
    zoomed = chart.scale
    assert zoomed is not None
    assert zoomed.high - zoomed.low < scale.high - scale.low
    qtbot.keyClick(chart, Qt.Key.Key_Plus)
    span = panel.time_axis.span
    assert span < 399
    low = panel.time_axis.low
    qtbot.keyClick(chart, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert panel.time_axis.low > low
    turn(chart, 200, 1, Qt.KeyboardModifier.ShiftModifier)
    assert panel.time_axis.span == pytest.approx(span)
    qtbot.keyClick(chart, Qt.Key.Key_Minus)
    assert panel.time_axis.span > span
    qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert panel.time_axis.cursor is not None
    assert "rank 0" in chart.accessibleDescription()
    qtbot.keyClick(chart, Qt.Key.Key_Escape)
    assert panel.time_axis.cursor is None


def test_the_crosshair_reads_all_plots(panel: PlotsPanel) -> None:
    chart = panel.loss.chart
    point_at(chart, QPointF(chart.x_of(200), 50))
    cursor = panel.time_axis.cursor
    assert cursor == pytest.approx(200, abs=1)
    reported = panel._data.series.rank(0).value_at("loss", "step", cursor)
    bold = next(layer for layer in chart.layers if isinstance(layer, Line) and layer.label == "rank 0 smoothed")
    smoothed = float(bold.y[np.searchsorted(bold.x, cursor, "right") - 1])
    assert f"rank 0 {reported:.2f}" in panel.loss.readout.accessibleName(), "what was reported, as everywhere"
    assert chart.table.isVisible() and chart.table.head == f"step {int(cursor)} · 10 s"
    first = chart.table.rows[1]
    assert (first.label, first.smoothed, first.text) == ("rank 0", f"{smoothed:.2f}", f"{reported:.2f}")
    assert not panel.cards.frame("throughput").chart.table.isVisible(), "one table is enough"
    assert "tok/s" in panel.cards.frame("throughput").readout.accessibleName()
    assert "wait" in panel.cards.frame("step_time").readout.accessibleName()
    assert "%" in panel.cards.frame("device/utilisation").readout.accessibleName()
    QApplication.sendEvent(chart, QEvent(QEvent.Type.Leave))
    assert panel.time_axis.cursor is None
    assert not chart.table.isVisible()


def test_resumes_checkpoints_and_the_best_evaluation_are_marked(make_panel: Make, run: RunStore) -> None:
    panel = make_panel(run)
    chart = panel.loss.chart
    plain = image(chart)
    events = [
        {"event": "commit", "ts": START_S + 5, "step": 100, "checkpoint": 1},
        {"event": "launch", "ts": START_S + 9, "mode": "zero", "world_size": 2, "resumed_from": {"0": 150}},
    ]
    panel._data.series.apply(MetricsBatch(events=events))
    panel._redraw()
    assert [mark.text for mark in chart.marks.marks] == ["checkpoint 1", "resumed · ZeRO · 2 devices"]
    changed = differing_columns(plain, image(chart))
    for step in (100, 150):
        assert any(abs(column - chart.x_of(step)) <= 3 for column in changed), step
    (points,) = [layer for layer in chart.layers if isinstance(layer, Points)]
    lowest = int(np.argmin(points.y))
    assert points.best == (points.x[lowest], points.y[lowest])


def differing_columns(one: QImage, other: QImage) -> list[int]:
    rows = range(one.height() // 2, one.height())
    return [x for x in range(one.width()) if any(one.pixel(x, y) != other.pixel(x, y) for y in rows)]


def test_smoothing_logarithm_and_ranks(panel: PlotsPanel) -> None:
    chart = panel.loss.chart
    panel.smoothing.set_strength(250)
    assert panel.options.smoothing == 200 and panel.smoothing.value.text() == "200 steps"
    panel.log_box.click()
    assert chart.scale is not None
    assert chart.scale.log
    panel.mean_box.click()
    assert [r.label for r in chart.readings()] == ["mean", "eval"]
    panel.mean_box.click()
    panel.loss.entry_chosen.emit("rank 0", False)
    assert [r.label for r in chart.readings()] == ["rank 1", "eval"]


def test_another_run_is_drawn_at_once(
    make_panel: Make, run: RunStore, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = make_panel(run)
    for limit in ("LIVE_S", "SLOWEST_S"):
        monkeypatch.setattr(plots_panel, limit, 3600.0)
    append(run, 401, 500)
    qtbot.waitUntil(lambda: panel._timer.isActive())
    assert panel._timer.interval() > 0, "new points wait for their turn"
    pauses: list[int] = []
    panel._data.changed.connect(lambda _: pauses.append(panel._timer.interval()))
    panel._data.open(write_lines(tmp_path / "other", Shape(steps=100)).dir)
    qtbot.waitUntil(lambda: panel._data.is_caught_up)
    assert pauses[0] == 0


def test_nothing_is_drawn_while_hidden_or_minimised(make_panel: Make, run: RunStore, qtbot: QtBot) -> None:
    panel = make_panel(run)
    drawn = Drawn(panel)
    for rows, leave, come_back in ((450, panel.hide, panel.show), (500, panel.showMinimized, panel.showNormal)):
        times = drawn.times
        leave()
        append(run, rows - 49, rows)
        qtbot.waitUntil(lambda rows=rows: panel._data.series.rank(1).rows == rows)
        assert not panel._timer.isActive() and panel._stale and drawn.times == times
        come_back()
        qtbot.waitUntil(lambda rows=rows: panel.time_axis.high == rows)
        assert drawn.times == times + 1


def test_charts_are_painted_for_new_points_of_their_own_only(make_panel: Make, run: RunStore, qtbot: QtBot) -> None:
    panel = make_panel(run)
    charts = panel.charts()
    painted = paints_from_now_on(panel, qtbot)
    drawn, read = Drawn(panel), list[str]()
    for key in panel.cards.shown:
        panel.cards.frame(key).chart.renewed.connect(lambda key=key: read.append(key))
    sample = {"ts": START_S + 19.0, "event": "device", "uuid": UUIDS[0], "utilization_percent": 50.0}
    with run.metrics.open("ab") as file:
        file.write(json.dumps(sample).encode() + b"\n")
    qtbot.waitUntil(lambda: drawn.times == 1)
    QApplication.processEvents()
    assert read == ["device/utilisation", "device/memory"]
    assert [counts.total for counts in painted] == [0] * len(charts) != []


def test_charts_of_an_earlier_part_are_not_drawn_for_steps_after_it(
    make_panel: Make, run: RunStore, qtbot: QtBot
) -> None:
    panel = make_panel(run)
    panel.time_axis.show_range(50, 100)
    settle(qtbot, panel)
    painted = paints_from_now_on(panel, qtbot)
    drawn = Drawn(panel)
    append(run, 401, 440)
    qtbot.waitUntil(lambda: drawn.times == 1)
    QApplication.processEvents()
    assert [counts.total for counts in painted] == [0] * len(painted)
    assert [reading.text for reading in panel.loss.chart.readings()][:2] == ["1.00", "1.00"]
    panel.time_axis.show_range(380, 440)
    assert panel.loss.chart.layers[0].x[-1] == 440, "the new points are there as soon as they are looked at"


def test_points_within_a_pixel_are_read_at_once_and_drawn_with_the_next_ones(
    make_panel: Make, run: RunStore, qtbot: QtBot
) -> None:
    panel = make_panel(run)
    panel.resize(320, 560)  # fewer pixels than the run has steps
    settle(qtbot, panel)
    painted = paints_from_now_on(panel, qtbot)
    drawn = Drawn(panel)
    append(run, 401, 401)
    qtbot.waitUntil(lambda: drawn.times == 1)
    QApplication.processEvents()
    assert [counts.total for counts in painted] == [0] * len(painted) != []
    assert panel.time_axis.high == 400
    assert [reading.text for reading in panel.loss.chart.readings()][:2] == ["1.00", "1.00"]
    append(run, 402, 404)
    qtbot.waitUntil(lambda: drawn.times == 2)
    assert panel.time_axis.high == 404 == panel.loss.chart.layers[0].x[-1]
    append(run, 405, 405)
    qtbot.waitUntil(lambda: drawn.times == 3)
    assert panel.time_axis.high == 404
    run.write_state(run.stored_state().replace(state="finished"))
    qtbot.waitUntil(lambda: panel.time_axis.high == 405)


@pytest.mark.parametrize(("axis", "drawn_as"), [("step", "log"), ("time", "raw")])
def test_a_run_that_was_followed_has_the_same_picture_as_one_that_is_opened(
    make_panel: Make, run: RunStore, qtbot: QtBot, axis: str, drawn_as: str
) -> None:
    def choose(panel: PlotsPanel) -> None:
        panel.set_axis(axis)
        panel.smoothing.set_strength(0 if drawn_as == "raw" else 30)
        panel.log_box.setChecked(drawn_as == "log")
        panel.loss.entry_chosen.emit("rank 0", False)  # hidden

    followed = make_panel(run)
    choose(followed)
    for last, loss in ((401, 1.0), (402, 1.2), (820, 0.4), (900, 40.0), (930, None), (990, 0.2), (1100, 0.3)):
        first = followed._data.series.rank(0).rows + 1
        append(run, first, last, loss=loss)
        if last == 990:  # a scale that shrinks, and steps that are trained again after a pause
            start = START_S + 0.05 * 850.5
            resumed_from = {"0": 850, "1": 850}
            launch = {"ts": start, "event": "launch", "rank": -1, "attempt": 2, "resumed_from": resumed_from}
            evaluated = {"ts": start, "event": "eval", "rank": 0, "attempt": 2, "step": 850, "val_loss": 0.7}
            with run.metrics.open("ab") as file:
                file.write(b"".join(json.dumps(line).encode() + b"\n" for line in (launch, evaluated)))
            last = 850
        qtbot.waitUntil(lambda last=last: followed._data.series.rank(0).rows == last)
        settle(qtbot, followed)
    run.write_state(run.stored_state().replace(state="finished"))
    qtbot.waitUntil(lambda: followed._data.state is not None and followed._data.state.state == "finished")
    settle(qtbot, followed)
    opened = make_panel(run)
    choose(opened)
    settle(qtbot, opened)
    assert followed.cards.shown == opened.cards.shown
    for one, other in zip(followed.cards.charts(), opened.cards.charts(), strict=True):
        assert one.scale == other.scale
        assert image(one) == image(other), one.accessibleName()


def test_a_state_that_only_says_how_far_the_run_is_draws_nothing(make_panel: Make, run: RunStore, qtbot: QtBot) -> None:
    panel = make_panel(run)
    painted = paints_from_now_on(panel, qtbot)
    drawn = Drawn(panel)
    run.write_state(run.stored_state().replace(step=397))
    qtbot.waitUntil(lambda: panel._data.state is not None and panel._data.state.step == 397)
    assert not panel._timer.isActive() and drawn.times == 0
    QApplication.processEvents()
    assert [counts.total for counts in painted] == [0] * len(painted) != []


def test_charts_are_drawn_seldomer_beside_ranks_on_the_cpu(make_panel: Make, run: RunStore, qtbot: QtBot) -> None:
    panel = make_panel(run)

    def is_sparing() -> bool:
        for chart in panel.charts():
            chart.took_s = 9.0
        panel._redrawn_at = time.monotonic()
        panel._schedule({"rank0"})
        pause_ms = panel._timer.interval()
        panel._timer.stop()
        return pause_ms > 1000 * SLOWEST_S

    for devices, sparing in ((("GPU-1",), False), (("cpu:0", "cpu:1"), True)):
        run.write_state(run.stored_state().replace(devices=devices))
        qtbot.waitUntil(lambda devices=devices: panel.options.trained_on == devices)
        panel._timer.stop()
        assert is_sparing() == sparing
    panel.time_axis.set_cursor(200.0)
    assert not is_sparing(), "somebody points at it"


def test_nothing_is_drawn_while_the_system_says_that_the_window_is_covered(
    make_panel: Make, run: RunStore, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offscreen platform covers no window: its word is replaced, and its event sent, as macOS and Wayland do it."""
    panel = make_panel(run)
    qtbot.waitUntil(lambda: panel.time_axis.high == 400)
    drawn, handle = Drawn(panel), panel.windowHandle()
    with monkeypatch.context() as covered:
        covered.setattr(QWindow, "isExposed", lambda _window: False)
        QApplication.sendEvent(handle, QExposeEvent(QRegion()))
        append(run, 401, 450)
        qtbot.waitUntil(lambda: panel._data.series.rank(1).rows == 450)
        assert not panel._timer.isActive() and panel._stale
    QApplication.sendEvent(handle, QExposeEvent(QRegion(panel.rect())))
    qtbot.waitUntil(lambda: panel.time_axis.high == 450)
    assert drawn.times == 1


def test_colours_follow_the_palette(make_panel: Make, run: RunStore) -> None:
    panel = make_panel(run)
    palette = QPalette()
    for role, colour in (
        (QPalette.ColorRole.Window, "#202124"),
        (QPalette.ColorRole.Base, "#18191b"),
        (QPalette.ColorRole.WindowText, "#eeeeee"),
        (QPalette.ColorRole.Text, "#eeeeee"),
    ):
        palette.setColor(role, QColor(colour))
    panel.setPalette(palette)
    drawn = colours_in(panel.loss.chart)
    assert QColor("#18191b").rgb() in drawn
    assert QColor("#ffffff").rgb() not in drawn
    assert has_hue(drawn, rank_colour(0, palette)) and has_hue(drawn, rank_colour(1, palette))


@pytest.mark.parametrize("width", [615, 819, 820])
def test_the_controls_have_room_at_any_width(panel: PlotsPanel, width: int) -> None:
    panel.mean_box.setVisible(True)
    panel.resize(width, 500)
    QApplication.processEvents()
    assert panel.controls.sizeHint().width() <= width


def test_a_run_that_is_being_read_is_not_called_empty(tmp_path: Path, qtbot: QtBot) -> None:
    data, said = RunData(), set[str]()
    panel = PlotsPanel(data)
    qtbot.addWidget(panel)
    for signal in (data.status_changed, data.changed):
        signal.connect(lambda _: said.add(panel.cards.grid.empty.text()))
    data.open(write_lines(tmp_path / "run", Shape(steps=20)).dir)
    qtbot.waitUntil(lambda: data.is_caught_up)
    assert said == {""}
    data.close()


def test_devices_sampled_before_the_first_step_are_no_missing_values(
    tmp_path: Path, make_panel: Make, qtbot: QtBot
) -> None:
    sample = {"ts": START_S - 2, "event": "device", "rank": -1, "uuid": "cpu:0", "memory_used_bytes": 2**30}
    step = {"ts": START_S, "event": "step", "rank": 0, "step": 1, "loss": None, "nonfinite": ["loss"]}
    panel = make_panel(write_events(make_run(tmp_path / "run", devices=("cpu:0",)), [sample, step]))
    memory = panel.cards.frame("device/memory").chart
    qtbot.waitUntil(lambda: panel.loss.chart.reason_empty() == "No finite values")
    assert memory.scale is None and memory.reason_empty() == ""


def test_an_empty_plot_says_what_it_waits_for(tmp_path: Path, make_panel: Make, qtbot: QtBot) -> None:
    store = make_run(tmp_path / "run", state="starting", phase="rank 1 ready", host=identity.own())
    panel = make_panel(store)
    assert panel.cards.grid.empty.text() == "Starting: rank 1 ready"
    store.write_state(store.stored_state().replace(state="training"))
    qtbot.waitUntil(lambda: panel.cards.grid.empty.text() == "Waiting for the first step")
    store.write_state(store.stored_state().replace(state="failed"))
    qtbot.waitUntil(lambda: panel.cards.grid.empty.text() == "This run reported no steps.")


def test_a_run_of_one_step_and_one_of_gaps(tmp_path: Path, make_panel: Make) -> None:
    one = write_lines(tmp_path / "one", Shape(steps=1))
    panel = make_panel(one)
    assert panel.loss.chart.scale is not None
    image(panel.loss.chart)
    line = {"ts": 1, "event": "step", "rank": 0, "loss": None, "nonfinite": ["loss"]}
    panel = make_panel(write_events(make_run(tmp_path / "gaps"), (line | {"step": n} for n in range(5))))
    assert panel.loss.chart.scale is None
    image(panel.loss.chart)


def test_what_was_chosen_is_remembered(panel: PlotsPanel) -> None:
    chosen = {"axis": "clock", "smoothing_steps": 50, "log": True, "mean": True}
    panel.apply_settings(chosen | {"unknown": 1})
    assert panel.settings() == chosen
    panel.apply_settings({"smoothing_steps": "nonsense", "axis": "ts"})
    assert (panel.settings()["smoothing_steps"], panel.settings()["axis"]) == (50, "time")


def test_what_lies_between_stop_and_resume_is_a_gap_by_time(tmp_path: Path, make_panel: Make) -> None:
    launch = {"event": "launch", "rank": -1, "mode": "single"}
    lines: list[dict[str, object]] = [launch | {"ts": START_S, "attempt": 1, "resumed_from": None}]
    for attempt, first, start in ((1, 1, START_S), (2, 41, START_S + 120)):
        if attempt == 2:
            lines.append(launch | {"ts": start, "attempt": 2, "resumed_from": {"0": 40}})
        values = {"event": "step", "rank": 0, "attempt": attempt, "loss": 1.0, "step_time_s": 0.5, "tokens_per_s": 9.0}
        lines += [values | {"ts": start + 0.5 * (n + 1), "step": first + n} for n in range(40)]
    panel = make_panel(write_events(make_run(tmp_path / "run"), lines))
    panel.set_axis("time")
    for chart in (panel.loss.chart, panel.cards.frame("throughput").chart, panel.cards.frame("step_time").chart):
        picture, area = image(chart), chart.plot_area()
        grid = {QColor(plot_colours(panel.palette()).grid).rgb(), QColor(plot_colours(panel.palette()).ground).rgb()}
        for share, is_drawn in ((0.06, True), (0.5, False), (0.95, True)):
            x = int(area.left() + share * area.width())
            column = {picture.pixel(x, y) for y in range(int(area.top()) + 1, int(area.bottom()) - 2)}
            assert bool(column - grid) == is_drawn, (chart.accessibleName(), share)


def test_a_ring_at_the_newest_step_is_whole(panel: PlotsPanel) -> None:
    chart = panel.loss.chart
    picture, ring = image(chart), plot_colours(panel.palette()).eval.rgb()
    right = int(chart.plot_area().right())
    beyond = {picture.pixel(x, y) for x in range(right + 1, right + 4) for y in range(picture.height())}
    assert any(QColor(pixel).lightness() < 128 for pixel in beyond), ring


def test_thousands_of_ranks_and_names_hold_nobody_up(tmp_path: Path, make_panel: Make) -> None:
    ranks = [
        {"ts": START_S + s, "event": "step", "rank": r, "attempt": 1, "step": s, "loss": 1.0, "tokens_per_s": 2.0}
        for s in range(2)
        for r in range(1000)
    ]
    names = {"ts": START_S + 9, "event": "step", "rank": 0, "attempt": 1, "step": 9} | {
        f"n{i}": 1.0 for i in range(2000)
    }
    panel = make_panel(write_events(make_run(tmp_path / "run"), [*ranks, names]))
    assert len(panel.loss.chart.layers) <= 2 * MOST_RANKS and len(panel.loss.chart.readings()) <= MOST_RANKS
    assert panel.cards.frame("throughput").chart.readings()[0].text == "2,000 tok/s", "the sum is that of all"
    assert len(panel.cards.shown) > 2000 and len(panel.cards.frames) < 20, "charts are made when scrolled to"
    assert len(panel.cards_button.fill().actions()) < 10, "no menu of thousands"

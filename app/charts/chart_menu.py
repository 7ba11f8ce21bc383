"""Menu of a chart: save, copy, scale; and the dialog of its value range."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QFormLayout, QLabel, QLineEdit, QMenu, QWidget

from app.plots.chart import Chart
from app.plots.chart_export import drawing, picture, save_as, values
from app.widgets.dialog import Dialog
from core.config.numbers import NumberError, read_number

CARD_STEPS: Final = {"left": "Move l&eft", "right": "Move righ&t", "hide": "&Hide this card"}


def make_menu(chart: Chart, title: str, parent: QWidget, ask: Callable[[str], object] | None = None) -> QMenu:
    """The chart's menu, as it is now.

    Args:
        chart: What is saved, copied and changed.
        title: What it shows.
        parent: Owns the menu and its questions.
        ask: Does one of `CARD_STEPS`; None where the chart is not a card.
    """
    menu, clipboard = QMenu(parent), QGuiApplication.clipboard()
    drawn = chart.scale is not None
    name = re.sub(r"\W+", "-", title.lower()).strip("-") or "chart"

    def table(separator: str) -> str:
        return values(chart.layers, chart.time_axis, separator)

    steps: list[tuple[str, Callable[[], object]]] = [
        ("Save &picture (PNG)…", lambda: save_as(parent, title, f"{name}.png", lambda: picture(chart, title))),
        ("Save &drawing (SVG)…", lambda: save_as(parent, title, f"{name}.svg", lambda: drawing(chart, title))),
        ("Save &values (CSV)…", lambda: save_as(parent, title, f"{name}.csv", lambda: table(","))),
        ("&Copy picture", lambda: clipboard.setImage(picture(chart, title))),
        ("Copy va&lues", lambda: clipboard.setText(table("\t"))),
    ]
    for text, act in steps:
        action = menu.addAction(text)
        action.triggered.connect(lambda _on=False, act=act: act())
        action.setEnabled(drawn)
    menu.addSeparator()
    log = menu.addAction("Lo&garithmic axis")
    log.setCheckable(True)
    log.setChecked(chart.is_log)
    log.setEnabled(chart.source.fixed_scale is None)
    log.triggered.connect(chart.set_log)
    limits = menu.addAction("Value &range…")
    limits.setEnabled(drawn and chart.source.fixed_scale is None)
    limits.triggered.connect(lambda: RangeDialog(chart, parent).open())
    menu.addAction("Reset &zoom").triggered.connect(chart.fit)
    if ask is not None:
        menu.addSeparator()
        for step, text in CARD_STEPS.items():
            menu.addAction(text).triggered.connect(lambda _on=False, step=step: ask(step))
    return menu


def pop_up(menu: QMenu, place: QPoint) -> None:
    """Shows a menu at a place on the screen."""
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(place)


class RangeDialog(Dialog):
    """Asks from which value to which a chart reaches."""

    def __init__(self, chart: Chart, parent: QWidget | None = None) -> None:
        super().__init__("Value range", parent)
        self._chart = chart
        scale = chart.scale
        ends = (0.0, 1.0) if scale is None else (scale.low, scale.high)
        if scale is not None and scale.log:
            ends = (10.0 ** ends[0], 10.0 ** ends[1])
        self.low, self.high = (QLineEdit(f"{value:.4g}") for value in ends)
        self.problem = QLabel("Enter two numbers, the lower one first.")
        self.add_standard(QDialogButtonBox.StandardButton.Ok, QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self.accept)
        form = QFormLayout()
        form.addRow("&Lowest", self.low)
        form.addRow("&Highest", self.high)
        form.addRow(self.problem)
        self.lay_out(form)
        for field in (self.low, self.high):
            field.textChanged.connect(self._check)
        self.accepted.connect(self._show)
        self._check()

    def _range(self) -> tuple[float, float] | None:
        low, high = (float(read_number(field.text())) for field in (self.low, self.high))
        fits = float("-inf") < low < high < float("inf") and (low > 0 or not self._chart.is_log)
        return (low, high) if fits else None

    def _check(self) -> None:
        why = "Enter two numbers, the lower one first."
        why += " Both must be above zero on a logarithmic axis." if self._chart.is_log else ""
        try:
            fits = self._range() is not None
        except NumberError as error:
            fits, why = False, error.instead or why
        self.problem.setText("" if fits else why)
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(fits)

    def _show(self) -> None:
        found = self._range()
        if found is not None:
            self._chart.show_values(*found)

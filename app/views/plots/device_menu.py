"""Menu of the devices' card: what is drawn, save, copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox, QWidget

from app.views.plots import chart_export
from app.views.plots.device_curves import QUANTITIES, DeviceOptions
from app.views.plots.device_strip import DeviceStrip
from app.views.plots.drawing import Layer
from app.views.plots.time_axis import TimeAxis
from core.errors import RankdeckError

TITLE = "Devices"


@dataclass(frozen=True, slots=True)
class DrawnDevices:
    """The layers of all devices as one table: each quantity under its device's name."""

    time_axis: TimeAxis
    layers: list[Layer]


def make_menu(
    card: QWidget, options: DeviceOptions, draw: Callable[[str, bool], object], strips: Mapping[str, DeviceStrip]
) -> QMenu:
    """The card's menu, as it is now.

    Args:
        card: What is saved as a picture; owns the menu.
        options: Which quantities are drawn.
        draw: Called with a quantity that is to be drawn, or not.
        strips: The plots, by their devices' names.
    """
    menu = QMenu(card)
    for quantity in QUANTITIES:
        action = menu.addAction(f"&{quantity.capitalize()}")
        action.setCheckable(True)
        action.setChecked(quantity in options.shown)
        action.triggered.connect(lambda on, quantity=quantity: draw(quantity, on))
    menu.addSeparator()
    menu.addAction("Save p&icture (PNG)…").triggered.connect(lambda: _save_picture(card))
    menu.addAction("Save &values (CSV)…").triggered.connect(lambda: _save_values(card, drawn(strips)))
    clipboard = QGuiApplication.clipboard()
    menu.addAction("&Copy picture").triggered.connect(lambda: clipboard.setPixmap(card.grab()))
    menu.addAction("Copy va&lues").triggered.connect(
        lambda: clipboard.setText(chart_export.values(drawn(strips), "\t"))
    )
    menu.addSeparator()
    menu.addAction("&Fit the whole run").triggered.connect(next(iter(strips.values())).fit)
    return menu


def drawn(strips: Mapping[str, DeviceStrip]) -> DrawnDevices:
    layers: list[Layer] = [
        replace(layer, label=f"{name} {layer.label}") for name, strip in strips.items() for layer in strip.layers
    ]
    return DrawnDevices(next(iter(strips.values())).time_axis, layers)


def _save_picture(card: QWidget) -> None:
    chosen, _ = QFileDialog.getSaveFileName(card, f"Save {TITLE}", "devices.png", "Pictures (*.png)")
    if chosen:
        _try(card, lambda: chart_export.save_image(card.grab().toImage(), Path(chosen)))


def _save_values(card: QWidget, table: DrawnDevices) -> None:
    chosen, _ = QFileDialog.getSaveFileName(card, f"Save {TITLE}", "devices.csv", "Tables (*.csv)")
    if chosen:
        _try(card, lambda: chart_export.save_values(table, Path(chosen)))


def _try(card: QWidget, save: Callable[[], object]) -> None:
    try:
        save()
    except RankdeckError as error:
        QMessageBox.warning(card, error.title, f"{error.cause}\n\n{error.next_step}")

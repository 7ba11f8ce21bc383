"""`keep_machine_widgets`: a widget for each machine in a list that changes; that of an unchanged machine stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from PySide6.QtWidgets import QBoxLayout, QWidget

if TYPE_CHECKING:
    from core.machines.machine import Machine


class _OfMachine(Protocol):
    machine: Machine


W = TypeVar("W", bound=_OfMachine)


def keep_machine_widgets(
    layout: QBoxLayout, widgets: dict[str, W], machines: Sequence[Machine], make: Callable[[Machine], W]
) -> None:
    """Make the first widgets of `layout` those of `machines`, in their order.

    `widgets`, by the machine's name, is changed in place; `make` makes and connects the widget of a machine that is new
    or has changed.
    """
    kept = {machine.name: machine for machine in machines}
    for name in [name for name, widget in widgets.items() if kept.get(name) != widget.machine]:
        old = _widget(widgets.pop(name))
        layout.removeWidget(old)
        old.deleteLater()
    for place, machine in enumerate(machines):
        if machine.name not in widgets:
            widgets[machine.name] = make(machine)
        layout.insertWidget(place, _widget(widgets[machine.name]))


def _widget(shown: object) -> QWidget:
    assert isinstance(shown, QWidget)
    return shown

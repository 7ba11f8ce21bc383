"""Top bar: the program's name, the search, New run, and what belongs to the window as a whole."""

from __future__ import annotations

from typing import Final

from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.actions.actions import Actions
from app.style.icons import app_icon
from app.widgets.build import bold_label, lay_row
from app.widgets.buttons import ActionButton, PrimaryActionButton, SearchButton

HEIGHT: Final = 48
LOGO: Final = 20
SEARCH_WIDTH: Final = 480


class TopBar(QWidget):
    """One row over everything else."""

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        logo = QLabel()
        logo.setPixmap(app_icon().pixmap(LOGO, LOGO))
        self.search = SearchButton(actions.palette)
        self.search.setMaximumWidth(SEARCH_WIDTH)
        self.search.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.new_run = PrimaryActionButton(actions.new_run)
        signs = [ActionButton(action, bare=True) for action in (actions.theme, actions.settings, actions.help)]
        name = lay_row(None, logo, bold_label("Rankdeck"), None, spacing=8)
        right = lay_row(None, None, self.new_run, *signs, spacing=4)
        row = lay_row(self, name, self.search, right, spacing=16, margins=(12, 0, 8, 0))
        row.setStretchFactor(name, 1)
        row.setStretchFactor(self.search, 1)
        row.setStretchFactor(right, 1)
        self.setFixedHeight(HEIGHT)

"""Welcome page, shown while no run is chosen: four ways to begin, and what this machine has."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QScrollArea, QSizePolicy, QWidget

from app.widgets.build import bold_label, lay_column, lay_row, muted_label, named
from app.widgets.buttons import ActionButton, OutlinedButton, PrimaryButton
from app.widgets.card import Card
from app.widgets.tone_label import SignLabel
from app.window.welcome_text import NOTHING_DOWNLOADED, UnusedGpus

WIDTH: Final = 760
SIGN: Final = 24
TITLE_SIZE: Final = 2.1


class WelcomeCard(Card):
    """One way to begin: sign, title, a line on it, and its button."""

    def __init__(self, sign: str, title: str, text: str, button: QAbstractButton) -> None:
        super().__init__()
        self._icon = SignLabel(SIGN)
        self._icon.show_sign(sign, "warning" if sign == "warning" else "accent")
        self.title = bold_label(title)
        self.title.setWordWrap(True)
        self.text = muted_label(text)
        self.button = button
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        lines = lay_column(None, self.title, self.text, spacing=2)
        lay_row(self, self._icon, lines, button, spacing=16, margins=(24, 16, 16, 16), grow=lines)


class Welcome(QScrollArea):
    """The page of a window that shows no run."""

    def __init__(self, resume_file: QAction, doctor: QAction) -> None:
        super().__init__()
        self.demo = PrimaryButton("Start the &demo")
        self.model = OutlinedButton("Choose a &model…")
        self.script = OutlinedButton("Choose a s&cript…")
        self.resume = OutlinedButton("O&pen…")
        self.resume.setToolTip(resume_file.toolTip())
        self.resume.clicked.connect(resume_file.trigger)
        self.set_up = PrimaryButton("Set up &PyTorch…")
        self.without_torch = WelcomeCard(
            "model",
            "First, set up PyTorch",
            "Training needs it. Rankdeck downloads the build for this PC.",
            self.set_up,
        )
        self.without_torch.hide()
        self.install_gpu_build = PrimaryButton("Install &GPU build…")
        self.unused_gpus = WelcomeCard("warning", "", "", self.install_gpu_build)
        self.unused_gpus.hide()
        self.set_up_another = OutlinedButton("Make a &new one…")
        self.older_torch = WelcomeCard("model", "PyTorch is from an earlier Rankdeck", "", self.set_up_another)
        self.older_torch.hide()
        self.cards = [
            WelcomeCard(
                "start",
                "Watch a small GPT learn",
                "On Python's own library of source code, about two minutes.",
                self.demo,
            ),
            WelcomeCard(
                "model",
                "Fine-tune a language model",
                "A model in a folder of yours or from Hugging Face; all weights or LoRA.",
                self.model,
            ),
            WelcomeCard(
                "script",
                "Run a script you already have",
                "Unmodified. Rankdeck starts it on every device, charts what it prints, and can stop it.",
                self.script,
            ),
            WelcomeCard(
                "resume",
                "Continue an earlier run",
                "From a run's folder or a state file, on any devices and in any mode.",
                self.resume,
            ),
        ]
        self.found = muted_label(NOTHING_DOWNLOADED)
        self.machine = named(muted_label(), "This machine")
        self.doctor = ActionButton(doctor)
        self._lay_out()

    def _lay_out(self) -> None:
        title = bold_label("Train something")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * TITLE_SIZE)
        title.setFont(font)
        page = QWidget()
        middle = QWidget()
        middle.setMaximumWidth(WIDTH)
        middle.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        foot = lay_row(None, self.machine, self.doctor, spacing=16, grow=self.machine)
        column = lay_column(
            middle,
            title,
            self.found,
            self.without_torch,
            self.unused_gpus,
            self.older_torch,
            *self.cards,
            foot,
            spacing=12,
        )
        column.insertSpacing(2, 4)
        row = lay_row(None, None, middle, None)
        row.setStretchFactor(middle, 100)
        lay_column(page, None, row, None, margins=(16, 16, 16, 16))
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setAutoFillBackground(False)
        page.setAutoFillBackground(False)
        self.setWidget(page)

    def minimumSizeHint(self) -> QSize:
        """As wide as its cards need; lower it is scrolled."""
        page = self.widget()
        return QSize(0 if page is None else page.minimumSizeHint().width(), 200)

    def show_found(self, text: str) -> None:
        self.found.setText(text)

    def show_machine(self, text: str) -> None:
        self.machine.setText(text)

    def show_torch_missing(self, is_missing: bool) -> None:
        """Offers to set PyTorch up in place of the demo, which needs it."""
        self.without_torch.setVisible(is_missing)
        self.cards[0].setVisible(not is_missing)

    def show_unused_gpus(self, unused: UnusedGpus | None) -> None:
        """Says why this machine's GPUs are not used, with the button that mends it where one can."""
        self.unused_gpus.setVisible(unused is not None and self.without_torch.isHidden())
        if unused is not None:
            self.unused_gpus.title.setText(unused.title)
            self.unused_gpus.text.setText(unused.text)
            self.install_gpu_build.setVisible(unused.is_build)

    def show_differences(self, text: str) -> None:
        """Offers another environment where the present one differs from the tested one; empty: it does not."""
        self.older_torch.text.setText(text)
        self.older_torch.setVisible(bool(text))

    def show_busy(self, is_busy: bool) -> None:
        self.demo.setText("Starting…" if is_busy else "Start the &demo")
        self.demo.setEnabled(not is_busy)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.verticalScrollBar().setValue(0)

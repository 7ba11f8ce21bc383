"""The run's header: its name, state and actions, how far it is, and its figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import QLabel, QMenu, QProgressBar, QSizePolicy, QStackedWidget, QWidget

from app.run.hero_tiles import HeroTiles
from app.run.run_summary import RunSummary, progress_text
from app.style.fonts import tabular
from app.style.icons import icon
from app.style.palette import STATE_TONES
from app.widgets.build import TITLE_SCALE, bold_label, lay_column, lay_row, named
from app.widgets.buttons import ActionButton, OutlinedButton, PrimaryActionButton
from app.widgets.card import Badge, Card
from app.widgets.elided_label import ElidedLabel
from core.formatting import UNKNOWN, count, percent

if TYPE_CHECKING:
    from app.actions.actions import Actions
    from app.run.hero_figures import HeroFigure

BAR_STEPS: Final = 1000
_ICON_PX: Final = 16
# Below this width Export is only its sign, so that the name can be read.
NARROW: Final = 700
_REST: Final = "00 m 00 s left · ends Wed 00:00"
# After these, resuming is what a person comes for.
_RESUMED_FIRST: Final = ("failed", "interrupted")
_LEAST_TITLE: Final = 96


class RunTitle(ElidedLabel):
    """The run's name as a heading that is as wide as its text, or as the room."""

    def __init__(self) -> None:
        super().__init__(mode=Qt.TextElideMode.ElideMiddle)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        font = self.font()
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * TITLE_SCALE)
        self.setFont(font)

    def minimumSizeHint(self) -> QSize:
        return QSize(min(_LEAST_TITLE, self.sizeHint().width()), super().minimumSizeHint().height())


class RunHeader(Card):
    """Everything about the run that is shown, at a glance; nothing moves while its figures run."""

    def __init__(self, actions: Actions, menu: QMenu, exports: QMenu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._summary = RunSummary()
        self._texts: tuple[str, str] | None = None
        self._notes: tuple[str, ...] = ()
        self._actions = actions
        self.title = RunTitle()
        self._pencil = ActionButton(actions.rename, bare=True)
        self._icon = QLabel()
        self._icon.setFixedSize(_ICON_PX, _ICON_PX)
        self.state = Badge()
        self.about = ElidedLabel(mode=Qt.TextElideMode.ElideMiddle)
        self.about.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.bar = named(QProgressBar(textVisible=False), "Progress")
        self.bar.setFixedHeight(4)
        self.steps = bold_label()
        self.steps.setFont(tabular(self.steps.font()))
        self.steps.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.rest = ElidedLabel()
        self.rest.setFont(tabular(self.rest.font()))
        self.rest.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.rest.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.heroes = HeroTiles()
        self._make_buttons(menu, exports)
        self._lay_out()
        self.show_summary(RunSummary())

    def _make_buttons(self, menu: QMenu, exports: QMenu) -> None:
        actions = self._actions
        self.stop = ActionButton(actions.stop)
        self.resume = ActionButton(actions.resume)
        self.resume_first = PrimaryActionButton(actions.resume)
        self.export = OutlinedButton("Export")
        self.export.setIcon(icon("export"))
        self.export.setAccessibleName("Export this run")
        self.export.setMenu(exports)
        self.more = OutlinedButton(bare=True)
        self.more.setIcon(icon("more"))
        self.more.setAccessibleName("More actions on this run")
        self.more.setToolTip("More actions on this run")
        self.more.setMenu(menu)

    def _lay_out(self) -> None:
        who = lay_row(
            None, self.title, self._pencil, self._icon, self.state, self.about, self.stop, self.resume,
            self.resume_first, self.export, self.more, spacing=8, grow=self.about,
        )  # fmt: skip
        self._progress = QWidget()
        lay_row(self._progress, self.bar, self.steps, self.rest, spacing=12, grow=self.bar)
        self._outcome: QWidget | None = None
        self._place = QStackedWidget()
        self._place.addWidget(self._progress)
        lay_column(self, who, self._place, self.heroes, spacing=8, margins=(16, 12, 12, 12))

    def place_outcome(self, line: QWidget) -> None:
        """Gives a line the place of the progress, whose height it has, while it is shown."""
        self._outcome = line
        self._place.setFixedHeight(line.height())
        self._place.addWidget(line)
        line.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._outcome and event.type() in (QEvent.Type.ShowToParent, QEvent.Type.HideToParent):
            is_shown = event.type() == QEvent.Type.ShowToParent
            self._place.setCurrentWidget(self._outcome if is_shown else self._progress)
        return super().eventFilter(watched, event)

    def show_name(self, name: str) -> None:
        self.title.set_full_text(name)
        self.title.setAccessibleName(f"Run {name}")

    def show_summary(self, summary: RunSummary) -> None:
        steps, rest = texts = progress_text(summary, time.time())
        if (summary, texts) == (self._summary, self._texts):
            return
        if summary.word != self._summary.word or not self.state.text():
            self._show_word(summary.word)
        self._summary, self._texts = summary, texts
        self.about.set_full_text(summary.about, summary.about_short)
        self.show_notes(self._notes)
        self.steps.setText(steps)
        self.steps.setVisible(bool(steps))
        self.rest.set_full_text(rest)
        self.rest.setVisible(bool(rest) or summary.is_live)
        self._place_texts()
        self.bar.setMaximum(0 if summary.is_preparing else BAR_STEPS)
        self.bar.setValue(round(BAR_STEPS * (summary.share or 0.0)))
        share = UNKNOWN if summary.share is None else percent(summary.share)
        done = "Preparing" if summary.is_preparing else f"{share} done"
        self.bar.setAccessibleDescription(f"{done}: {steps or UNKNOWN}, {rest}")
        epoch = f"Epoch {summary.epoch}" if summary.epoch is not None else ""
        self._progress.setToolTip(" · ".join(part for part in (epoch, share, rest) if part))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.export.setText("Export" if self.width() >= NARROW else "")
        self.export.updateGeometry()
        self._place_texts()

    def _place_texts(self) -> None:
        """Gives steps and time left a fixed size, so that new texts ask for no new layout of the window."""
        total, metrics = self._summary.total_steps, self.steps.fontMetrics()
        steps = f"{count(total)} / {count(total)}" if total else self.steps.text()
        self.steps.setFixedSize(metrics.horizontalAdvance(steps), metrics.height())
        metrics, live = self.rest.fontMetrics(), self._summary.is_live
        widest = max(metrics.horizontalAdvance(text) for text in (self.rest.full_text, _REST if live else ""))
        self.rest.setFixedSize(min(widest + 2, self.width() * 2 // 5), metrics.height())

    def show_figures(self, figures: Sequence[HeroFigure]) -> None:
        self.heroes.show_figures(figures)

    def show_notes(self, notes: Sequence[str]) -> None:
        """Shows notes on how devices share the work as a tooltip."""
        self._notes = tuple(notes)
        tip = "\n".join(part for part in (self._summary.about, *self._notes) if part)
        if tip != self.about.toolTip():
            self.about.setToolTip(tip)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._show_word(self._summary.word)
        elif event.type() == QEvent.Type.FontChange:
            self._place_texts()
        super().changeEvent(event)

    def _show_word(self, word: str) -> None:
        tone_name = STATE_TONES.get(word, "muted")
        sign = f"state-{word}" if word in STATE_TONES and word not in ("pausing", "damaged") else "state-unreadable"
        self._icon.setVisible(bool(word))
        self._icon.setPixmap(icon(sign, tone_name).pixmap(_ICON_PX, _ICON_PX))
        self.state.say(word.capitalize(), tone_name)
        self.state.updateGeometry()
        live = word in ("starting", "training", "stopping")
        self.stop.setVisible(live)
        self.resume.setVisible(not live and word not in _RESUMED_FIRST)
        self.resume_first.setVisible(word in _RESUMED_FIRST)

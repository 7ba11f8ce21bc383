"""Mode picker: a radio button for each mode, its meaning, and its settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QFileDialog, QLabel, QPushButton, QWidget

from app.draft.mode_options import ModeOptions
from app.form.draft_fields import MODE_FIELDS, default_mode_texts, fields_of_mode
from app.form.field_row import MARGIN, ProblemLabel
from app.form.field_rows import FieldRows
from app.widgets.build import lay_column, lay_row, muted_label
from app.widgets.segment import Segment, SegmentBar
from core.config.mode import Mode
from core.config.run_config import FIELD_BY_NAME
from core.errors import ConfigError, RankdeckError
from core.paths import PACKAGE_FOLDER

_AVERAGE: Final = (
    "⚠ The average of independently trained models is usually worse than the best of them. Both are evaluated, and the "
    "better one is exported."
)
_DEEPSPEED: Final = "Choose a DeepSpeed configuration (JSON) that replaces Rankdeck's for this stage"
_OWN_DEEPSPEED: Final = "Go back to Rankdeck's DeepSpeed configuration"
_ENGINES: Final = dict(FIELD_BY_NAME["zero_engine"].names)


class ModeFields(FieldRows):
    """Rows for settings of modes in which each rank trains its own model (`apart`), or of all other modes."""

    def __init__(self, *, apart: bool) -> None:
        super().__init__()
        specs = [FIELD_BY_NAME[name] for name in MODE_FIELDS if name != "deepspeed_config"]  # which is a file
        self.fill(self, [spec for spec in specs if all(mode.is_apart for mode in spec.modes) == apart])


class ModePicker(QWidget):
    """Mode and what belongs to it. The mode is "auto" until the person picks one: the recommended is shown."""

    changed = Signal()
    shown_changed = Signal()
    install_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._chosen = Mode.AUTO
        self._options = ModeOptions()
        self._deepspeed = ""
        self._group = QButtonGroup(self)
        self.radios = {mode: Segment(mode.traits.button) for mode in Mode if mode.traits.button}
        self._meaning = muted_label()
        self.problem = ProblemLabel()
        self.zero = ModeFields(apart=False)
        self.deepspeed = QPushButton()
        self.deepspeed.clicked.connect(self._on_deepspeed_clicked)
        self.install = QPushButton("Insta&ll DeepSpeed…")
        self.install.setToolTip("Shows the command that installs it and asks before running it")
        self.install.clicked.connect(self.install_requested)
        self.deepspeed_problem = ProblemLabel()
        self.merging = ModeFields(apart=True)
        self._average_warning = QLabel(_AVERAGE, wordWrap=True)
        for mode, radio in self.radios.items():
            self._group.addButton(radio)
            radio.setObjectName(f"mode_{mode}")
            radio.setAccessibleDescription(mode.traits.meaning)
            radio.clicked.connect(lambda _on, mode=mode: self._on_picked(mode))
        for fields in (self.zero, self.merging):
            fields.edited.connect(self._on_changed)
        self._lay_out()
        self.set_mode(Mode.AUTO, {})

    def _lay_out(self) -> None:
        inset = (MARGIN, 0, 0, 0)
        buttons = lay_row(None, self.deepspeed, self.install, None, spacing=4)
        bar = SegmentBar(list(self.radios.values()))
        head = lay_column(None, bar, self._meaning, self.problem, spacing=4, margins=inset)
        below = lay_column(None, buttons, self.deepspeed_problem, spacing=4, margins=inset)
        warning = lay_column(None, self._average_warning, margins=inset)
        lay_column(self, head, self.zero, below, self.merging, warning, spacing=4)

    def mode(self) -> Mode:
        """The picked mode; `Mode.AUTO` before a choice."""
        return self._chosen

    def shown_mode(self) -> Mode:
        """The mode whose button is on: the picked or recommended one."""
        return self._options.recommended if self._chosen == Mode.AUTO else self._chosen

    def ranks(self) -> int:
        return self._options.ranks

    def texts(self) -> dict[str, str]:
        return {**self.zero.texts(), **self.merging.texts(), "deepspeed_config": self._deepspeed}

    def set_mode(self, mode: str, texts: Mapping[str, str]) -> None:
        """Show a choice; "auto" (and anything without a button) leaves it to the recommendation."""
        self._chosen = next((known for known in self.radios if known == mode), Mode.AUTO)
        shown = {**default_mode_texts(), **texts}
        self.zero.set_texts(shown)
        self.merging.set_texts(shown)
        self._deepspeed = shown["deepspeed_config"]
        self._show()

    def _on_deepspeed_clicked(self) -> None:
        if self._deepspeed:
            self._deepspeed = ""
            self._on_changed()
            return
        start, kinds = str(PACKAGE_FOLDER / "resources"), "DeepSpeed configurations (*.json)"
        path, _ = QFileDialog.getOpenFileName(self.window(), "Choose a DeepSpeed configuration", start, kinds)
        if path:
            self.take_deepspeed(Path(path))

    def take_deepspeed(self, path: Path) -> None:
        """Use a DeepSpeed configuration of the person's own, or show why it cannot be used."""
        from core.config.layers import read_deepspeed_config
        from core.launch.deepspeed import check_text

        try:
            text = read_deepspeed_config(path)
            error = check_text(text, int(self.texts()["zero_stage"]))
        except ConfigError as unreadable:
            error = unreadable
        if error is None:
            self._deepspeed = text
            self._on_changed()
        self.deepspeed_problem.set_problem(error)

    def set_options(self, options: ModeOptions) -> None:
        if options.recommended not in self.radios:
            options = dataclasses.replace(options, recommended=Mode.DDP)
        self._options = options
        for mode, radio in self.radios.items():
            can = mode in options.supported
            radio.setEnabled(can)
            recommended = " Recommended for the selected devices." if mode == options.recommended else ""
            radio.setToolTip(mode.traits.meaning + recommended if can else "This recipe doesn't support this mode.")
        self._show()

    def show_problems(self, problems: Mapping[str, RankdeckError]) -> None:
        self.zero.show_problems(problems)
        self.merging.show_problems(problems)
        self.problem.set_problem(problems.get("mode"))
        self.deepspeed_problem.set_problem(problems.get("deepspeed_config"))

    def _show(self) -> None:
        shown, ranks = self.shown_mode(), self._options.ranks
        self.radios[shown].setChecked(True)
        alone = "The mode matters only with two or more devices." if ranks == 1 else ""
        of_program = shown.traits.program_meaning if self._options.own_program else ""
        recommended = "Recommended. " if shown == self._options.recommended else ""
        self._meaning.setText(alone or recommended + (of_program or shown.traits.meaning))
        texts = self.texts()
        fields = () if alone or self._options.own_program else fields_of_mode(shown, texts)
        self.zero.setVisible(not self.zero.rows.keys().isdisjoint(fields))
        self.zero.show_only(fields)
        self._show_engines(texts)
        self.deepspeed.setVisible("deepspeed_config" in fields)
        self.install.setVisible("zero_stage" in fields and not self._options.deepspeed)
        self.merging.setVisible("merge_policy" in fields)
        self.merging.show_only(fields)
        averaged_apart = texts["merge_policy"] == "average" and not texts["sync_every"]
        self._average_warning.setVisible("merge_policy" in fields and averaged_apart)
        self.shown_changed.emit()

    def _show_engines(self, texts: Mapping[str, str]) -> None:
        reasons = self._options.reasons(self.shown_mode(), texts)
        self.zero.show_reasons(reasons)
        missing = reasons.get("deepspeed_config", "")
        auto = _ENGINES[self._options.engine({"zero_engine": "auto"})]
        engine = self.zero.rows["zero_engine"]
        engine.set_choice("auto", f"auto ({auto})")
        engine.set_choice("deepspeed", "DeepSpeed (not installed)" if missing else "DeepSpeed", missing)
        self.deepspeed.setText("Remove DeepSpeed file" if self._deepspeed else "DeepSpeed file…")
        self.deepspeed.setEnabled(not missing or bool(self._deepspeed))
        tip = _OWN_DEEPSPEED if self._deepspeed else _DEEPSPEED
        self.deepspeed.setToolTip(f"Unavailable: {missing}" if missing else tip)

    def _on_picked(self, mode: Mode) -> None:
        self._chosen = mode
        self._show()
        self.changed.emit()

    def _on_changed(self, *_: object) -> None:
        self._show()
        self.changed.emit()

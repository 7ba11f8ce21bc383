"""How several devices share the work: three radio buttons, what each means, and which one is recommended."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPalette, QStandardItemModel
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QRadioButton,
    QWidget,
)

from app.views.field_row import ProblemLabel
from core.config.run_config import FIELD_BY_NAME, MERGE_POLICIES
from core.errors import RankdeckError

_LABELS: Final = {"ddp": "&DDP", "independent": "Parallel-&independent", "zero": "&ZeRO stage"}
_MEANINGS: Final = {
    "ddp": "Every device trains a share of each batch and they agree on every step: one model, the same as one device "
    "would train, only faster.",
    "independent": "Every device trains a model of its own on its own chunks, without waiting for the others; at the "
    "end they are merged.",
    "zero": "Like DDP, and the optimizer's memory is shared out over the devices, so that a larger model fits.",
}
_LATER: Final = {
    2: "Stage 2 (gradients shared out too) is not in this version.",
    3: "Stage 3 (weights shared out too) is not in this version.",
}
_AVERAGE: Final = (
    "⚠ Averaging models that were trained apart is usually worse than the best of them. Both are measured, and the "
    "better one is exported."
)
_MERGES: Final = {"best": "keep the best", "average": "average all", "none": "keep every one"}


class ModePicker(QWidget):
    """Mode, ZeRO stage and merge policy. The mode is "auto" until the person picks one: the recommended is shown."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chosen = "auto"
        self._recommended = "ddp"
        self._ranks = 0
        self._group = QButtonGroup(self)
        self._radios = {mode: QRadioButton(text) for mode, text in _LABELS.items()}
        self.stage = QComboBox()
        self.stage.setAccessibleName("ZeRO stage")
        self._meaning = QLabel()
        self._meaning.setWordWrap(True)
        self._meaning.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.merge = QComboBox()
        self.merge_every = QLineEdit()
        self._merge_box = QWidget()
        self._average_warning = QLabel(_AVERAGE)
        self._average_warning.setWordWrap(True)
        self.problem = ProblemLabel()
        self.merge_problem = ProblemLabel()
        self._fill()
        self._lay_out()
        self._show()

    def _fill(self) -> None:
        for mode, radio in self._radios.items():
            self._group.addButton(radio)
            radio.setObjectName(f"mode_{mode}")
            radio.setAccessibleDescription(_MEANINGS[mode])
            radio.clicked.connect(lambda _on, mode=mode: self._on_picked(mode))
        for stage in (1, 2, 3):
            self.stage.addItem(str(stage), stage)
            if stage in _LATER:
                self.stage.setItemText(stage - 1, f"{stage}: not in this version")
                self.stage.setItemData(stage - 1, _LATER[stage], Qt.ItemDataRole.ToolTipRole)
                model = self.stage.model()
                if isinstance(model, QStandardItemModel):
                    model.item(stage - 1).setEnabled(False)
        self.stage.setToolTip("1 shares out the optimizer's state.\n" + "\n".join(_LATER.values()))
        self.stage.currentIndexChanged.connect(self._on_changed)
        for policy in MERGE_POLICIES:
            self.merge.addItem(_MERGES[policy], policy)
        self.merge.setToolTip(FIELD_BY_NAME["merge_policy"].help)
        self.merge.setAccessibleName("Merge policy")
        self.merge.currentIndexChanged.connect(self._on_changed)
        self.merge_every.setPlaceholderText("only at the end")
        self.merge_every.setAccessibleName("Merge every so many chunks")
        self.merge_every.setToolTip(FIELD_BY_NAME["merge_every_chunks"].help)
        self.merge_every.textEdited.connect(self._on_changed)

    def _lay_out(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(4)
        zero = QHBoxLayout()
        zero.setSpacing(8)
        zero.addWidget(self._radios["zero"])
        zero.addWidget(self.stage)
        zero.addStretch(1)
        grid.addWidget(self._radios["ddp"], 0, 0)
        grid.addWidget(self._radios["independent"], 1, 0)
        grid.addLayout(zero, 2, 0)
        grid.addWidget(self._meaning, 3, 0)
        grid.addWidget(self.problem, 4, 0)
        grid.addWidget(self._merge_box, 5, 0)
        box = QGridLayout(self._merge_box)
        box.setContentsMargins(0, 4, 0, 0)
        box.setHorizontalSpacing(8)
        box.setVerticalSpacing(4)
        box.setColumnStretch(1, 1)
        for row, (text, editor) in enumerate((("Merge", self.merge), ("Merge every", self.merge_every))):
            label = QLabel(text)
            label.setBuddy(editor)
            box.addWidget(label, row, 0)
            box.addWidget(editor, row, 1)
        box.addWidget(QLabel("chunks"), 1, 2)
        box.addWidget(self.merge_problem, 2, 0, 1, 3)
        box.addWidget(self._average_warning, 3, 0, 1, 3)

    # --- what is chosen ----------------------------------------------------------------------------------

    def mode(self) -> str:
        """ "auto", "ddp", "independent" or "zero"."""
        return self._chosen

    def set_mode(self, mode: str, stage: int = 1, merge: str = "best", merge_every: str = "") -> None:
        """Shows a choice; "auto" (and anything without a button) leaves it to the recommendation."""
        self._chosen = mode if mode in self._radios else "auto"
        for combo, value in ((self.stage, stage if stage not in _LATER else 1), (self.merge, merge)):
            blocked = combo.blockSignals(True)
            combo.setCurrentIndex(max(0, combo.findData(value)))
            combo.blockSignals(blocked)
        self.merge_every.setText(merge_every)
        self._show()

    def zero_stage(self) -> int:
        """The ZeRO stage."""
        return int(self.stage.currentData())

    def merge_policy(self) -> str:
        """What independent ranks do at the end."""
        return str(self.merge.currentData())

    def radio(self, mode: str) -> QRadioButton:
        """The button of a mode."""
        return self._radios[mode]

    # --- what the surroundings say -----------------------------------------------------------------------

    def set_surroundings(self, recommended: str, ranks: int, supported: Collection[str]) -> None:
        """What is recommended for the ticked devices, how many they are, and which modes the recipe can."""
        self._recommended = recommended if recommended in self._radios else "ddp"
        self._ranks = ranks
        for mode, radio in self._radios.items():
            can = mode in supported
            radio.setEnabled(can)
            radio.setToolTip(_MEANINGS[mode] if can else "This recipe cannot be trained in this mode.")
        self._show()

    def show_problem(self, mode: RankdeckError | None, merge: RankdeckError | None) -> None:
        """Marks mode or merging as wrong, with the reason."""
        self.problem.set_problem(mode)
        self.merge_problem.set_problem(merge)

    def _show(self) -> None:
        shown = self._recommended if self._chosen == "auto" else self._chosen
        self._radios[shown].setChecked(True)
        for mode, radio in self._radios.items():
            hint = "  (recommended)" if mode == self._recommended and self._ranks > 1 else ""
            radio.setText(_LABELS[mode] + hint)
        alone = "One device trains alone; the mode matters from two devices on." if self._ranks == 1 else ""
        self._meaning.setText(alone or _MEANINGS[shown])
        self.stage.setEnabled(shown == "zero")
        self._merge_box.setVisible(shown == "independent" and self._ranks != 1)
        self._average_warning.setVisible(self.merge_policy() == "average")

    def _on_picked(self, mode: str) -> None:
        self._chosen = mode
        self._show()
        self.changed.emit()

    def _on_changed(self, *_: object) -> None:
        self._show()
        self.changed.emit()

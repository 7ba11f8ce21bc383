"""Fields of a user's script with an editor of their own: its interpreter, and the charts of printed names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from app.form.field_row import Editor, FieldRow
from app.widgets.build import icon_button, narrow
from app.widgets.steady import ComboBox
from core.config.fields import FieldSpec
from core.machine.interpreters import Interpreter

OWN: Final = "Rankdeck's own"


class InterpreterRow(FieldRow):
    """A path, with this machine's Pythons to choose from; any other may be typed."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        self._known: dict[str, str] = {}
        super().__init__(spec, parent)

    def _make_editor(self, parent: QWidget) -> Editor:
        combo = ComboBox(parent)
        combo.setEditable(True)
        combo.setInsertPolicy(ComboBox.InsertPolicy.NoInsert)
        combo.setCompleter(None)  # type: ignore[arg-type]  # it would complete the descriptions, not the paths
        narrow(combo)
        line = combo.lineEdit()
        assert line is not None
        line.setPlaceholderText(OWN)
        line.setAccessibleName(self.spec.label)
        line.textEdited.connect(self._on_typed)
        combo.activated.connect(self._on_activated)
        self.line: QLineEdit = line
        self._add_browse(parent)
        return combo

    def show_interpreters(self, found: Sequence[Interpreter]) -> None:
        combo, text = self.editor, self.line.text()
        assert isinstance(combo, ComboBox)
        with QSignalBlocker(combo):
            combo.clear()
            for item in found:
                combo.addItem(_interpreter_text(item), "" if item.is_own else str(item.path))
                combo.setItemData(combo.count() - 1, str(item.path), Qt.ItemDataRole.ToolTipRole)
            combo.setCurrentIndex(-1)
        self.line.setText(text)
        self._known = {str(item.path): _interpreter_text(item) for item in found}
        self._known[""] = next((_interpreter_text(item) for item in found if item.is_own), "")
        # The texts are longer than the field: the list may be wider than it.
        combo.view().setMinimumWidth(combo.view().sizeHintForColumn(0) + 32)
        self._show_known()

    def text(self) -> str:
        return self.line.text()

    def set_text(self, text: str) -> None:
        """Show a path without a signal."""
        if self.line.text() != text:
            self.line.setText(text)
            self.line.setCursorPosition(0)
        self._show()

    def set_placeholder(self, text: str) -> None:
        self.line.setPlaceholderText(text or OWN)

    def _show(self) -> None:
        super()._show()
        self._show_known()

    def _show_known(self) -> None:
        known = self._known.get(self.line.text().strip(), "")
        self.editor.setToolTip("\n".join(filter(None, (known, self.line.text(), self._help))))

    def _on_typed(self, *_: object) -> None:
        self._show_known()
        self._on_edited()

    def _on_activated(self, row: int) -> None:
        assert isinstance(self.editor, ComboBox)
        self.line.setText(str(self.editor.itemData(row)))
        self.line.setCursorPosition(0)
        self._on_typed()


def _interpreter_text(item: Interpreter) -> str:
    """A Python's description; Rankdeck's own is named so even where it was found beside the script."""
    return item.text if not item.is_own or item.name == OWN else f"{OWN}, {item.text}"


class ChartsRow(FieldRow):
    """Printed names and their charts as a line, with a button that shows a table."""

    table_requested = Signal()

    def _make_editor(self, parent: QWidget) -> Editor:
        editor = super()._make_editor(parent)
        assert isinstance(editor, QLineEdit)
        editor.setPlaceholderText("as printed")
        self.browse = icon_button("more", "Choose which printed names to chart", name="Charts as a table")
        self.browse.setParent(parent)
        self.browse.clicked.connect(self.table_requested)
        return editor

    def set_placeholder(self, text: str) -> None:
        super().set_placeholder(text or "as printed")


# How fields of the recipe `script` are edited; the others are as in any form.
SCRIPT_ROWS: Final[Mapping[str, type[FieldRow]]] = {"python": InterpreterRow, "charts": ChartsRow}

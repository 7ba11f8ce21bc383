"""Tags dialog: the tags of one or several runs, chosen from those in use or typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialogButtonBox, QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.widgets.build import heading, muted_label, named
from app.widgets.dialog import Dialog
from app.widgets.empty_note import WithNote
from core.errors import UsageError
from core.run_folder.notes import RunNotes

HINT: Final = "Add a tag, then press Enter"
NONE_YET: Final = "No run has a tag yet."
HELP: Final = "Find tagged runs in the filter with tag:night."


class TagsDialog(Dialog):
    """A list of tags to tick. With several runs, a half tick means that some of them have the tag.

    Args:
        title: The run's name, or how many runs.
        notes: Of each run.
        known: Tags that other runs have.

    Signals:
        tags_chosen: ``(added, removed)``.
    """

    tags_chosen = Signal(object, object)

    def __init__(
        self, title: str, notes: Sequence[RunNotes], known: Sequence[str], parent: QWidget | None = None
    ) -> None:
        super().__init__("Tags", parent)
        self._notes = list(notes)
        self._before: dict[str, Qt.CheckState] = {}
        self.line = named(QLineEdit(placeholderText=HINT), "New tag")
        self.list = named(QListWidget(), "Tags")
        for tag in sorted({*known, *(tag for one in notes for tag in one.tags)}):
            count = sum(tag in one.tags for one in notes)
            state = Qt.CheckState.Checked if count == len(notes) else Qt.CheckState.PartiallyChecked
            self._before[tag] = state if count else Qt.CheckState.Unchecked
            self._add(tag, self._before[tag])
        self.add_standard(QDialogButtonBox.StandardButton.Ok, QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self._on_accepted)
        self._page = WithNote(self.list, NONE_YET)
        self._page.set_empty(not self.list.count())
        parts = (heading(title), self.line, self.notice, self._page, muted_label(HELP))
        self.lay_out(*parts, grow=self._page, size=(340, 380))
        self.line.setFocus()

    def _add(self, tag: str, state: Qt.CheckState) -> QListWidgetItem:
        item = QListWidgetItem(tag)
        item.setFlags(Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        item.setCheckState(state)
        self.list.addItem(item)
        return item

    def _take_typed(self) -> bool:
        """Ticks the tags in the line; False, with the reason in sight, if one of them cannot be used."""
        typed = self.line.text().split()
        try:
            RunNotes().tagged(typed)
        except UsageError as error:
            self.notice.show_error(error)
            return False
        self.notice.clear()
        self.line.clear()
        self._page.set_empty(not self.list.count() and not typed)
        for tag in (text.lower() for text in typed):
            found = self.list.findItems(tag, Qt.MatchFlag.MatchFixedString)
            item = found[0] if found else self._add(tag, Qt.CheckState.Checked)
            item.setCheckState(Qt.CheckState.Checked)
            self.list.setCurrentItem(item)
        return True

    def _differences(self) -> tuple[list[str], list[str]]:
        """Tags that were ticked, and tags whose tick was taken away."""
        items = [self.list.item(number) for number in range(self.list.count())]
        none = Qt.CheckState.Unchecked
        changed = [item for item in items if item.checkState() != self._before.get(item.text(), none)]
        added = [item.text() for item in changed if item.checkState() == Qt.CheckState.Checked]
        return added, [item.text() for item in changed if item.checkState() == none]

    def _on_accepted(self) -> None:
        """Enter in the line adds its tags first; with an empty line, and as a click on OK, it is done."""
        is_typing = self.line.hasFocus() and bool(self.line.text().strip())
        if not self._take_typed() or is_typing:
            return
        added, removed = self._differences()
        try:
            for one in self._notes:
                one.tagged(added, removed)
        except UsageError as error:
            self.notice.show_error(error)
            return
        if added or removed:
            self.tags_chosen.emit(added, removed)
        self.accept()

"""Charts of a script: a table of printed names and the chart that each becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QDialogButtonBox, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from app.form.field_row import ProblemLabel
from app.run_data.chart_names import PLACES, ChartName, chart_names, place_of
from app.widgets.build import muted_label, named, narrow
from app.widgets.dialog import Dialog, Role
from app.widgets.steady import ComboBox
from core.errors import ConfigError
from core.recipes.user_script import DROP, charts_text, parse_charts, plain

AS_IT_IS: Final = "as printed"
LEFT_OUT: Final = "not charted"
# A script that prints each layer's norm has thousands of names; what is beyond can be added by hand.
MOST_ROWS: Final = 60
ROW_PX: Final = 36
_HELP: Final = (
    "Each name that the script prints is drawn in the chart next to it. The list holds the names that the selected "
    "run has printed. Your choices are saved with the next run that you start."
)
_NOTHING_CHARTED: Final = (
    "None of the selected run's output was charted. These are the printed names and their last values. Choose "
    "a chart for those that matter, such as the loss and the step, and start the script again."
)
_PRINTED, _NUMBERS, _CHART, _PLACE = range(4)


class ChartsDialog(Dialog):
    """A row a printed name; its chart is chosen from those with a meaning, or typed.

    Args:
        text: What the field holds, see `core.recipes.user_script.parse_charts`; what cannot be read is not shown.
        seen: Printed name → chart in the run that is shown.
        unread: Printed name → its last numbers, where nothing that the run printed could be charted.

    Signals:
        chosen: The field's new text.
    """

    chosen = Signal(str)

    def __init__(
        self,
        text: str,
        seen: Mapping[str, str],
        parent: QWidget | None = None,
        *,
        unread: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__("Charts of the script", parent)
        self._unread = unread or {}
        self.table = named(QTableWidget(0, 4), "Charts for printed names")
        self.table.setHorizontalHeaderLabels(["Printed name", "Last values", "Chart", "Drawn in"])
        self.table.setColumnHidden(_NUMBERS, not self._unread)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(ROW_PX)
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.table.setTabKeyNavigation(False)
        header = self.table.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for column in (_PRINTED, _CHART):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        for column in (_NUMBERS, _PLACE):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        self.problem = ProblemLabel()
        self.use = self.add_button("&Use these", Role.AcceptRole)
        self.add = self.add_button("&Add a name", Role.ActionRole)
        self.add.clicked.connect(self._on_add_clicked)
        self.add_standard(QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self._on_accepted)
        hint = muted_label(_NOTHING_CHARTED if self._unread else _HELP)
        self.lay_out(hint, self.table, self.problem, grow=self.table, size=(560, 420))
        self._filling = True
        self._fill(text, seen)
        self._filling = False
        self.table.itemChanged.connect(self._check)
        self._check()

    def combo(self, row: int) -> ComboBox:
        found = self.table.cellWidget(row, _CHART)
        assert isinstance(found, ComboBox)
        return found

    def choose(self, row: int, chart: str) -> None:
        """Sets a row's chart as a person would; empty: as it is printed."""
        combo = self.combo(row)
        index = combo.findData(chart)
        if index >= 0:
            combo.setCurrentIndex(index)
        else:
            combo.setEditText(chart)

    def _fill(self, text: str, seen: Mapping[str, str]) -> None:
        try:
            chosen = parse_charts(text)
        except ConfigError:
            chosen = {}
        for name in chart_names(chosen, seen)[: max(MOST_ROWS, len(chosen))]:
            self._add_row(name)
        if not self.table.rowCount():
            self._add_row(ChartName("", "", True))

    def _add_row(self, name: ChartName) -> None:
        row = self.table.rowCount()
        item = QTableWidgetItem(name.printed)
        item.setData(Qt.ItemDataRole.UserRole, "" if name.chosen else name.chart)
        with QSignalBlocker(self.table):
            self.table.insertRow(row)
            self.table.setItem(row, _PRINTED, item)
            for column, shown in ((_NUMBERS, self._unread.get(name.printed, "")), (_PLACE, "")):
                fixed = QTableWidgetItem(shown)
                fixed.setFlags(Qt.ItemFlag.ItemIsEnabled)
                self.table.setItem(row, column, fixed)
            self.table.setCellWidget(row, _CHART, self._make_combo(name))
        self.setTabOrder(self.combo(row - 1) if row else self.table, self.combo(row))
        self.choose(row, name.chart if name.chosen else "")

    def _make_combo(self, name: ChartName) -> ComboBox:
        combo = named(ComboBox(), f"Chart of {name.printed}" if name.printed else "Chart of the new name")
        combo.setEditable(True)
        combo.setInsertPolicy(ComboBox.InsertPolicy.NoInsert)
        usual = "" if name.chosen or name.chart == name.printed else f" ({name.chart})"
        combo.addItem(AS_IT_IS + usual, "")
        combo.addItem(LEFT_OUT, DROP)
        for chart in PLACES:
            combo.addItem(chart, chart)
        combo.editTextChanged.connect(self._check)
        narrow(combo, 8)
        return combo

    def _printed(self, row: int) -> str:
        item = self.table.item(row, _PRINTED)
        return "" if item is None else item.text().strip()

    def _chart(self, row: int) -> str:
        combo = self.combo(row)
        index = combo.findText(combo.currentText())
        return str(combo.itemData(index)) if index >= 0 else combo.currentText().strip()

    def charts(self) -> dict[str, str]:
        """Printed name → chart, of the rows in which something was chosen."""
        rows = ((self._printed(row), self._chart(row)) for row in range(self.table.rowCount()))
        return {plain(printed): chart for printed, chart in rows if printed and chart}

    def _check(self, *_: object) -> None:
        if self._filling:
            return
        with QSignalBlocker(self.table):
            for row in range(self.table.rowCount()):
                place, printed = self.table.item(row, _PLACE), self.table.item(row, _PRINTED)
                if place is not None and printed is not None:
                    usual = str(printed.data(Qt.ItemDataRole.UserRole) or plain(printed.text()))
                    place_text = place_of(self._chart(row) or usual) if self._printed(row) else ""
                    place.setText(place_text[:1].upper() + place_text[1:])
        error: ConfigError | None = None
        try:
            parse_charts(charts_text(self.charts()))
        except ConfigError as wrong:
            error = wrong
        self.problem.set_problem(error)
        self.use.setEnabled(error is None)

    def _on_add_clicked(self) -> None:
        self._add_row(ChartName("", "", True))
        row = self.table.rowCount() - 1
        self.table.setCurrentCell(row, _PRINTED)
        item = self.table.item(row, _PRINTED)
        if item is not None:
            self.table.editItem(item)

    def _on_accepted(self) -> None:
        self.chosen.emit(charts_text(self.charts()))
        self.accept()

"""Charts of a script: a table of printed names and the chart that each becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialogButtonBox, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from app.form.field_row import ProblemLabel
from app.run_data.chart_names import CHARTS, ChartName, chart_names
from app.widgets.build import muted_label, named, narrow
from app.widgets.dialog import Dialog, Role
from app.widgets.steady import ComboBox
from core.errors import ConfigError
from core.recipes.user_script import DROP, charts_text, parse_charts, plain

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
_PRINTED, _NUMBERS, _CHART = range(3)


class ChartsDialog(Dialog):
    """A row for each printed name; its chart is chosen from those with a meaning, or typed.

    Args:
        text: The field's text, as `core.recipes.user_script.parse_charts` reads it.
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
        self.table = named(QTableWidget(0, 3), "Charts for printed names")
        self.table.setHorizontalHeaderLabels(["Printed name", "Last values", "Chart"])
        self.table.setColumnHidden(_NUMBERS, not self._unread)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(ROW_PX)
        self.table.setTabKeyNavigation(False)
        for column in (_PRINTED, _CHART):
            self.table.horizontalHeader().setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self.problem = ProblemLabel()
        self.use = self.add_button("&Use these", Role.ActionRole)
        self.add = self.add_button("&Add a name", Role.ActionRole)
        self.add.clicked.connect(self._on_add_clicked)
        self.add_standard(QDialogButtonBox.StandardButton.Cancel)
        self.use.setDefault(True)
        self.use.clicked.connect(self._on_use_clicked)
        hint = muted_label(_NOTHING_CHARTED if self._unread else _HELP)
        self.lay_out(hint, self.table, self.problem, grow=self.table, size=(560, 420))
        self._fill(text, seen)

    def combo(self, row: int) -> ComboBox:
        found = self.table.cellWidget(row, _CHART)
        assert isinstance(found, ComboBox)
        return found

    def choose(self, row: int, chart: str) -> None:
        """Set a row's chart as a person would; empty: as it is printed."""
        combo = self.combo(row)
        index = combo.findData(chart)
        combo.setCurrentIndex(index) if index >= 0 else combo.setEditText(chart)

    def _fill(self, text: str, seen: Mapping[str, str]) -> None:
        try:
            chosen = parse_charts(text)
        except ConfigError:
            chosen = {}
        names = chart_names(chosen, seen)[: max(MOST_ROWS, len(chosen))]
        for name in names or [ChartName("", "", True)]:
            self._add_row(name)

    def _add_row(self, name: ChartName) -> None:
        row = self.table.rowCount()
        numbers = QTableWidgetItem(self._unread.get(name.printed, ""))
        numbers.setFlags(Qt.ItemFlag.ItemIsEnabled)
        self.table.insertRow(row)
        self.table.setItem(row, _PRINTED, QTableWidgetItem(name.printed))
        self.table.setItem(row, _NUMBERS, numbers)
        self.table.setCellWidget(row, _CHART, _make_combo(name))
        self.setTabOrder(self.combo(row - 1) if row else self.table, self.combo(row))
        self.choose(row, name.chart if name.chosen else "")

    def charts(self) -> dict[str, str]:
        """Printed name → chart, of the rows in which something was chosen."""
        found = {}
        for row in range(self.table.rowCount()):
            item, combo = self.table.item(row, _PRINTED), self.combo(row)
            index = combo.findText(combo.currentText())
            chart = str(combo.itemData(index)) if index >= 0 else combo.currentText().strip()
            if item is not None and item.text().strip() and chart:
                found[plain(item.text().strip())] = chart
        return found

    def _on_add_clicked(self) -> None:
        self._add_row(ChartName("", "", True))
        self.table.setCurrentCell(self.table.rowCount() - 1, _PRINTED)
        self.table.editItem(self.table.currentItem())

    def _on_use_clicked(self) -> None:
        text = charts_text(self.charts())
        try:
            parse_charts(text)
        except ConfigError as error:
            self.problem.set_problem(error)
        else:
            self.chosen.emit(text)
            self.accept()


def _make_combo(name: ChartName) -> ComboBox:
    combo = named(ComboBox(), f"Chart of {name.printed}" if name.printed else "Chart of the new name")
    combo.setEditable(True)
    combo.setInsertPolicy(ComboBox.InsertPolicy.NoInsert)
    usual = "" if name.chosen or name.chart == name.printed else f" ({name.chart})"
    combo.addItem(f"as printed{usual}", "")
    combo.addItem("not charted", DROP)
    for chart in CHARTS:
        combo.addItem(chart, chart)
    narrow(combo, 8)
    return combo

"""Keeps Setup current: its devices, the checks of its draft, the size of its data, the price of synchronising."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.controllers.setup import SetupWiring
from app.controllers.setup_checks import DatasetSize, Drafting
from app.controllers.sync_pricing import Pricing
from app.models.device_table import DeviceTable
from app.models.recipe_list import RecipeList
from app.models.run_data import RunData
from app.state.preview_text import data_text
from app.state.setup_form import CheckedDraft
from app.views.window.main_window import MainWindow


class SetupInputs(QObject):
    """Connects Setup with the models and checks that it depends on."""

    def __init__(
        self,
        window: MainWindow,
        drafting: Drafting,
        aids: SetupWiring,
        pricing: Pricing,
        table: DeviceTable,
        recipes: RecipeList,
        data: RunData,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._drafting = drafting
        self._aids = aids
        self._pricing = pricing
        self._table = table
        self._data = data
        self._connect(recipes)

    def _connect(self, recipes: RecipeList) -> None:
        setup, drafting, pricing = self._window.setup, self._drafting, self._pricing
        self._table.devices_changed.connect(self._on_devices_changed)
        self._table.sampled.connect(setup.devices.show_samples)
        recipes.listed.connect(setup.set_recipes)
        setup.draft_changed.connect(self.check_draft)
        drafting.checked.connect(self._on_checked)
        drafting.mode_options_changed.connect(setup.mode.set_options)
        drafting.dataset_found.connect(self._on_dataset_found)
        drafting.dataset_failed.connect(setup.data.show_problem)
        interval = setup.mode.sync_interval
        interval.measure_requested.connect(pricing.measure)
        pricing.price_changed.connect(interval.show_price)
        pricing.measuring_changed.connect(interval.show_measuring)
        pricing.failed.connect(setup.notice.show_error)
        self._data.changed.connect(self._on_data_changed)
        self._data.reset.connect(self._on_data_changed)

    def check_draft(self) -> None:
        """Checks what Setup holds, as after an edit."""
        setup = self._window.setup
        setup.notice.clear()
        self._drafting.update(setup.draft(), setup.chosen_recipe(), setup.devices.selected())
        self._aids.update(setup.draft(), setup.chosen_recipe())
        self._pricing.update(setup.devices.selected(), setup.mode.sync_interval.every())
        self._pricing.show_run(self._data.series)

    def _on_devices_changed(self) -> None:
        devices = self._table.devices
        self._window.setup.devices.set_devices(devices, self._table.problem, self._table.no_cuda)
        self.check_draft()

    def _on_checked(self, checked: CheckedDraft, steps_per_epoch: int | None) -> None:
        setup = self._window.setup
        setup.show_checked(checked)
        setup.summary.show_checked(checked, steps_per_epoch, len(setup.devices.selected()))
        self._window.welcome.show_plan(setup.plan_text(checked))

    def _on_dataset_found(self, size: DatasetSize) -> None:
        data = self._window.setup.data
        data.show_problem(None)
        data.show_found(data_text(size.path, size.files, size.size_bytes))

    def _on_data_changed(self, *_: object) -> None:
        if self._window.setup.mode.sync_interval.isVisible():
            self._pricing.show_run(self._data.series)

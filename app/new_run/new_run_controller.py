"""Keeps New run current, and carries out what it asks for: checks, devices, packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject

from app.devices.device_table import DeviceTable
from app.draft.draft import CheckedDraft
from app.draft.draft_checks_controller import DraftChecksController
from app.draft.recipe_list import RecipeList
from app.new_run.install_controller import InstallController
from app.new_run.new_run_sheet import NewRunSheet
from app.new_run.preview_controller import PreviewController
from app.new_run.tune_controller import TuneController
from app.run_data.chart_names import names_in, unread_numbers
from app.shown_run.run_data import RunData
from app.threads.background import OperationRunner
from app.widgets.notice_bar import Step
from app.widgets.tab_order import chain_tabs
from core.data.dataset import NO_DATASET
from core.data.hub import ALLOW_DOWNLOAD, DownloadNeededError
from core.errors import RankdeckError
from core.machine.cuda_torch import cuda_torch_offer
from core.machine.devices import DeviceSample
from core.machine.packages import MissingPackageError, Offer, offer_for
from core.measure.preview_text import data_text

if TYPE_CHECKING:
    from app.new_run.install_dialog import InstallDialog

CUDA_CAUSE: Final = (
    "Rankdeck's Python has a build of PyTorch for the CPU only. A build for GPUs takes its place; the download is "
    "about 3 GB. Stop runs that train on this machine first: they use the build that is replaced."
)


class NewRunController(QObject):
    """Connects the sheet with the checks and estimates of its draft."""

    def __init__(
        self,
        sheet: NewRunSheet,
        drafting: DraftChecksController,
        runner: OperationRunner,
        table: DeviceTable,
        recipes: RecipeList,
        data: RunData,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._sheet = sheet
        self._drafting = drafting
        self._table = table
        self._data = data
        self.previewing = PreviewController(self._sheet, drafting, self.remedies, self)
        self.installing = InstallController(runner, self)
        self.install_dialog: InstallDialog | None = None
        self.tune_control = TuneController(self._sheet, drafting, table, self)
        self._sheet.problems.remedies = self.remedies
        recipes.listed.connect(self._sheet.set_recipes)
        self._connect()

    def _connect(self) -> None:
        sheet, drafting = self._sheet, self._drafting
        self._table.devices_changed.connect(self._on_devices_changed)
        self._table.sampled.connect(sheet.devices.show_samples)
        self._table.sampled.connect(self._on_sampled)
        sheet.draft_changed.connect(self.check_draft)
        sheet.watched_changed.connect(drafting.set_watched)
        sheet.charts_requested.connect(self._on_charts_requested)
        sheet.mode.install_requested.connect(lambda: self.offer_fix("install_deepspeed"))
        sheet.devices.cuda_requested.connect(lambda: self.offer_fix("install_cuda"))
        sheet.summary.memory.remedy_requested.connect(sheet.change_settings)
        sheet.balance.measure_requested.connect(drafting.memory.measure_again)
        drafting.checked.connect(self._on_checked)
        drafting.mode_options_changed.connect(sheet.mode.set_options)
        drafting.noted.connect(sheet.summary.show_notes)
        drafting.interpreters_found.connect(sheet.show_interpreters)
        drafting.memory.counted.connect(sheet.summary.show_parameters)
        drafting.memory.estimated.connect(sheet.summary.show_memory)
        drafting.memory.estimated.connect(lambda text: sheet.balance.show_balance(text.balance))
        self.installing.installed.connect(self.look_again)

    def close(self) -> None:
        self.previewing.close()
        self.installing.close()
        self.tune_control.close()

    # --- the draft ---------------------------------------------------------------------------------------

    def check_draft(self) -> None:
        sheet, group = self._sheet, self._sheet.machines.chosen()
        sheet.notice.clear()
        machine, there = ("", None) if group is None else (group.machine.name, group.look)
        devices, looking = sheet.chosen_devices(), sheet.devices.is_looking
        draft, recipe = sheet.draft(), sheet.what.chosen()
        self._drafting.update(draft, recipe, devices, looking=looking, machine=machine, there=there)

    def look_again(self) -> None:
        """Read this machine, its Python's packages and the dataset again, after an installation."""
        self._table.look_again()
        self._drafting.look_again()
        self.previewing.look()

    def _on_sampled(self, samples: Sequence[DeviceSample]) -> None:
        self._drafting.memory.take_samples(samples, is_training=self._table.has_live_runs or self.tune_control.is_going)
        self.tune_control.update()

    def _on_devices_changed(self) -> None:
        table = self._table
        self._sheet.devices.set_devices(table.devices, table.problem, table.no_cuda, table.cuda_build)
        chain_tabs(self._sheet)
        self.check_draft()

    def _on_checked(self, checked: CheckedDraft, steps_per_epoch: int | None) -> None:
        sheet = self._sheet
        sheet.show_checked(checked, steps_per_epoch)
        sheet.summary.show_checked(checked, steps_per_epoch, len(sheet.chosen_devices()))
        why_not = None
        if checked.preview is None:
            why_not = "Fix the marked settings first."
        elif checked.preview.config.dataset_file == NO_DATASET:
            why_not = "This recipe generates its own samples."
        sheet.data.set_preview(why_not)
        size = self._drafting.size
        sheet.data.show_found("" if size is None else data_text(size.path, size.files, size.size_bytes))

    def _on_charts_requested(self) -> None:
        from app.new_run.charts_dialog import ChartsDialog  # here: the window opens without it

        sheet, events = self._sheet, self._data.series.events
        text = sheet.form.rows["charts"].text()
        dialog = ChartsDialog(text, names_in(events), sheet, unread=unread_numbers(events))
        dialog.chosen.connect(lambda text: sheet.set_field("charts", text))
        dialog.open()

    def remedies(self, error: RankdeckError) -> list[Step]:
        """Buttons that carry out a problem's next step."""
        sheet, rows = self._sheet, self._sheet.form.rows
        if isinstance(error, MissingPackageError):
            return [self.install_step(error)]
        switch = ALLOW_DOWNLOAD if isinstance(error, DownloadNeededError) else getattr(error, "allows", "")
        if switch in rows:
            allow = Step("Allow the download", lambda: sheet.set_field(switch, "true"))
            row = rows.get(getattr(error, "field", ""))
            choose = sheet.data.choose_file if row is None else row.choose
            return [allow, Step("Choose a file…" if row is None else "Choose a folder…", choose)]
        return []

    # --- packages ----------------------------------------------------------------------------------------

    def install_step(self, error: MissingPackageError) -> Step:
        return Step("Insta&ll…", lambda: self._open_install(offer_for(error.packages), error.cause))

    def offer_fix(self, fix: str) -> None:
        if fix == "install_cuda":
            gpus = [device for device in self._table.devices if device.kind == "cuda"]
            self._open_install(cuda_torch_offer(self._table.driver, gpus), CUDA_CAUSE)
        else:
            missing = MissingPackageError(("deepspeed",), "ZeRO by DeepSpeed")
            self._open_install(offer_for(missing.packages), missing.cause)

    def _open_install(self, offer: Offer, cause: str) -> None:
        if self.install_dialog is not None:
            self.install_dialog.raise_()
            return
        from app.new_run.install_dialog import InstallDialog  # here: the window opens without it

        self.install_dialog = dialog = InstallDialog(cause, offer, self.previewing.dialog or self._sheet.window())
        dialog.install_requested.connect(lambda: self.installing.install(offer))
        dialog.cancel_requested.connect(self.installing.cancel)
        dialog.finished.connect(self._on_install_closed)
        self.installing.printed.connect(dialog.append)
        self.installing.installed.connect(dialog.show_installed)
        self.installing.failed.connect(dialog.show_error)
        dialog.open()

    def _on_install_closed(self, _result: int) -> None:
        self.install_dialog = None

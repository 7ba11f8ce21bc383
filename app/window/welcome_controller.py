"""The welcome page's four ways to begin, and what it says of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.threads.background import Operation, OperationRunner
from app.window.welcome_text import machine_text, unused_gpus, use_text

if TYPE_CHECKING:
    from app.devices.device_table import DeviceTable
    from app.run.launch_controller import LaunchController
    from app.runs.run_list import RunList
    from app.window.main_window import MainWindow
    from core.machine.devices import DeviceSample
    from core.machine.platform import Platform
    from core.run_folder.store import RunEntry

LANGUAGE_MODEL = "hf_causal_lm"
UNCHANGED = "The present one stays as it is."


class WelcomeController(QObject):
    """Carries out the offers of the welcome page."""

    def __init__(
        self,
        window: MainWindow,
        launching: LaunchController,
        table: DeviceTable,
        runner: OperationRunner,
        runs: RunList,
        install: Callable[[str], None],
        runs_dir: Path,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._runs_seen = False
        self._samples: Sequence[DeviceSample] = ()
        self._launching = launching
        self._table = table
        self._runner = runner
        self._runs_dir = runs_dir
        self._platform: Platform | None = None
        self._free_bytes: int | None = None
        page = window.welcome
        page.demo.clicked.connect(self._on_demo_requested)
        page.model.clicked.connect(lambda: self._open_sheet(LANGUAGE_MODEL, "model"))
        page.script.clicked.connect(self._on_script_requested)
        page.install_gpu_build.clicked.connect(lambda: install("install_cuda"))
        runs.listed.connect(self._on_runs_listed)
        table.devices_changed.connect(self._show_machine)
        table.sampled.connect(self._on_sampled)
        window.new_run_made.connect(lambda: window.new_run.devices.selection_changed.connect(self._show_use))

    def open(self) -> None:
        place = self._runs_dir

        def work() -> tuple[Platform, int | None, str]:
            from core.environments.wanted import present_outdated_text
            from core.machine.drives import free_bytes
            from core.machine.platform import this_platform

            return this_platform(), free_bytes(place), present_outdated_text()

        def found(result: tuple[Platform, int | None, str]) -> None:
            self._platform, self._free_bytes, differences = result
            self._window.welcome.show_differences(differences and f"{differences} {UNCHANGED}")
            self._show_machine()

        self._runner.run(Operation(work, found, self._window.notice.show_error, topic="machine"))

    def _on_runs_listed(self, entries: Sequence[RunEntry]) -> None:
        """Hides the list of runs until there is, or was, one."""
        self._runs_seen = self._runs_seen or bool(entries)
        self._window.runs.setVisible(self._runs_seen)

    def _show_machine(self) -> None:
        if self._platform is not None:
            place = self._runs_dir.drive or str(self._runs_dir)
            text = machine_text(self._platform, self._free_bytes, place, self._table.devices)
            self._window.welcome.show_machine(text)
            self._window.welcome.show_torch_missing(self._platform.torch_version is None)
        self._show_use()

    def _on_sampled(self, samples: Sequence[DeviceSample]) -> None:
        self._samples = samples
        if self._window.welcome.isVisible():
            self._show_use()

    def _show_use(self) -> None:
        table, chosen, page = self._table, self._window.new_run.devices.selected(), self._window.welcome
        if not table.is_known:
            return
        by_uuid = {sample.uuid: sample for sample in self._samples}
        build = None if table.no_cuda else table.cuda_build
        page.show_found(use_text(chosen, self._samples))
        page.show_unused_gpus(unused_gpus(table.devices, by_uuid, chosen, build=build, driver=table.driver))

    def _on_demo_requested(self) -> None:
        """Starts MiniGPT with its defaults on the selected devices; New run stays as it is."""
        from app.draft.draft import Draft, check_draft
        from core.recipes.manifest import BUILT_IN, read_recipe

        if self._platform is None:
            self._open_sheet(Draft().recipe, "")
            return
        recipe, devices = read_recipe(BUILT_IN / Draft().recipe), self._window.new_run.devices.selected()
        draft = Draft(devices=tuple(device.uuid for device in devices))
        checked = check_draft(draft, recipe, devices, self._platform)
        if checked.run is not None:
            self._launching.start(checked.run)
        else:
            self._open_sheet(recipe.name, "")
            problem = next(iter(checked.problems.values()), None)
            if problem is not None:
                self._window.new_run.notice.show_error(problem)

    def _on_script_requested(self) -> None:
        from core.recipes.user_script import RECIPE

        self._open_sheet(RECIPE, "script")
        row = self._window.new_run.form.rows.get("script")
        if row is not None and row.browse is not None:
            row.browse.click()

    def _open_sheet(self, recipe: str, field: str) -> None:
        sheet = self._window.new_run
        self._window.actions_.new_run.setChecked(True)
        sheet.what.choose(recipe)
        if field:
            sheet.problems.go_to(field)

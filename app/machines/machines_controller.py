"""Control of other machines: their devices in New run, and the followers of runs there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.threads.background import Operation, OperationRunner
from core.errors import RankdeckError
from core.machines.machine_list import list_machines
from core.run_folder.remote_run import FILE_NAME
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from app.new_run.machine_groups import MachineGroup, MachineGroups
    from app.window.main_window import MainWindow
    from core.machines.answers import Devices
    from core.machines.machine import Machine


class MachinesController(QObject):
    """Keeps New run's groups current, and follows runs on other machines.

    Signals:
        failed: The reason why the list cannot be read, or a run on another machine cannot be followed.
    """

    failed = Signal(object)

    def __init__(self, window: MainWindow, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runs_dir = runs_dir
        # A machine that does not answer must not hold up anything else.
        self._runner = OperationRunner(self)
        self._groups: MachineGroups | None = None
        window.actions_.new_run.toggled.connect(self._on_new_run_toggled)

    def show_devices(self, groups: MachineGroups) -> None:
        """Fill New run's groups, and look at each machine."""
        self._groups = groups
        self._list()

    def follow_runs(self) -> None:
        """Follow those runs on other machines again that were being followed when this computer was switched off."""
        runs_dir = self._runs_dir

        def work() -> None:
            from core.machines.follow import followed

            for path in runs_dir.glob(f"*/{FILE_NAME}"):
                followed(RunStore(path.parent))

        self._runner.run(Operation(work, lambda _: None, self.failed.emit))

    def close(self) -> None:
        from core.machines.session import end_sessions

        end_sessions()
        self._runner.close()

    def _on_new_run_toggled(self, is_open: bool) -> None:
        """List again: machines are added and removed on the command line."""
        if is_open and self._groups is not None:
            self._list()

    def _list(self) -> None:
        self._runner.run(Operation(list_machines, self._on_listed, self.failed.emit, topic="list"))

    def _on_listed(self, machines: list[Machine]) -> None:
        if self._groups is not None:
            self._groups.set_machines(machines)
            for machine in machines:
                if self._groups.groups[machine.name].look is None:
                    self._look(machine, self._groups.groups)

    def _look(self, machine: Machine, groups: Mapping[str, MachineGroup]) -> None:
        """Read a machine's devices, for its group."""
        name = machine.name

        def work() -> Devices:
            from core.machines.session import look_at

            return look_at(machine)

        def looked(look: Devices) -> None:
            if name in groups:
                groups[name].show_look(look)

        def failed(error: RankdeckError) -> None:
            if name in groups:
                groups[name].show_error(error)

        self._runner.run(Operation(work, looked, failed, topic=f"look {name}"))

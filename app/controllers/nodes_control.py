"""Control of runs on several machines: starts this computer's part, and shows who is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, Qt, Signal

from app.controllers.background import Operation, OperationRunner
from core.errors import RankdeckError

if TYPE_CHECKING:
    from app.controllers.launch_controller import LaunchController
    from app.controllers.shown_run import Showing
    from app.views.new_run.new_run_sheet import NewRunSheet
    from app.views.nodes.nodes_page import NodesPage
    from app.views.window.main_window import MainWindow
    from core.launch.nodes.process import NodesProcess
    from core.launch.nodes.request import NodesRequest
    from core.launch.nodes.status import NodesStatus
    from core.launch.resolved import ResolvedRun
    from core.resume.plan import ResumePlan

WAITING: Final = "waiting for other machines"
_CLOSE_WAIT_S: Final = 5.0
_LOG: Final = "nodes.log"


class _Command:
    """This computer's part in a run, and the thread that reads what it tells."""

    def __init__(self, process: NodesProcess) -> None:
        self.process = process
        self.error: RankdeckError | None = None
        self.reader: threading.Thread | None = None


class NodesControl(QObject):
    """One run at a time waits; what is imported for it is imported when it is wanted.

    Attributes:
        page: Once a run has waited.
        status: The machines of the run that waits; None where none does.
    """

    _event_read = Signal(object, object)
    _ended = Signal(object)

    def __init__(
        self,
        window: MainWindow,
        launching: LaunchController,
        showing: Showing,
        runner: OperationRunner,
        runs_dir: Path,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._launching, self._showing = window, launching, showing
        self._runner, self._runs_dir = runner, runs_dir
        self._sheet: NewRunSheet | None = None
        self._waiting: _Command | None = None
        self._going: list[_Command] = []
        self._name = ""
        self._is_cancelled = self._is_closed = False
        self.page: NodesPage | None = None
        self.status: NodesStatus | None = None
        self._event_read.connect(self._on_event_read, Qt.ConnectionType.QueuedConnection)
        self._ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)

    def connect_sheet(self, sheet: NewRunSheet) -> None:
        """Offers this computer's network interfaces in New run."""
        self._sheet = sheet
        sheet.nodes.opened.connect(self._look_at_interfaces)
        sheet.nodes.waiting_requested.connect(self._show_page)
        self._look_at_interfaces()

    def close(self) -> None:
        self._is_closed = True
        if self._waiting is not None:
            self._waiting.process.interrupt()
            self._going.insert(0, self._waiting)
        for command in self._going:
            if command.reader is None:
                continue
            if command is self._waiting:
                command.reader.join(_CLOSE_WAIT_S)
            command.process.let_go()
            command.reader.join(_CLOSE_WAIT_S)

    def request_for(self, plan: ResumePlan) -> NodesRequest | None:
        """Where the machines of a resume meet; None where it is on this computer alone."""
        from core.launch.nodes.request import NodesRequest

        if plan.run_dir is None or plan.config.nodes is None or self._sheet is None:
            return None
        group = self._sheet.nodes
        values = {"nic": group.interface(), "rdzv_endpoint": group.endpoint()}
        return NodesRequest.from_values(plan.config.nodes, values)

    # --- start -------------------------------------------------------------------------------------------

    def start(self, run: ResolvedRun, request: NodesRequest, name: str = "") -> None:
        """Checks a run on this computer, and starts this computer's part in it."""
        runs_dir = self._runs_dir

        def arguments() -> list[str]:
            from core.launch.command_line import to_command_line
            from core.launch.preflight import check
            from core.run_folder.store import new_run_id

            checked = check(run, runs_dir)
            config = checked.run.config.replace(nodes=None)
            run_dir = runs_dir / new_run_id(config.recipe)
            return [*to_command_line(config, run.recipe)[1:], "--run-dir", str(run_dir), *request.flags]

        self._begin(arguments, name)

    def resume(self, plan: ResumePlan, request: NodesRequest, changes: Mapping[str, Any]) -> None:
        """Starts this computer's part in a run that is resumed on several machines."""

        def arguments() -> list[str]:
            from core.launch.command_line import change_flags

            return ["resume", str(plan.run_dir), *change_flags(changes), "--yes", *request.flags]

        self._begin(arguments, "")

    def _begin(self, arguments: Callable[[], Sequence[str]], name: str) -> None:
        if self._launching.busy:
            return
        self._name, self._is_cancelled, self.status = name, False, None
        self._launching.hold(WAITING)
        self._made_page().begin()
        self._show_waiting(True)
        self._show_page()
        folder = self._runs_dir

        def work() -> NodesProcess:
            from core.launch.nodes.process import NodesProcess
            from core.paths import data_folder

            process = NodesProcess(arguments(), folder, data_folder() / "logs" / _LOG)
            if self._is_closed:
                process.end()
            return process

        self._runner.run(Operation(work, self._on_begun, self._fail))

    def _on_begun(self, process: NodesProcess) -> None:
        self._waiting = command = _Command(process)
        if self._is_cancelled:
            process.interrupt()
        command.reader = threading.Thread(target=self._read, args=(command,), daemon=True)
        command.reader.start()

    def _read(self, command: _Command) -> None:
        for event in command.process.events():
            self._event_read.emit(command, event)
        self._ended.emit(command)

    def _on_event_read(self, command: _Command, event: dict[str, Any]) -> None:
        from core.launch.nodes.process import error_of
        from core.launch.nodes.status import NodesStatus

        error = error_of(event)
        if error is not None:
            command.error = error
            if command is self._waiting:
                self._made_page().show_error(error)
        status = NodesStatus.from_event(event)
        if status is None:
            return
        if status.phase == "training":
            self._on_training(command, Path(status.run_dir))
        elif command is self._waiting:
            self.status = status
            self._made_page().show_status(status)

    def _on_training(self, command: _Command, run_dir: Path) -> None:
        command.error = None
        if command is not self._waiting:
            return  # it has gone on, with other machines
        self._waiting = None
        self._going.append(command)
        self._release()
        name = self._name

        def work() -> None:
            from core.run_folder.notes import RunNotes, write_notes

            if name:
                write_notes(run_dir, RunNotes().renamed(name))

        def done(_: None) -> None:
            self._leave_page()
            self._launching.started.emit(run_dir)

        self._runner.run(Operation(work, done, self._window.notice.show_error))

    def _on_ended(self, command: _Command) -> None:
        if command is not self._waiting:
            self._going.remove(command)
            if command.error is not None and command.process.code:
                self._window.notice.show_error(command.error)
            return
        self._waiting = None
        if self._is_cancelled:
            self._release()
            self._leave_page()
        else:
            self._fail(command.error or command.process.failure())

    def _fail(self, error: RankdeckError) -> None:
        self._release()
        self._leave_page()
        self._launching.start_failed.emit(error)

    def _release(self) -> None:
        self._launching.hold("")
        self._show_waiting(False)
        self.status = None

    # --- the page ----------------------------------------------------------------------------------------

    def _made_page(self) -> NodesPage:
        from app.views.nodes.nodes_page import NodesPage  # here: the window opens without it

        if self.page is None:
            self.page = page = NodesPage()
            page.close_requested.connect(self._leave_page)
            page.cancel_requested.connect(self._on_cancel_requested)
            self._window.pages.addWidget(page)
        return self.page

    def _show_page(self) -> None:
        self._window.actions_.new_run.setChecked(False)
        self._window.show_page(self._made_page())

    def _show_waiting(self, is_waiting: bool) -> None:
        if self._sheet is not None:
            self._sheet.nodes.waiting.setVisible(is_waiting)

    def _leave_page(self) -> None:
        window = self._window
        if self.page is not None and window.pages.currentWidget() is self.page:
            window.show_page(window.welcome if self._showing.run_dir is None else window.run_page)

    def _on_cancel_requested(self) -> None:
        self._is_cancelled = True
        self._made_page().show_cancelling()
        if self._waiting is not None:
            self._waiting.process.interrupt()

    def _look_at_interfaces(self) -> None:
        def work() -> dict[str, str]:
            from core.launch.nodes.nic import addresses

            return addresses()

        def done(found: dict[str, str]) -> None:
            if self._sheet is not None:
                self._sheet.nodes.set_interfaces(found)

        self._runner.run(Operation(work, done, self._window.notice.show_error, topic="interfaces"))

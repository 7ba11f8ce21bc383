"""Installs missing packages: runs pip where a person asks for it, and ends it with its child processes."""

from __future__ import annotations

import codecs
import contextlib
from typing import Final

import psutil
from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from app.threads.background import Operation, OperationRunner
from core.environments.pip_failures import error_line, explain_pip
from core.errors import RankdeckError, full_stop, sentences
from core.machine.packages import Offer, missing_packages
from core.processes.exit_codes import describe_exit

END_LIMIT_MS: Final = 3000
_TAIL: Final = 4000


class InstallError(RankdeckError):
    title = "The packages were not installed"


class InstallController(QObject):
    """One installation at a time.

    Signals:
        printed: A piece of pip's output.
        installed: The packages can be imported.
        failed: The `InstallError`.
    """

    printed = Signal(str)
    installed = Signal()
    failed = Signal(object)

    def __init__(self, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._offer: Offer | None = None
        self._tail = ""
        self._cancelled = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._process = QProcess(self)
        self._process.setProcessChannelMode(QProcess.ProcessChannelMode.MergedChannels)
        self._process.readyReadStandardOutput.connect(self._on_output)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)

    @property
    def is_going(self) -> bool:
        return self._process.state() != QProcess.ProcessState.NotRunning

    def install(self, offer: Offer) -> None:
        """Run pip; do nothing while it runs already."""
        if self.is_going:
            return
        self._offer, self._tail, self._cancelled = offer, "", False
        self._decoder.reset()
        environment = QProcessEnvironment.systemEnvironment()
        for name, value in (("PYTHONUNBUFFERED", "1"), ("PYTHONUTF8", "1"), ("PIP_NO_COLOR", "1")):
            environment.insert(name, value)
        self._process.setProcessEnvironment(environment)
        self._process.start(offer.argv[0], list(offer.argv[1:]))

    def cancel(self) -> None:
        """End pip; packages that it has unpacked by then may stay."""
        if not self.is_going:
            return
        self._cancelled = True
        pid = self._process.processId()
        self._runner.run(Operation(lambda: end_tree(pid), lambda _: None, lambda _: None))

    def close(self) -> None:
        """End pip if it runs, and wait a bounded time."""
        if self.is_going:
            self.blockSignals(True)
            end_tree(self._process.processId())
            self._process.waitForFinished(END_LIMIT_MS)

    def _on_output(self) -> None:
        text = self._decoder.decode(bytes(self._process.readAllStandardOutput().data())).replace("\r\n", "\n")
        self._tail = (self._tail + text)[-_TAIL:]
        if text:
            self.printed.emit(text)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart and self._offer is not None:
            cause = f"{self._offer.argv[0]} could not be started ({self._process.errorString()})."
            self.failed.emit(InstallError(cause, "Run the command in a terminal."))

    def _on_finished(self, code: int, _status: QProcess.ExitStatus) -> None:
        self._on_output()
        offer = self._offer
        if offer is None:
            return
        if self._cancelled:
            self.failed.emit(InstallError("It was cancelled.", "Install again to complete it.", title="Cancelled"))
        elif code != 0:
            self.failed.emit(explain(self._tail, code))
        else:
            self._runner.run(Operation(lambda: missing_packages(offer.packages), self._on_looked, self.failed.emit))

    def _on_looked(self, missing: tuple[str, ...]) -> None:
        if not missing:
            self.installed.emit()
            return
        names = ", ".join(missing)
        cause = f"pip reported success, but {names} still cannot be imported."
        self.failed.emit(
            InstallError(
                cause, "See the output for the reason. There may be no build for this system or Python version."
            )
        )


def explain(output: str, code: int) -> InstallError:
    """Explain pip's failure by the end of its output and its exit code."""
    reason = full_stop(error_line(output) or f"pip {describe_exit(code)}")
    failure = explain_pip(output)
    if failure.cause:
        return InstallError(sentences(failure.cause, reason), failure.next_step)
    return InstallError(reason, "See the output for details. You can also run the command in a terminal.")


def end_tree(pid: int) -> None:
    """End a child that is not reaped yet, so that the number is still its own, and its descendants."""
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        # It starts nothing while its children are looked for.
        parent.suspend()
        for process in (*parent.children(recursive=True), parent):
            with contextlib.suppress(psutil.Error):
                process.kill()

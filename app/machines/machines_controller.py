"""Control of other machines: their page, their devices in New run, and the followers of runs there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from app.threads.background import Operation, OperationRunner
from core.errors import RankdeckError
from core.machines.machine_list import list_machines
from core.run_folder.remote_run import FILE_NAME
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from app.machines.machines_page import MachineCard, MachinesPage
    from app.new_run.machine_groups import MachineGroups
    from app.window.main_window import MainWindow
    from core.machines.answers import Devices
    from core.machines.machine import Machine


class MachinesController(QObject):
    """Carries out the page's intents, and keeps New run's groups current.

    Attributes:
        page: The page, once it was opened.

    Signals:
        failed: The reason why a run on another machine cannot be followed.
    """

    failed = Signal(object)
    _progressed = Signal(str, str)

    def __init__(self, window: MainWindow, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._runs_dir = window, runs_dir
        self._runner = OperationRunner(self)  # a machine that does not answer must not hold up anything else
        self._groups: MachineGroups | None = None
        self.page: MachinesPage | None = None
        self._progressed.connect(self._on_progressed, Qt.ConnectionType.QueuedConnection)
        window.actions_.machines.triggered.connect(self.open)

    def open(self) -> None:
        """Show the page, and look at each machine."""
        from app.machines.machines_page import MachinesPage  # here: the window opens without it

        if self.page is None:
            self.page = page = MachinesPage()
            page.close_requested.connect(self._window.show_home)
            page.card_made.connect(self._on_card_made)
        self._list()
        self._window.show_page(self.page)

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

    def _list(self) -> None:
        def failed(error: RankdeckError) -> None:
            if self.page is not None:
                self.page.notice.show_error(error)

        self._runner.run(Operation(list_machines, self._on_listed, failed, topic="list"))

    def _on_listed(self, machines: list[Machine]) -> None:
        if self.page is not None:
            self.page.set_machines(machines)
        if self._groups is not None:
            self._groups.set_machines(machines)
        for machine in machines:
            group = None if self._groups is None else self._groups.groups[machine.name]
            if self.page is not None or (group is not None and group.look is None):
                self._look(machine)

    def _look(self, machine: Machine) -> None:
        """Read a machine's devices, for its group and its card."""
        card, name = self._card(machine.name), machine.name
        if card is not None:
            if not card.check.isEnabled():
                return  # it is being checked or set up
            card.show_doing("Connecting…")

        def work() -> Devices:
            from core.machines.session import look_at

            return look_at(machine)

        def looked(look: Devices) -> None:
            if self._groups is not None and name in self._groups.groups:
                self._groups.groups[name].show_look(look)
            if (card := self._card(name)) is not None:
                card.show_doing("")
                card.state.set_full_text(_state_text(look))

        def failed(error: RankdeckError) -> None:
            if self._groups is not None and name in self._groups.groups:
                self._groups.groups[name].show_error(error)
            if (card := self._card(name)) is not None:
                card.show_error(error)

        self._runner.run(Operation(work, looked, failed, topic=f"look {name}"))

    def _on_card_made(self, card: MachineCard) -> None:
        card.check_requested.connect(functools.partial(self._check, card))
        card.setup_requested.connect(functools.partial(self._set_up, card))

    def _check(self, card: MachineCard) -> None:
        machine = card.machine

        def work() -> str:
            from core.machines.session import serving

            lines: list[str] = []
            with serving(machine) as session:
                session.run({"op": "doctor"}, lines.append)
            return "\n".join(lines)

        self._do(card, "Checking…", work)

    def _set_up(self, card: MachineCard) -> None:
        machine, report = card.machine, functools.partial(self._progressed.emit, card.machine.name)

        def work() -> str:
            from core.machines.setup import set_up

            set_up(machine, "auto", "", report)
            return f"{machine.name} is set up."

        self._do(card, "Connecting…", work)

    def _do(self, card: MachineCard, doing: str, work: Callable[[], str]) -> None:
        name = card.machine.name
        card.show_doing(doing)

        def succeeded(text: str) -> None:
            if self._card(name) is card:
                card.show_doing("")
                card.show_text(text)
                self._look(card.machine)

        def failed(error: RankdeckError) -> None:
            if self._card(name) is card:
                card.show_error(error)

        self._runner.run(Operation(work, succeeded, failed))

    def _card(self, name: str) -> MachineCard | None:
        return None if self.page is None else self.page.cards.get(name)

    def _on_progressed(self, name: str, text: str) -> None:
        if (card := self._card(name)) is not None and not card.setup.isEnabled():
            card.state.set_full_text(text)


def _state_text(look: Devices) -> str:
    """The devices of a machine in a few words: "2 GPUs", or the reason why it trains on its processor."""
    gpus = sum(device.kind == "cuda" for device in look.devices)
    if gpus:
        return "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    return look.problem or "Trains on its processor"

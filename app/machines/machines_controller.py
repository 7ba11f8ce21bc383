"""Control of other machines: the page that keeps them, their devices in New run, and runs there that are followed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

from app.threads.background import Operation, OperationRunner
from app.widgets.notice_bar import Step
from core.errors import RankdeckError, sentences
from core.machines.machine import NotSetUpError
from core.machines.machine_list import STAYS, find_machine, list_machines, remove_machine, warn_of_live_runs
from core.run_folder.remote_run import FILE_NAME
from core.run_folder.store import RunStore

if TYPE_CHECKING:
    from app.machines.machines_page import MachineCard, MachinesPage
    from app.new_run.machine_groups import MachineGroups
    from app.window.main_window import MainWindow
    from core.machines.adding import HostKey
    from core.machines.answers import Devices, FindingThere
    from core.machines.machine import Machine

T = TypeVar("T")
_SIGNS: Final = {"fail": "✕", "warn": "⚠", "ok": "✓", "not_tried": "–"}  # in the order in which they are shown


class MachinesController(QObject):
    """Carries out the page's intents, and keeps New run's groups current.

    Attributes:
        page: Once it was opened.

    Signals:
        failed: Why a run on another machine cannot be followed.
    """

    failed = Signal(object)
    _progressed = Signal(str, str)

    def __init__(self, window: MainWindow, runs_dir: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._runs_dir = window, runs_dir
        self._runner = OperationRunner(self)  # a machine that does not answer must not hold up anything else
        self._groups: MachineGroups | None = None
        self._to_confirm: tuple[Machine, HostKey] | None = None  # with the host key that it shows
        self.page: MachinesPage | None = None
        self._progressed.connect(self._on_progressed, Qt.ConnectionType.QueuedConnection)
        window.actions_.machines.triggered.connect(self.open)

    def open(self) -> None:
        """Shows the page; it stays as it was left."""
        from app.machines.machines_page import MachinesPage  # here: the window opens without it

        if self.page is None:
            self.page = page = MachinesPage()
            page.close_requested.connect(self._window.show_home)
            page.add_requested.connect(self._on_add_requested)
            page.key_confirmed.connect(self._on_key_confirmed)
            page.card_made.connect(self._on_card_made)
        self._list()
        self._window.show_page(self.page)

    def show_devices(self, groups: MachineGroups) -> None:
        """Fills New run's groups, and looks at each machine."""
        self._groups = groups
        self._list()

    def follow_runs(self) -> None:
        """Follows those runs on other machines again that were being followed when this computer was switched off."""
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

    # --- the list ----------------------------------------------------------------------------------------

    def _list(self) -> None:
        self._runner.run(Operation(list_machines, self._on_listed, self._show_problem, topic="list"))

    def _on_listed(self, machines: list[Machine]) -> None:
        if self.page is not None:
            self.page.set_machines(machines)
        if self._groups is None:
            return
        self._groups.set_machines(machines)
        for machine in machines:
            if self._groups.groups[machine.name].look is None:
                self._look(machine)

    def _look(self, machine: Machine) -> None:
        def work() -> Devices:
            from core.machines.session import look_at

            return look_at(machine)

        def looked(look: Devices) -> None:
            if self._groups is not None and machine.name in self._groups.groups:
                self._groups.groups[machine.name].show_look(look)

        def failed(error: RankdeckError) -> None:
            if self._groups is not None and machine.name in self._groups.groups:
                self._groups.groups[machine.name].show_error(error)

        self._runner.run(Operation(work, looked, failed, topic=f"look {machine.name}"))

    def _show_problem(self, error: RankdeckError) -> None:
        if self.page is not None:
            self.page.show_error(error)

    # --- adding ------------------------------------------------------------------------------------------

    def _on_add_requested(self, typed: dict[str, str]) -> None:
        assert self.page is not None
        self._to_confirm = None
        self.page.show_doing("Asking for its host key…")

        def work() -> tuple[Machine, HostKey]:
            from core.machines.adding import new_machine, read_host_key

            machine = new_machine(**typed)
            return machine, read_host_key(machine)

        self._runner.run(Operation(work, self._on_key_shown, self.page.show_error, topic="add"))

    def _on_key_shown(self, shown: tuple[Machine, HostKey]) -> None:
        assert self.page is not None
        self._to_confirm = machine, key = shown
        self.page.ask_for_key(machine.address, key.fingerprint, key.type)

    def _on_key_confirmed(self) -> None:
        shown, self._to_confirm = self._to_confirm, None
        if shown is None or self.page is None:
            return
        self.page.show_doing("Signing in…")

        def work() -> Machine:
            from core.machines.adding import add_machine

            return add_machine(*shown)

        self._runner.run(Operation(work, self._on_added, self.page.show_error, topic="add"))

    def _on_added(self, machine: Machine) -> None:
        assert self.page is not None
        self.page.show_added(machine)
        self._list()

    # --- a machine ---------------------------------------------------------------------------------------

    def _on_card_made(self, card: MachineCard) -> None:
        card.check_requested.connect(functools.partial(self._check, card))
        card.setup_requested.connect(functools.partial(self._set_up, card))
        card.remove_requested.connect(functools.partial(self._ask_to_remove, card))

    def _check(self, card: MachineCard) -> None:
        machine = card.machine

        def work() -> str:
            from core.machines.answers import Examined
            from core.machines.session import serving

            with serving(machine) as session:
                found = session.stream({"op": "doctor"}, Examined)
                return findings_text([one.finding for one in found])

        def done(text: str) -> None:
            card.show_text(text)
            self._look(machine)

        self._do(card, "Checking…", work, done)

    def _set_up(self, card: MachineCard) -> None:
        machine, tell = card.machine, functools.partial(self._progressed.emit, card.machine.name)

        def work() -> str:
            from core.machines.setup import set_up

            set_up(machine, "auto", "", tell)
            return f"{machine.name} is set up."

        def done(text: str) -> None:
            card.show_text(text)
            self._look(machine)

        self._do(card, "Connecting…", work, done)

    def _ask_to_remove(self, card: MachineCard) -> None:
        """Removes a machine; asks first where runs train there."""
        machine, runs_dir = card.machine, self._runs_dir

        def done(warning: str) -> None:
            if warning:
                step = Step(f"&Remove {machine.name}", functools.partial(self._remove, card))
                card.ask("Runs train there", f"{warning} {STAYS}", step)
            else:
                self._remove(card)

        self._do(card, "Looking for its runs…", lambda: warn_of_live_runs(machine, runs_dir), done)

    def _remove(self, card: MachineCard) -> None:
        name = card.machine.name

        def done(_: None) -> None:
            self._list()
            if self.page is not None:
                self.page.show_removed(name, STAYS)

        self._do(card, "Removing…", lambda: remove_machine(find_machine(name)), done)

    def _do(self, card: MachineCard, doing: str, work: Callable[[], T], done: Callable[[T], None]) -> None:
        card.show_doing(doing)

        def succeeded(result: T) -> None:
            if self._is_shown(card):
                card.show_doing("")
                done(result)

        def failed(error: RankdeckError) -> None:
            if self._is_shown(card):
                card.show_error(error, self._remedy(card, error))

        self._runner.run(Operation(work, succeeded, failed))

    def _remedy(self, card: MachineCard, error: RankdeckError) -> Step | None:
        return Step("&Set up", card.setup_requested.emit) if isinstance(error, NotSetUpError) else None

    def _is_shown(self, card: MachineCard) -> bool:
        return self.page is not None and self.page.cards.get(card.machine.name) is card

    def _on_progressed(self, name: str, text: str) -> None:
        card = None if self.page is None else self.page.cards.get(name)
        if card is not None and not card.setup.isEnabled():
            card.doing.set_full_text(text)


def findings_text(findings: Sequence[FindingThere]) -> str:
    """The doctor's findings on another machine: problems first, each with what to do; then what works."""
    lines = []
    for finding in sorted(findings, key=lambda one: list(_SIGNS).index(one.level)):
        step = finding.next_step if finding.level in ("fail", "warn") else ""
        line = f"{_SIGNS[finding.level]} {finding.name}: {finding.text}"
        lines.append(sentences(line, step) if step else line)
    return "\n".join(lines)

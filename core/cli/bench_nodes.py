"""`rankdeck bench --nodes`: one machine's part in a benchmark of several (docs/decisions/0055).

The machine that `--rdzv-endpoint` names measures and has the results; the others start ranks as it asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from core.bench.environment import busy_share, machine_facts
from core.cli.interrupts import Interrupts
from core.cli.nodes import Node, Started, run_nodes
from core.errors import RankdeckError
from core.launch.nodes.channel import Channel, ChannelError
from core.launch.nodes.desk import CheckIn
from core.launch.nodes.job import NodeJob
from core.launch.nodes.key import read_key
from core.machine.platform import physical_cores
from core.trials.helper import TrialHelper
from core.trials.machines import TrialMachine, label
from core.trials.nodes import TrialNodes

MEET_LIMIT_S: Final = 60.0
"""Until all machines that have checked in are connected: each watches for a second how busy it is."""
_POLL_S: Final = 0.2
_INTERRUPTED: Final = 130


def bench_on_nodes(started: Started, measure: Callable[[TrialNodes], int]) -> int:
    """Takes part in a benchmark until its end; returns the exit code.

    Args:
        started: The command on this machine.
        measure: Measures and shows the results, on the first machine; returns the exit code.

    Raises:
        RankdeckError: This machine cannot take part, or nothing can be measured.
    """
    return run_nodes(started, lambda asked, job: _BenchNode(asked, job, measure))


class _BenchNode(Node):
    """This machine."""

    def __init__(self, started: Started, job: NodeJob, measure: Callable[[TrialNodes], int]) -> None:
        super().__init__(started, job)
        self._measure = measure

    def say_lost(self, name: str, left: int) -> None:
        """Says that a machine is gone; what was measured stays."""
        del left
        self._terminal.warn(f"{name}, or the network to it, is gone. What needs its devices is not measured any more.")

    def lead(self, name: str, interrupts: Interrupts, look: Callable[[], object]) -> int:
        """Measures; returns the command's exit code."""
        del name, look
        nodes, code = TrialNodes(self._job, self._machine(), read_key()), RankdeckError.exit_code
        try:
            nodes.gather(self.others, MEET_LIMIT_S, lambda: interrupts.count > 0)
            if interrupts.count:
                code = _INTERRUPTED
                return code
            for number, machine in enumerate(nodes.machines.all, 1):
                names = ", ".join(device.name for device in machine.devices)
                self._terminal.say(f"{label(number).capitalize()} is {machine.name} ({machine.address}): {names}")
            code = self._measure(nodes)
            return code
        except RankdeckError as error:
            code = error.exit_code
            raise
        finally:
            nodes.close(code)

    def follow(self, visit: CheckIn, interrupts: Interrupts) -> int:
        """Starts ranks for the machine that measures; returns the command's exit code."""
        machine = self._machine()
        helper = TrialHelper(self._connected(interrupts), machine)
        self._terminal.say(f"{self._job.host} measures with this machine's devices.")
        next_s = 0.0

        def is_over() -> bool:
            nonlocal next_s
            if time.monotonic() > next_s:
                next_s = time.monotonic() + 1.0
                visit.poll()
            return interrupts.count > 0

        try:
            code = helper.serve(is_over)
        except ChannelError as error:
            raise RankdeckError(
                f"The machine that measures, or the network to it, is gone. {error.cause}",
                "Look at the output there. What was measured by then is there.",
                title="The machine that measures is missing",
            ) from None
        return _INTERRUPTED if code is None else code

    def _connected(self, interrupts: Interrupts) -> Channel:
        deadline = time.monotonic() + MEET_LIMIT_S
        while True:
            try:
                return Channel(self._job.host, self._job.meeting_port, read_key())
            except ChannelError as error:
                if error.why == "key" or interrupts.count or time.monotonic() > deadline:
                    raise
            time.sleep(_POLL_S)

    def _machine(self) -> TrialMachine:
        job = self._job
        facts = machine_facts(busy_share())
        return TrialMachine(job.name, job.address, job.nic, physical_cores(), self._devices, facts)

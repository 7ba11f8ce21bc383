"""Users of devices: which process on a GPU is one of our own runs'."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from core.machine.devices.device import DeviceSample
from core.processes.identity import ProcessId, ancestors
from core.run_folder.record import RunRecord


def live_hosts(records: Iterable[RunRecord]) -> dict[ProcessId, str]:
    """The hosts of live runs, with the names of their runs. A rank is below its host, with all that it started."""
    states = [(record.entry.state, record.label) for record in records]
    return {state.host: name for state, name in states if state is not None and state.is_live and state.host}


class DeviceUsers:
    """Names the runs behind processes. Each process is looked at once, as long as it uses a device."""

    def __init__(self) -> None:
        self._above: dict[int, tuple[ProcessId, ...]] = {}

    def name(self, samples: Sequence[DeviceSample], hosts: Mapping[ProcessId, str]) -> list[DeviceSample]:
        """Return the samples with the runs of their processes; `hosts` are those of `live_hosts`."""
        pids = {process.pid for sample in samples for process in sample.processes} if hosts else set()
        self._above = {pid: self._above.get(pid) or ancestors(pid) for pid in pids}
        runs = {pid: run_above(above, hosts) for pid, above in self._above.items()}
        return [_named(sample, runs) for sample in samples]


def run_above(above: Iterable[ProcessId], hosts: Mapping[ProcessId, str]) -> str:
    return next((name for one in above for host, name in hosts.items() if host.is_same(one)), "")


def _named(sample: DeviceSample, runs: Mapping[int, str]) -> DeviceSample:
    processes = tuple(dataclasses.replace(one, run=runs.get(one.pid, "")) for one in sample.processes)
    return dataclasses.replace(sample, processes=processes)

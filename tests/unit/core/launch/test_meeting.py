"""Meetings of a launcher's processes: which run a later start continues, and who leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config.distributed import DistributedConfig
from core.errors import RunBusyError
from core.launch.meeting import Meeting, meeting_of
from core.processes.identity import ProcessId, own

pytestmark = pytest.mark.windows
AGENT, OTHER = ProcessId(4_000_001, 100.0), ProcessId(4_000_002, 200.0)


def test_a_run_is_continued_by_the_same_agent_or_a_restart_alone(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path / "job")
    first = meeting.begin(own(), {}, None, AGENT)
    meeting.remember_run(tmp_path / "run", AGENT)
    meeting.remove(forget_run=False)
    assert meeting.leader() is None
    assert meeting.run_of(OTHER, is_restart=False) is None, "a new job of the same name is a new run"
    for agent, is_restart in ((AGENT, False), (OTHER, True)):
        assert meeting.run_of(agent, is_restart=is_restart) == tmp_path / "run"
    assert meeting.begin(own(), {}, tmp_path / "run", AGENT) != first, "arrivals at the earlier start are not taken"
    meeting.remove(forget_run=True)
    assert meeting.run_of(AGENT, is_restart=True) is None


def test_a_leader_of_another_machine_is_not_looked_up_here(tmp_path: Path) -> None:
    Meeting(tmp_path / "job").begin(OTHER, {"address": "10.0.0.1"}, None, AGENT)
    assert Meeting(tmp_path / "job").leader() is None, "no such process is alive"
    found = Meeting(tmp_path / "job", is_shared=True, is_remote=True).leader()
    assert found is not None and found["address"] == "10.0.0.1"


def test_a_second_live_leader_is_refused(tmp_path: Path) -> None:
    Meeting(tmp_path / "job").begin(own(), {}, None, AGENT)
    with pytest.raises(RunBusyError, match="leads them"):
        Meeting(tmp_path / "job").begin(OTHER, {}, None, AGENT)


def test_processes_of_several_machines_meet_in_the_folder_of_runs(tmp_path: Path) -> None:
    place = DistributedConfig(4, 3, 1, 2, 1, 2, launch_method="torchrun", job="a-job")
    there, other = meeting_of(place, AGENT, tmp_path), meeting_of(place.replace(rank=0, node_rank=0), OTHER, tmp_path)
    assert there.folder == other.folder and tmp_path in there.folder.parents
    assert (there.is_remote, other.is_remote) == (True, False)

"""Ranks that wait for each other over loopback, as real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from core.paths import PACKAGE_FOLDER
from workers.estimate.meeting import Meeting, MeetingError

pytestmark = pytest.mark.windows

PROGRAM = """
import sys, time
from pathlib import Path
from workers.estimate.meeting import Meeting, MeetingError
rank, ranks, folder, dies_at = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
with Meeting(rank, ranks, folder, 60.0) as meeting:
    for number in range(4):
        if number == dies_at:
            import os
            os._exit(3)
        time.sleep(0.05 * rank)
        try:
            print(meeting.highest(10.0 * number + rank), flush=True)
        except MeetingError as error:
            sys.exit(error.cause)
"""


def start(folder: Path, rank: int, ranks: int, dies_at: int = -1) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", PROGRAM, str(rank), str(ranks), str(folder), str(dies_at)]
    env = {**os.environ, "PYTHONPATH": str(PACKAGE_FOLDER)}
    return subprocess.Popen(
        argv, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def test_all_get_the_highest_value_of_each_round(tmp_path: Path) -> None:
    processes = [start(tmp_path, rank, 3) for rank in range(3)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [output.split() for output, _ in outputs] == [["2.0", "12.0", "22.0", "32.0"]] * 3, outputs


@pytest.mark.parametrize("dying", [0, 1])
def test_a_rank_that_ends_is_noticed_at_once(dying: int, tmp_path: Path) -> None:
    processes = [start(tmp_path, rank, 2, dies_at=2 if rank == dying else -1) for rank in range(2)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert processes[dying].returncode == 3
    other = outputs[1 - dying]
    assert other[0].split() == ["1.0", "11.0"]
    assert "Another rank is gone" in other[1]


def test_one_that_knows_no_token_is_not_let_in(tmp_path: Path) -> None:
    found: list[float] = []

    def first() -> None:
        with Meeting(0, 2, tmp_path, 30.0) as meeting:
            found.append(meeting.highest(1.0))

    thread = threading.Thread(target=first)
    thread.start()
    place = tmp_path / "meeting.json"
    while not place.exists():
        time.sleep(0.01)
    port = int(place.read_text(encoding="utf-8").split('"port": ')[1].split(",")[0])
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b"x" * 16)
        assert stranger.recv(1) == b""
    with Meeting(1, 2, tmp_path, 30.0) as meeting:
        assert meeting.highest(2.0) == 2.0
    thread.join(30)
    assert found == [2.0]


def test_ranks_that_do_not_come_are_not_waited_for_long(tmp_path: Path) -> None:
    with pytest.raises(MeetingError, match="did not come"):
        Meeting(0, 2, tmp_path, 0.1)
    with pytest.raises(MeetingError, match="did not come"):
        Meeting(1, 2, tmp_path / "empty", 0.1)


def test_one_alone_does_not_wait(tmp_path: Path) -> None:
    with Meeting(0, 1, tmp_path) as meeting:
        assert meeting.highest(3.0) == 3.0
    assert not (tmp_path / "meeting.json").exists()

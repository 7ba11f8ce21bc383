"""A machine's part of a run on several, started over SSH: what it is refused for arrives here."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.launch.nodes.desk import Desk, NodeFacts
from core.launch.nodes.key import KEY_FILE
from core.machines.machine_list import find_machine
from core.machines.node_start import start_node
from tests.helpers.net_nodes import NO_NODES
from tests.helpers.ssh_server import SshServer

pytestmark = [pytest.mark.spawned, pytest.mark.timeout(200), pytest.mark.skipif("Linux's" in NO_NODES, reason=NO_NODES)]
KEY = "1" * 64


def _line(port: int, runs: Path) -> list[str]:
    here = ["--nodes", "2", "--nic", "auto", "--rdzv-endpoint", f"127.0.0.2:{port}", "--nodes-wait-s", "20"]
    return ["rankdeck", "train", "--run-dir", str(runs / "run"), *here]


def test_why_a_machine_takes_no_part_is_said_here(machine: SshServer, tmp_path: Path) -> None:
    box, runs = find_machine("box"), tmp_path / "gemeinsam"
    with pytest.raises(RankdeckError) as raised:
        start_node(box, _line(29_400, runs), str(runs), KEY)
    assert raised.value.title == "box has not started" and "gemeinsam" in raised.value.cause
    key_there = machine.data / "rankdeck" / KEY_FILE
    assert key_there.read_text(encoding="utf-8") == f"{KEY}\n", "there was none"
    assert key_there.stat().st_mode & 0o777 == 0o600

    runs.mkdir()
    with pytest.raises(RankdeckError) as raised:
        start_node(box, _line(29_400, runs), str(runs), "2" * 64)
    assert raised.value.title == "The machine has another key" and raised.value.cause.startswith(f"box: {key_there}")
    assert key_there.read_text(encoding="utf-8") == f"{KEY}\n", "it is never replaced"

    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))
        port = probe.getsockname()[1]
    desk = Desk(NodeFacts("here", {"rankdeck": "9.9"}), runs, 2, 2, lambda _: None)
    desk.open("127.0.0.2", port + 1, KEY)
    try:
        with pytest.raises(RankdeckError, match="Rankdeck differs") as raised:
            start_node(box, _line(port, runs), str(runs), KEY)
        assert raised.value.window_step == "Install the same Rankdeck on all machines."
        assert desk.status().nodes[1].state == "refused"
    finally:
        desk.close()

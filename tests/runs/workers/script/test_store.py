"""The store that is hosted for a script's ranks: on loopback alone, ended with its wrapper."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from core.errors import RankdeckError
from core.recipes.user_script import UserScript
from workers.script.store import HostedStore, can_host

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the script's rank 0 hosts the store")

GROUPS = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
dist.all_reduce(total, group=dist.new_group([0, 1]))
dist.destroy_process_group()
print(total.item(), flush=True)
"""


def script(folder: Path, text: str = "pass\n", **fields: object) -> UserScript:
    path = folder / "train me.py"
    path.write_text(text, encoding="utf-8", newline="\n")
    return UserScript(sys.executable, (str(path),), (), folder, dict(fields.pop("environment", {})), **fields)  # type: ignore[call-overload, arg-type]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.second_tier
@pytest.mark.slow
def test_ranks_meet_at_the_store(tmp_path: Path) -> None:
    told, port = script(tmp_path, GROUPS), free_port()
    store = HostedStore(told, os.environ, port)
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    env = {**os.environ, **place, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    ranks = [
        subprocess.Popen(told.argv, env={**env, "RANK": str(rank)}, stdout=subprocess.PIPE, encoding="utf-8")
        for rank in range(2)
    ]
    try:
        printed = [rank.communicate(timeout=100)[0] for rank in ranks]
        store.check()
    finally:
        for rank in ranks:
            rank.kill()
        store.close()
    assert [text.splitlines() for text in printed] == 2 * [["4.0"]]
    assert not psutil.pid_exists(store._process.pid)


def test_a_store_that_cannot_be_hosted_says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RankdeckError, match="in use") as caught:
            HostedStore(script(tmp_path), os.environ, taken.getsockname()[1])
    assert "TORCHELASTIC_USE_AGENT_STORE=False" in caught.value.next_step
    without_torch = {**os.environ, "PYTHONPATH": str(tmp_path)}
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n", encoding="utf-8", newline="\n")
    store = HostedStore(script(tmp_path), without_torch, free_port())
    try:
        store._process.wait(30)
        with pytest.raises(RankdeckError, match="no torch here"):
            store.check()
    finally:
        store.close()


def test_for_whom_a_store_is_hosted(tmp_path: Path) -> None:
    assert can_host(script(tmp_path), os.environ)
    assert not can_host(script(tmp_path, environment={"MASTER_PORT": "1"}), os.environ)
    assert not can_host(script(tmp_path, "os.environ['MASTER_PORT'] = '12355'\n"), os.environ)
    assert not can_host(script(tmp_path, "init_process_group('gloo', init_method='tcp://127.0.0.1:1')\n"), os.environ)
    (tmp_path / "setup_ddp.py").write_text("os.environ['MASTER_PORT'] = port\n", encoding="utf-8")
    assert can_host(script(tmp_path), os.environ)
    assert not can_host(script(tmp_path, "from setup_ddp import setup\n"), os.environ)
    (tmp_path / "setup_ddp.py").unlink()
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    assert not can_host(script(tmp_path), {**os.environ, "PYTHONPATH": str(tmp_path)})

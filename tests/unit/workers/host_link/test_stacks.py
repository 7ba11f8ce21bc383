"""Where a rank's threads are: whether it waits for others, and what it leaves behind if no Python runs in it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from core.protocol.codec import encode
from workers.host_link.stacks import LONGEST_S, MAX_TEXT, Place, StackWatchdog, judge, own_stacks

pytestmark = pytest.mark.windows

OPS: Place = ("/x/torch/_ops.py", 1, "__call__")
TRAINER: Place = ("/x/workers/training/trainer.py", 112, "_forward_backward")
ENGINE: Place = ("/x/torch/autograd/graph.py", 869, "_engine_run_backward")
LOSS: Place = ("/home/a/mine/train.py", 57, "loss")
THREADING: Place = ("/usr/lib/python3.11/threading.py", 331, "wait")


@pytest.mark.parametrize(
    ("stacks", "place", "waits"),
    [
        ([[TRAINER, LOSS]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, LOSS, THREADING]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, ENGINE]], "autograd/graph.py:869 in _engine_run_backward", "perhaps"),
        # a hook that sleeps in the backward pass, on the training thread, or on one of autograd's
        ([[TRAINER, ENGINE, LOSS]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, ENGINE], [LOSS]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, LOSS], [ENGINE]], "mine/train.py:57 in loss", "no"),
        ([[("D:\\x\\torch\\distributed\\c10d.py", 9, "all_reduce")]], "distributed/c10d.py:9 in all_reduce", "yes"),
        (
            [[TRAINER, ("/x/torch/distributed/_functional_collectives.py", 3, "wait_tensor"), OPS]],
            "distributed/_functional_collectives.py:3 in wait_tensor",
            "yes",
        ),
        ([[TRAINER, ENGINE, ("/x/workers/all_reduce/peer_watch.py", 116, "_wait_long")]],
         "all_reduce/peer_watch.py:116 in _wait_long", "yes"),
        ([[TRAINER, ("/x/workers/strategies/ddp.py", 99, "settle")]], "strategies/ddp.py:99 in settle", "yes"),
        ([], "", "no"),
    ],
)  # fmt: skip
def test_whether_a_rank_waits_for_others(stacks: list[list[Place]], place: str, waits: str) -> None:
    assert judge(stacks) == (place, waits)


def test_the_stacks_of_this_very_process() -> None:
    """Asked by another thread, as the host's request is; the training thread is the main thread."""
    found = []

    def wait_for_answer() -> None:
        thread = threading.Thread(target=lambda: found.append(own_stacks()))
        thread.start()
        thread.join()

    wait_for_answer()
    (stacks,) = found
    assert stacks.text.startswith("Thread “MainThread”") and "in wait_for_answer" in stacks.text
    assert "test_stacks.py" in stacks.place and stacks.waits == "no"


def test_stacks_without_an_end_fit_a_message() -> None:
    found = []

    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        else:
            thread = threading.Thread(target=lambda: found.append(own_stacks()))
            thread.start()
            thread.join()

    deeper(600)
    assert len(found[0].text) <= MAX_TEXT and encode(found[0])
    assert "in deeper" in found[0].place


HOLDER = """
import ctypes, pathlib, sys
from workers.host_link.stacks import StackWatchdog

def hold():
    if sys.platform == "win32":
        ctypes.PyDLL("kernel32").Sleep(600_000)
    else:
        ctypes.PyDLL(None).sleep(600)

watchdog = StackWatchdog(pathlib.Path(sys.argv[1]), 0.6)
hold()
"""


def test_where_the_interpreter_lock_is_held_the_stacks_are_in_a_file(tmp_path: Path) -> None:
    """In a process of its own: pytest has a watchdog as well, and there is one for each process."""
    file, root = tmp_path / "rank0.stacks", str(Path(__file__).parents[4])
    argv = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(argv, cwd=root, env={**os.environ, "PYTHONPATH": root}) as holder:
        try:
            while holder.poll() is None and not (file.exists() and "in hold" in file.read_text(encoding="utf-8")):
                threading.Event().wait(0.02)
            assert holder.poll() is None
        finally:
            for child in psutil.Process(holder.pid).children():
                child.kill()
            holder.kill()


def test_a_long_limit_does_not_delay_the_file(tmp_path: Path) -> None:
    for limit_s, after_s in ((None, LONGEST_S), (600.0, LONGEST_S), (30.0, 10.0)):
        watchdog = StackWatchdog(tmp_path / "rank0.stacks", limit_s)
        watchdog.close()
        assert watchdog.after_s == after_s and not list(tmp_path.iterdir())

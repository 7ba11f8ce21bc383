"""Stacks of a process in which no Python runs, left in a file at a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.processes.stack_signal import StackFile, ask_for_stacks

ROOT = Path(__file__).resolve().parents[4]
HOLDER = """
import ctypes, pathlib, sys
from core.processes.stack_signal import StackFile

def hold():
    while True:
        ctypes.PyDLL(None).sleep(600)

file = StackFile(pathlib.Path(sys.argv[1]))
hold()
"""


@contextmanager
def holder_of(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has its file."""
    argv = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(argv, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        try:
            until = time.monotonic() + 30
            while not (file.exists() and file.read_text(encoding="utf-8").endswith("\n")):
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_where_the_interpreter_lock_is_held_the_stacks_are_left_at_the_signal(tmp_path: Path) -> None:
    file = tmp_path / "rank0.stacks"
    with holder_of(file) as holder:
        time.sleep(0.2)
        for _ in range(2):
            found = ask_for_stacks(file, 20.0)
            assert found.count("in hold") == 1 and "most recent call first" in found
        assert holder.poll() is None
    assert ask_for_stacks(file) == "", "it has ended, and its number may be another process's"


def test_the_file_is_gone_afterwards_and_a_late_signal_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "rank0.stacks"
    stacks = StackFile(file)
    if sys.platform != "win32":
        from core.processes.stack_signal import SIGNAL

        assert file.exists() and SIGNAL is not None
        stacks.close()
        os.kill(os.getpid(), SIGNAL)
        signal.signal(SIGNAL, signal.SIG_DFL)
    else:
        stacks.close()
    assert not file.exists() and ask_for_stacks(file) == ""


@pytest.mark.parametrize("text", ["", "no JSON\n", "{}\n", '{"pid": 1, "started": 1.0}\n', '{"pid": 1'])
def test_nothing_is_sent_to_what_is_not_that_process(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rank0.stacks"
    file.write_text(text, encoding="utf-8", newline="\n")
    assert ask_for_stacks(file, 0.1) == ""

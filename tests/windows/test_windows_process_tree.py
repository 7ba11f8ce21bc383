"""What only Windows does: Job Objects, consoles, handles. `tests/runs/core/processes/test_tree.py` runs there too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from core.processes import ProcessTree, spawn_detached
from core.processes.identity import identify, is_alive
from tests.helpers.children import exit_code

pytestmark = [
    pytest.mark.windows,
    pytest.mark.skipif(sys.platform != "win32", reason="Job Objects, consoles and handles of Windows"),
]

REPOSITORY = Path(__file__).resolve().parents[2]
LIMIT_S = 30.0
SLEEP = "import time; time.sleep(600)"

IN_JOB = """
import ctypes
inside = ctypes.c_int()
kernel32 = ctypes.WinDLL("kernel32")
kernel32.IsProcessInJob(ctypes.c_void_p(-1), None, ctypes.byref(inside))
"""


def run_in_tree(code: str, folder: Path) -> list[str]:
    with ProcessTree() as tree:
        child = tree.spawn([sys.executable, "-S", "-c", code], dict(os.environ), folder, folder / "log")
        assert exit_code(child) == 0, (folder / "log").read_text(encoding="utf-8")
    return (folder / "log").read_text(encoding="utf-8").splitlines()


def test_a_child_is_in_the_job_from_its_first_line_on(tmp_path: Path) -> None:
    assert run_in_tree(IN_JOB + "print(inside.value)", tmp_path) == ["1"]


def test_a_child_has_no_window(tmp_path: Path) -> None:
    code = "import ctypes\nwindow = ctypes.windll.kernel32.GetConsoleWindow()\n"
    code += "print(bool(window and ctypes.windll.user32.IsWindowVisible(window)))"
    assert run_in_tree(code, tmp_path) == ["False"]


def test_grandchildren_started_in_the_first_instant_die_with_the_tree(tmp_path: Path) -> None:
    code = f"import subprocess, sys\nfor _ in range(3): subprocess.Popen([sys.executable, '-S', '-c', {SLEEP!r}])"
    with ProcessTree() as tree:
        child = tree.spawn([sys.executable, "-S", "-c", code], dict(os.environ), tmp_path, tmp_path / "log")
        assert exit_code(child) == 0
        pythons = [member for member in tree.members() if "python" in psutil.Process(member.pid).name().lower()]
        assert len(pythons) == 3
    end = time.monotonic() + LIMIT_S
    while any(is_alive(python) for python in pythons):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_handle_of_this_process_is_not_inherited(tmp_path: Path) -> None:
    held = tmp_path / "held.txt"
    with ProcessTree() as tree:
        with held.open("w", encoding="utf-8", newline="\n") as file:
            os.set_inheritable(file.fileno(), True)
            child = tree.spawn([sys.executable, "-S", "-c", SLEEP], dict(os.environ), tmp_path, tmp_path / "log")
        assert child.poll() is None
        held.unlink()  # refused while any process holds it open
        assert not held.exists()


def test_the_exit_code_of_an_ended_tree_is_told_in_words(tmp_path: Path) -> None:
    with ProcessTree() as tree:
        child = tree.spawn([sys.executable, "-S", "-c", SLEEP], dict(os.environ), tmp_path, tmp_path / "log")
        tree.terminate()
        assert exit_code(child) is not None
        assert child.outcome.startswith("ended by its run host")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import faulthandler; faulthandler._read_null()", "access violation"),
        ("import ctypes; ctypes.windll.kernel32.ExitProcess(0xC0000135)", "DLL is missing"),
        ("import ctypes; ctypes.windll.kernel32.ExitProcess(0xC0000142)", "DLL failed to initialise"),
        ("import ctypes; ctypes.windll.kernel32.ExitProcess(0xC000013A)", "interrupted"),
        ("import os; os.abort()", "aborted itself"),
    ],
)
def test_native_deaths_are_told_in_words(tmp_path: Path, code: str, words: str) -> None:
    with ProcessTree() as tree:
        child = tree.spawn([sys.executable, "-S", "-c", code], dict(os.environ), tmp_path, tmp_path / "log")
        ended = exit_code(child)
        assert words in child.outcome, (ended, child.outcome)


STARTER_IN_A_JOB = """
import os, sys
from pathlib import Path
from core.processes import ProcessTree
folder = Path(sys.argv[1])
tree = ProcessTree()
env = {**os.environ, "PYTHONPATH": os.getcwd()}
tree.spawn([sys.executable, "-c", sys.argv[2], str(folder)], env, folder, folder / "starter.log")
print(flush=True)
sys.stdin.read()
"""

DETACHES = """
import os, sys, time
from pathlib import Path
from core.processes import spawn_detached
folder = Path(sys.argv[1])
code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
spawn_detached([sys.executable, "-S", "-c", code], folder, dict(os.environ), folder / "detached.log")
time.sleep(600)
"""


def test_a_starter_whose_job_lets_nobody_leave_can_still_start_and_the_log_says_it(tmp_path: Path) -> None:
    log = tmp_path / "detached.log"
    with subprocess.Popen(
        [sys.executable, "-c", STARTER_IN_A_JOB, str(tmp_path), DETACHES],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        end = time.monotonic() + LIMIT_S
        while not _last_pid(log):
            assert time.monotonic() < end, (tmp_path / "starter.log").read_text(encoding="utf-8")
            time.sleep(0.05)
        process = identify(_last_pid(log))
        assert process is not None
        owner.kill()
    if "could not leave" not in log.read_text(encoding="utf-8"):
        psutil.Process(process.pid).kill()
        pytest.skip("this system lets a process leave a job that forbids it")
    end = time.monotonic() + LIMIT_S
    while is_alive(process):
        assert time.monotonic() < end
        time.sleep(0.05)


def _last_pid(log: Path) -> int:
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return int(lines[-1]) if lines and lines[-1].isdigit() else 0


def test_a_detached_process_has_no_window(tmp_path: Path) -> None:
    code = "import ctypes\nwindow = ctypes.windll.kernel32.GetConsoleWindow()\n"
    code += "print(bool(window and ctypes.windll.user32.IsWindowVisible(window)), flush=True)"
    log = tmp_path / "log"
    process = spawn_detached([sys.executable, "-S", "-c", code], tmp_path, dict(os.environ), log)
    end = time.monotonic() + LIMIT_S
    while is_alive(process):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert log.read_text(encoding="utf-8").split() == ["False"]

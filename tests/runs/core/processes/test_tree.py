"""The process tree on real processes: output from the first byte, the stop ladder, nobody left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from core.errors import RankdeckError
from core.processes import Child, ProcessTree, describe_exit, end_marked, ended_by_force, spawn_detached
from core.processes.identity import ProcessId, identify, is_alive
from tests.helpers.children import exit_code

pytestmark = pytest.mark.windows

REPOSITORY = Path(__file__).resolve().parents[4]
LIMIT_S = 30.0
SLEEP = "import time; time.sleep(600)"
STARTS_A_CHILD = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", {SLEEP!r}])
print(child.pid, flush=True)
{SLEEP}
"""


@pytest.fixture
def tree() -> Iterator[ProcessTree]:
    with ProcessTree() as tree:
        yield tree


@pytest.fixture
def run(tree: ProcessTree, tmp_path: Path) -> Callable[..., Child]:
    def run(code: str, *arguments: str, name: str = "child") -> Child:
        argv = [sys.executable, "-S", "-c", code, *arguments]
        return tree.spawn(argv, dict(os.environ), tmp_path, tmp_path / f"{name}.log")

    return run


def other_program(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A program that starts processes; it ends when its standard input is closed."""
    argv = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(argv, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def first_line(program: subprocess.Popen[bytes]) -> bytes:
    """What it prints first."""
    assert program.stdout is not None
    return program.stdout.readline()


def wait_for_text(log: Path) -> str:
    """What the log holds once it holds a whole line."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if (text := log.read_text(encoding="utf-8")).endswith("\n"):
            return text
        time.sleep(0.01)
    raise AssertionError(f"Nothing was written to {log} within {LIMIT_S:.0f} s")


def wait_until_dead(pid: int, process: ProcessId | None) -> None:
    end = time.monotonic() + LIMIT_S
    while process is not None and is_alive(process):
        assert time.monotonic() < end, f"process {pid} still lives"
        time.sleep(0.02)


def test_the_log_gets_both_streams_from_the_first_byte(run: Callable[..., Child], tmp_path: Path) -> None:
    child = run("import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)")
    assert exit_code(child) == 3
    assert child.log == tmp_path / "child.log"
    assert child.log.read_text(encoding="utf-8").splitlines() == ["out", "err"]
    assert child.outcome == "ended with exit code 3"


def test_even_an_interpreter_that_cannot_start_leaves_its_words(tree: ProcessTree, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONHOME": str(tmp_path / "nowhere")}
    child = tree.spawn([sys.executable, "-c", "pass"], env, tmp_path, tmp_path / "child.log")
    assert exit_code(child) not in (None, 0)
    assert "encodings" in child.log.read_text(encoding="utf-8", errors="replace")


def test_environment_and_folder_are_the_ones_given(tree: ProcessTree, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with späces ✓"
    folder.mkdir()
    env = {**os.environ, "RANKDECK_TEST": "grün", "PYTHONUTF8": "1"}
    code = "import os, sys; print(os.environ['RANKDECK_TEST']); print(os.getcwd()); print(sys.argv[1:])"
    log = folder / "lög.log"
    child = tree.spawn([sys.executable, "-S", "-c", code, 'a "b"', ""], env, folder, log)
    assert exit_code(child) == 0
    assert log.read_text(encoding="utf-8").splitlines() == ["grün", str(folder), str(['a "b"', ""])]


def test_a_childs_input_is_empty(run: Callable[..., Child]) -> None:
    child = run("import sys; sys.exit(len(sys.stdin.read()))")
    assert exit_code(child) == 0


def test_kill_takes_grandchildren_along_whose_parent_has_ended(run: Callable[..., Child], tree: ProcessTree) -> None:
    child = run(STARTS_A_CHILD.removesuffix(f"{SLEEP}\n"))
    assert exit_code(child) == 0
    grandchild = int(child.log.read_text(encoding="utf-8"))
    assert child.pid not in (members := {member.pid for member in tree.members()})
    assert grandchild in members
    run(SLEEP)
    assert tree.kill(time.monotonic() + LIMIT_S) == []
    assert tree.members() == []
    wait_until_dead(grandchild, identify(grandchild))
    assert exit_code(run("print('again')")) == 0, "the tree can be used again"


DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""
LEAVES_ALL_TIES = f"""
import signal, subprocess, sys
detached_in_a_new_group = {{"creationflags": 0x208}}
how = detached_in_a_new_group if sys.platform == "win32" else {{"start_new_session": True}}
subprocess.Popen([sys.executable, "-S", "-c", {DEAF!r}], stdout=sys.stdout, **how)
if sys.argv[1] == "stay":
    {SLEEP}
"""


def test_kill_takes_along_what_has_left_its_session_and_lost_its_parent(
    run: Callable[..., Child], tree: ProcessTree
) -> None:
    child = run(LEAVES_ALL_TIES, "go")
    assert exit_code(child) == 0
    daemon = int(wait_for_text(child.log))
    process = identify(daemon)
    assert daemon in {member.pid for member in tree.members()}
    assert tree.kill(time.monotonic() + LIMIT_S) == []
    wait_until_dead(daemon, process)


def test_another_trees_processes_are_none_of_ours(run: Callable[..., Child], tmp_path: Path) -> None:
    child = run(SLEEP)
    with ProcessTree() as other:
        sibling = other.spawn([sys.executable, "-S", "-c", SLEEP], dict(os.environ), tmp_path, tmp_path / "log")
        members = {member.pid for member in other.members()}
        assert sibling.pid in members and child.pid not in members
    assert child.poll() is None and sibling.poll() is not None


def test_what_a_tree_starts_from_within_another_one_has_its_own_mark(tree: ProcessTree, tmp_path: Path) -> None:
    env = {**os.environ, "RANKDECK_RUN_MARK": "of the outer run"}
    code = "import os; print(os.environ['RANKDECK_RUN_MARK'])"
    child = tree.spawn([sys.executable, "-S", "-c", code], env, tmp_path, tmp_path / "log")
    assert exit_code(child) == 0
    assert "outer" not in (tmp_path / "log").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no way to ask")
def test_stop_asks_first_and_kills_nobody_who_obeys(run: Callable[..., Child], tree: ProcessTree) -> None:
    obeys = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nprint('ready', flush=True)\n"
    )
    children = [run(f"{obeys}time.sleep(600)", name=f"rank{rank}") for rank in range(2)]
    for child in children:
        wait_for_text(child.log)
    assert tree.stop(LIMIT_S) == []
    assert [child.poll() for child in children] == [7, 7]


def test_stop_ends_those_who_do_not_obey(run: Callable[..., Child], tree: ProcessTree) -> None:
    deaf = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)"
    )
    child = run(deaf)
    wait_for_text(child.log)
    assert tree.stop(2.0) == []
    assert child.poll() not in (None, 0)


OWNER = """
import os, sys
from pathlib import Path
from core.processes import ProcessTree
folder = Path(sys.argv[1])
tree = ProcessTree()
argv = [sys.executable, "-S", "-c", sys.argv[2]]
children = [tree.spawn(argv, dict(os.environ), folder, folder / f"rank{rank}.log") for rank in range(2)]
print(*(child.pid for child in children), flush=True)
sys.stdin.read()
"""


def test_nobody_outlives_an_owner_that_was_killed(tmp_path: Path) -> None:
    with other_program(OWNER, str(tmp_path), STARTS_A_CHILD) as owner:
        pids = [int(pid) for pid in first_line(owner).split()]
        pids += [int(wait_for_text(tmp_path / f"rank{rank}.log")) for rank in range(2)]
        processes = [identify(pid) for pid in pids]
        assert all(process is not None and is_alive(process) for process in processes)
        owner.kill()
    for pid, process in zip(pids, processes, strict=True):
        wait_until_dead(pid, process)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent-death signal")
def test_children_die_with_an_owner_whose_watcher_was_killed_before(tmp_path: Path) -> None:
    with other_program(OWNER, str(tmp_path), SLEEP) as owner:
        pids = [int(pid) for pid in first_line(owner).split()]
        processes = [identify(pid) for pid in pids]
        (watcher,) = [child for child in psutil.Process(owner.pid).children() if child.pid not in pids]
        watcher.kill()
        owner.kill()
    for pid, process in zip(pids, processes, strict=True):
        wait_until_dead(pid, process)


@pytest.mark.parametrize("watcher_too", [False, True])
def test_what_left_its_session_does_not_outlive_a_killed_owner_for_long(tmp_path: Path, watcher_too: bool) -> None:
    owner_code = OWNER.replace("ProcessTree()", "ProcessTree('a test: ' + folder.name)")
    owner_code = owner_code.replace("sys.argv[2]]", "sys.argv[2], 'stay']")
    with other_program(owner_code, str(tmp_path), LEAVES_ALL_TIES) as owner:
        pids = {int(pid) for pid in first_line(owner).split()}
        daemons = [int(wait_for_text(tmp_path / f"rank{rank}.log")) for rank in range(2)]
        processes = [identify(pid) for pid in daemons]
        if watcher_too:
            for child in psutil.Process(owner.pid).children():
                if child.pid not in pids:
                    child.kill()
        owner.kill()
    if watcher_too and sys.platform != "win32":
        end_marked("a test: " + tmp_path.name)
    for pid, process in zip(daemons, processes, strict=True):
        wait_until_dead(pid, process)


def test_a_program_that_is_not_there_is_an_error_or_an_exit_in_words(tree: ProcessTree, tmp_path: Path) -> None:
    argv = [str(tmp_path / "no such program")]
    log = tmp_path / "child.log"
    if sys.platform == "win32":
        with pytest.raises(RankdeckError, match="no such program could not be started"):
            tree.spawn(argv, dict(os.environ), tmp_path, log)
    else:
        child = tree.spawn(argv, dict(os.environ), tmp_path, log)
        assert exit_code(child) == 127
        assert "not found" in child.outcome
        assert "no such program cannot be started: No such file" in log.read_text(encoding="utf-8")


def test_a_folder_that_is_not_there_is_an_error_in_words(tree: ProcessTree, tmp_path: Path) -> None:
    with pytest.raises(RankdeckError, match=r"could not be started in .*nowhere") as caught:
        tree.spawn([sys.executable, "-c", "pass"], dict(os.environ), tmp_path / "nowhere", tmp_path / "log")
    assert caught.value.next_step


DETACHER = """
import os, sys
from pathlib import Path
from core.processes import spawn_detached
folder = Path(sys.argv[1])
process = spawn_detached([sys.executable, "-S", "-c", sys.argv[2]], folder, dict(os.environ), folder / "host.log")
print(process.pid, process.started, flush=True)
sys.stdin.read()
"""


def test_a_detached_process_outlives_a_starter_that_was_killed(tmp_path: Path) -> None:
    code = f"import os; print(os.getpid(), flush=True); {SLEEP}"
    with other_program(DETACHER, str(tmp_path), code) as starter:
        pid, started = first_line(starter).split()
        process = ProcessId(int(pid), float(started))
        own_pid = int(wait_for_text(tmp_path / "host.log"))
        assert is_alive(process)
        starter.kill()
    try:
        assert is_alive(process)
        if sys.platform != "win32":
            assert own_pid == process.pid
            assert os.getsid(own_pid) == own_pid
    finally:
        psutil.Process(own_pid).kill()
    wait_until_dead(process.pid, process)


def test_a_detached_process_that_ends_leaves_no_zombie(tmp_path: Path) -> None:
    process = spawn_detached([sys.executable, "-S", "-c", "print(1)"], tmp_path, dict(os.environ), tmp_path / "log")
    wait_until_dead(process.pid, process)
    assert (tmp_path / "log").read_text(encoding="utf-8").strip() == "1"
    assert [child for child in psutil.Process().children() if child.pid == process.pid] == []


@pytest.mark.parametrize(
    ("returncode", "words"),
    [
        (0, "exited normally"),
        (-9, "out-of-memory killer"),
        (-50, "signal 50"),
        (127, "not found"),
        (137, "out-of-memory killer"),
        (0xC0000005, "access violation"),
        (0xC0000005 - 2**32, "access violation"),
        (0x40010004, "run host"),
        (0xC0DE0001, "0xC0DE0001"),
    ],
)
def test_exit_codes_in_words(returncode: int, words: str) -> None:
    assert re.search(words, describe_exit(returncode))


@pytest.mark.parametrize(
    ("returncode", "platform", "by_force"),
    [
        (-9, "linux", True), (-11, "linux", True), (0, "linux", False), (1, "linux", False), (9, "linux", False),
        (1, "win32", True), (9, "win32", True), (15, "win32", True), (0xC0000005, "win32", True),
        (0xC0000005 - 2**32, "win32", True), (0, "win32", False), (3, "win32", False), (2, "win32", False),
    ],
)  # fmt: skip
def test_ended_by_force(returncode: int, platform: str, by_force: bool) -> None:
    assert ended_by_force(returncode, platform) is by_force

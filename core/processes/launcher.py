"""Small jobs done in a process of their own on POSIX; run by path with ``python -I -S``, stdlib only.

``launcher.py exec PARENT_PID ARGV…``
    Ties this process to its parent (Linux: `PR_SET_PDEATHSIG`), then becomes ARGV. So no Python code has to run
    between fork and exec in the parent (`preexec_fn`), which has threads, and any program can be tied.
``launcher.py detach ARGV…``
    Starts ARGV in a session of its own, prints its pid, and ends when its standard input is closed. ARGV is then
    a child of init: it never becomes a zombie of the process that asked.
``launcher.py watch MARK``
    Reads lines ``+SESSION`` and ``-SESSION``. When its input ends, the one who wrote them is gone: it kills every
    process of the sessions that are left, and (Linux) every process with this mark in its environment.
"""

from __future__ import annotations

import os
import signal
import sys
import time

# Typing's own costs milliseconds at every start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

assert sys.platform != "win32"  # tells mypy what the rest is for

PR_SET_PDEATHSIG = 1
IGNORED_BY_PYTHON = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores them, and that outlives exec


def become(parent_pid: int, argv: list[str]) -> int:
    """Replace this process by `argv`; return (127) only when that is impossible."""
    if sys.platform == "linux":
        import ctypes

        # The signal comes when the *thread* that forked us ends: ProcessTree forks from one that lives as long
        # as the process does.
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            print(f"rankdeck: prctl failed: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
    if os.getppid() != parent_pid:
        # The parent died before the signal was asked for.
        return 1
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"rankdeck: {argv[0]} cannot be started: {error.strerror}", file=sys.stderr, flush=True)
    return 127


def detach(argv: list[str]) -> int:
    """Start `argv` with its output where our standard error goes; print its pid, or what went wrong."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsid=True, setsigdef=IGNORED_BY_PYTHON)
    except OSError as error:
        print(f"error {error.strerror}", flush=True)
        return 127
    print(pid, flush=True)
    # Until the caller has read the process's start time: the pid cannot be recycled before.
    sys.stdin.read()
    return 0


def watch(mark: str) -> int:
    """Wait for the end of the input, then kill the rest of the sessions named in it, and the marked processes."""
    sessions: set[int] = set()
    for line in sys.stdin:
        (sessions.add if line[0] == "+" else sessions.discard)(int(line[1:]))
    for session in sessions:
        _kill(os.killpg, session)
    # Processes of these sessions that made process groups of their own, and those that left their session.
    # Several rounds: one may fork meanwhile.
    for _ in range(10 if sys.platform == "linux" else 0):
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
        left = [pid for pid in pids if (session := _session(pid)) in sessions or (session >= 0 and _has(mark, pid))]
        killed = [pid for pid in left if _kill(os.kill, pid)]
        if not killed:
            break
        time.sleep(0.05)
    return 0


def _session(pid: int) -> int:
    """The session of a process; -1 for one that is gone, and for a zombie."""
    # Here only: it costs milliseconds, which the other jobs do not spend.
    from pathlib import Path

    try:
        # "pid (name) state parent group session …"; the name may hold spaces and brackets (proc_pid_stat(5))
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
        state, session = fields[0], int(fields[3])
    except (OSError, IndexError):
        return -1
    return -1 if state == b"Z" else session


def _has(mark: str, pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123, pathlib costs milliseconds at each start
            return f"RANKDECK_RUN_MARK={mark}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def _kill(kill: Callable[[int, int], None], pid: int) -> bool:
    try:
        kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True


def main(arguments: list[str]) -> int:
    job, *rest = arguments
    if job == "exec":
        return become(int(rest[0]), rest[1:])
    return detach(rest) if job == "detach" else watch(rest[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

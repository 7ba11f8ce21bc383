"""What a test may leave behind, seen before and after: threads, processes, sockets, Qt timers, threads and windows."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

POLL_S: Final = 0.02
# Python's own helper for shared memory, and the servers that fork tests' processes: they end with this process.
ALLOWED_PROCESSES: Final = ("multiprocessing.resource_tracker", "tests.helpers.fork_server")


@dataclass(frozen=True)
class Held:
    """What this process holds at one moment: descriptions by identity, so that a name that comes back is new.

    The objects themselves are kept too, because an id is given to another object once its owner is gone.
    """

    words: dict[object, str]
    objects: list[Any]

    @classmethod
    def now(cls, with_qt: bool) -> Held:
        """Looks around; Qt objects only on request, because finding them takes some 20 ms."""
        words: dict[object, str] = {}
        objects: list[Any] = []
        for thread in threading.enumerate():
            # A dummy stands for a thread that something else started (Qt, torch) and never goes away.
            if type(thread).__name__ != "_DummyThread":
                words[id(thread)] = f"thread {thread.name}"
                objects.append(thread)
        words.update(_processes())
        words.update(_sockets())
        if with_qt:
            for item, description in _qt_objects():
                words[id(item)] = description
                objects.append(item)
        return cls(words, objects)

    def since(self, before: Held) -> list[str]:
        return [words for key, words in self.words.items() if key not in before.words]


def wait_until_gone(before: Held, with_qt: bool, folder: Path, limit_s: float) -> list[str]:
    """Gives what a test left a moment to end; what is still there then, in words.

    Args:
        before: What was there before the test.
        with_qt: Whether the test used Qt.
        folder: The test's own folder; run hosts that a test detached are found by what they wrote there.
        limit_s: How long to wait.
    """
    deadline = time.monotonic() + limit_s
    collected = False
    while True:
        if with_qt:
            _let_qt_delete()
        now = Held.now(with_qt)
        left = now.since(before) + [f"run host {process.pid}" for process in _detached_hosts(folder)]
        del now
        if not left or time.monotonic() > deadline:
            return left
        if not collected:
            # Only now: a collection takes some 100 ms, and most tests leave nothing for it.
            gc.collect()
            collected = True
        time.sleep(POLL_S)


def end_processes(before: Held, folder: Path) -> None:
    """Ends the processes that a test left, so that later tests do not pay for it."""
    new = _processes().keys() - before.words.keys()
    left = [child for child in _children() if _key(child) in new]
    left += _detached_hosts(folder)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=5.0)


def _key(process: psutil.Process) -> tuple[str, int, float]:
    return ("process", process.pid, process.create_time())


def _processes() -> dict[object, str]:
    found: dict[object, str] = {}
    for child in _children():
        try:
            command = " ".join(child.cmdline())
            # A zombie is a process that has ended; whose Popen object is still to ask for its exit code.
            if child.status() == psutil.STATUS_ZOMBIE or any(name in command for name in ALLOWED_PROCESSES):
                continue
            found[_key(child)] = f"process {child.pid}: {command}"
        except psutil.NoSuchProcess:
            continue
    return found


def _children() -> Iterator[psutil.Process]:
    """This process's children: Linux has a list of them; elsewhere all processes are asked for their parent."""
    tasks = Path("/proc/self/task")
    if sys.platform != "linux" or not (tasks / str(threading.get_native_id()) / "children").exists():
        yield from psutil.Process().children()
        return
    for task in tasks.iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            for pid in (task / "children").read_text(encoding="ascii").split():
                with contextlib.suppress(psutil.NoSuchProcess):
                    yield psutil.Process(int(pid))


def _detached_hosts(folder: Path) -> list[psutil.Process]:
    """Run hosts that still live, by the `host.json` of the runs below a folder."""
    found = []
    for path in folder.rglob("host.json"):
        try:
            process = psutil.Process(int(json.loads(path.read_text(encoding="utf-8"))["pid"]))
            if {"core.host", "core.host.early"} & set(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _sockets() -> dict[object, str]:
    found: dict[object, str] = {}
    if not _may_have_sockets():
        return found
    for socket in psutil.Process().net_connections("tcp"):
        if socket.status in (psutil.CONN_LISTEN, psutil.CONN_ESTABLISHED):
            place = f"{socket.laddr} to {socket.raddr}" if socket.raddr else f"{socket.laddr}"
            found["socket", socket.laddr, socket.raddr, socket.status] = f"socket {socket.status} {place}"
    return found


def _may_have_sockets() -> bool:
    """False only where this process's open files, which are quicker to list than all connections, hold no socket."""
    files = "/proc/self/fd"
    if sys.platform != "linux":  # under Wine the folder exists and says nothing
        return True
    for descriptor in os.listdir(files):  # noqa: PTH208
        with contextlib.suppress(OSError):
            if os.readlink(f"{files}/{descriptor}").startswith("socket:"):  # noqa: PTH115
                return True
    return False


def _qt_objects() -> Iterator[tuple[Any, str]]:
    """Running timers and threads, and top-level widgets, each with what names it."""
    widgets = sys.modules.get("PySide6.QtWidgets")
    if widgets is None or widgets.QApplication.instance() is None:
        return
    from PySide6.QtCore import QThread, QTimer
    from shiboken6 import isValid

    for widget in widgets.QApplication.topLevelWidgets():
        if widget.parent() is None:
            yield widget, f"widget {type(widget).__name__} {widget.objectName() or widget.windowTitle()!r}"
    for item in gc.get_objects():
        # type(), not isinstance: proxies (torch has some) answer for __class__ with code of their own.
        if not issubclass(type(item), QTimer | QThread) or not isValid(item):
            continue
        owner = type(item.parent()).__name__ if item.parent() is not None else "nobody"
        if isinstance(item, QTimer) and item.isActive():
            yield item, f"QTimer {item.objectName()!r} every {item.interval()} ms, owned by {owner}"
        elif isinstance(item, QThread) and item.isRunning() and not item.isMainThread():
            yield item, f"QThread {item.objectName()!r}, owned by {owner}"


def _let_qt_delete() -> None:
    from PySide6.QtCore import QCoreApplication, QEvent

    if QCoreApplication.instance() is not None:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()

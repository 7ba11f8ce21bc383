"""Tests of a person's own PC: what no test machine of ours can show. Each is a finding, whatever happens in it.

Windows' counters of GPUs, staying awake, long paths, a file that another program holds, and how native
code dies. What computes and connects is `core.doctor.self_tests`'.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.doctor.finding import SELF_TESTS, Finding, Topic, answered
from core.errors import RankdeckError
from core.files.atomic import write_atomic
from core.files.long_paths import LONGEST_PATH, long_paths_enabled
from core.formatting import memory_size
from core.held_files import read_all
from core.machine.devices.gpu_counters import Readings, parse_use, use_on_main_adapter
from core.machine.devices.pdh import open_counters
from core.machine.keep_awake import is_kept_awake, kept_awake
from core.machine.process_reading import descendants
from core.paths import PACKAGE_FOLDER
from core.processes import ProcessTree
from core.processes.ask import Answer, read_answer, wait_until_ended

COUNTERS: Final = Topic("pc_counters", "GPU memory by Windows", SELF_TESTS, "NVML does not know it under WDDM.")
AWAKE: Final = Topic("pc_awake", "Staying awake", SELF_TESTS, "A computer that sleeps trains nothing.")
LONG: Final = Topic("pc_long_path", "A long path", SELF_TESTS, "Files of a run may have paths over 260 characters.")
HELD: Final = Topic("pc_held", "A held file", SELF_TESTS, "Virus scanners and indexers hold files that a run replaces.")
DEATH: Final = Topic("pc_death", "A crash in native code", SELF_TESTS, "Its exit code is what is left of it.")
SILENT: Final = Topic("pc_window", "No console window", SELF_TESTS, "Programs in the background must not open one.")
LIMIT_S: Final = 60.0
"""For each test."""
HELD_S: Final = 1.0
_SAMPLE_S: Final = 0.5

_HOLDS: Final = """
import ctypes, sys, time
from ctypes import wintypes
kernel = ctypes.WinDLL("kernel32")
kernel.CreateFileW.argtypes = (wintypes.LPCWSTR, *[wintypes.DWORD] * 2, ctypes.c_void_p, *[wintypes.DWORD] * 2,
                               wintypes.HANDLE)
kernel.CreateFileW.restype = wintypes.HANDLE
kernel.CreateFileW(sys.argv[1], 0x80000000, 0, None, 3, 0, None)
print("{}", flush=True)
time.sleep(float(sys.argv[2]))
"""
_CRASHES: Final = "import faulthandler; faulthandler._read_null()"
_WINDOW: Final = (
    "import ctypes, json; w = ctypes.windll.kernel32.GetConsoleWindow(); "
    "print(json.dumps({'visible': bool(w and ctypes.windll.user32.IsWindowVisible(w))}))"
)


@dataclass(frozen=True, slots=True)
class PcTest:
    """One test.

    Attributes:
        topic: What it is about.
        run: Does it; blocks.
    """

    topic: Topic
    run: Callable[[], Finding]


def pc_tests(runs_dir: Path, cancelled: Callable[[], bool]) -> tuple[PcTest, ...]:
    """All tests of this PC but those of its devices."""
    return (
        PcTest(AWAKE, _awake),
        PcTest(LONG, lambda: _long_path(runs_dir)),
        PcTest(HELD, lambda: _held(cancelled)),
        PcTest(DEATH, lambda: _death(cancelled)),
        PcTest(SILENT, lambda: _silent(cancelled)),
    )


def run_pc_test(test: PcTest, cancelled: Callable[[], bool], limit_s: float = LIMIT_S) -> Finding:
    """A test's finding: one that fails, hangs or is interrupted is a result too."""
    if cancelled():
        return test.topic.not_tried("the self-test was cancelled")
    found: list[Finding] = []
    # In a thread, so that a call of the system that hangs ends nothing but its own test.
    thread = threading.Thread(target=lambda: found.append(_answer(test)), name=test.topic.id, daemon=True)
    thread.start()
    deadline = time.monotonic() + limit_s
    while thread.is_alive() and time.monotonic() < deadline and not cancelled():
        thread.join(0.1)
    if found:
        return found[0]
    if cancelled():
        return test.topic.not_tried("the self-test was cancelled")
    return test.topic.warn(f"did not finish within {limit_s:g} s", "The other tests are valid.")


def _answer(test: PcTest) -> Finding:
    try:
        return answered(test.topic, test.run)
    except Exception as error:  # whatever it is, the file is to say it
        return test.topic.warn(f"broke ({type(error).__name__}: {error})", "The other tests are valid.")


class CounterWatch:
    """Reads Windows' GPU counters while other tests compute, and keeps what our own processes held at most.

    Attributes:
        last: The newest readings, for the file.
    """

    def __init__(self) -> None:
        self.last: Readings = {}
        self._problem = ""
        self._dedicated = self._shared = 0
        self._readings = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counter-watch", daemon=True)
        self._thread.start()

    def close(self) -> Finding:
        """What was seen."""
        self._ending.set()
        self._thread.join(5.0)
        if self._thread.is_alive():
            return COUNTERS.warn("Windows' GPU counters do not answer", "GPU memory of ranks is not shown.")
        if self._problem:
            return COUNTERS.not_tried(self._problem)
        instances = sum(map(len, self.last.values()))
        seen = f"{self._readings} readings, {instances} instances in the last"
        if not self._dedicated:
            return COUNTERS.not_tried(f"{seen}; none of them was of a self-test (no test computed on a GPU?)")
        own = f"self-tests held up to {memory_size(self._dedicated)} dedicated, {memory_size(self._shared)} shared"
        return COUNTERS.ok(f"{own} ({seen})")

    def _run(self) -> None:
        try:
            counters = open_counters()
        except (OSError, AttributeError) as error:
            self._problem = str(error)
            return
        while not self._ending.wait(_SAMPLE_S):
            try:
                self.last = counters.read() or self.last
            except OSError as error:
                self._problem = str(error)
                return
            self._readings += 1
            use = use_on_main_adapter(parse_use(self.last), [child.pid for child in descendants(os.getpid())])
            if use is not None:
                self._dedicated = max(self._dedicated, use.dedicated_bytes)
                self._shared = max(self._shared, use.shared_bytes)


def _awake() -> Finding:
    before = is_kept_awake()
    if before is None:
        return AWAKE.not_tried("the system does not say whether it is kept awake")
    with kept_awake():
        during = is_kept_awake()
    if not during:
        return AWAKE.warn("the system does not list the wish to stay awake", "Turn off sleep in its settings.")
    return AWAKE.ok("the system stays awake while a run trains" + (" (another program keeps it so too)" * before))


def _long_path(runs_dir: Path) -> Finding:
    expected = long_paths_enabled()
    where = runs_dir if runs_dir.is_dir() else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix=".selftest-", dir=where, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        while len(str(folder)) <= LONGEST_PATH:
            folder = folder / ("long" * 12)
        try:
            folder.mkdir(parents=True)
            write_atomic(folder / "file.txt", "text")
            works = read_all(folder / "file.txt") == b"text"
        except (OSError, RankdeckError):
            works = False
    if works:
        return LONG.ok("a path of over 260 characters works" + ("" if expected else ", though the registry says no"))
    if not expected:
        return LONG.ok("a path of over 260 characters is refused, as the registry says")
    return LONG.warn("a path of over 260 characters is refused, though they are enabled", "Choose a short folder.")


def _held(cancelled: Callable[[], bool]) -> Finding:
    if sys.platform != "win32":
        return HELD.not_tried("only Windows refuses files that are held")
    with _folder() as folder, ProcessTree() as tree:
        path = folder / "held.txt"
        path.write_bytes(b"old")
        argv = (sys.executable, "-c", _HOLDS, str(path), str(HELD_S))
        child = tree.spawn(argv, os.environ, folder, folder / "log")
        deadline = time.monotonic() + LIMIT_S / 2
        while not (folder / "log").read_bytes().strip() and child.poll() is None and time.monotonic() < deadline:
            if cancelled():
                break
            time.sleep(0.02)
        began = time.monotonic()
        was_held = _is_refused(path)
        write_atomic(path, b"new")
        took = time.monotonic() - began
    if not was_held:
        return HELD.not_tried("the file was not refused while another process held it")
    return HELD.ok(f"a file that was held was replaced after {took:.1f} s")


def _is_refused(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return True
    return False


def _death(cancelled: Callable[[], bool]) -> Finding:
    answer = _ask(("-c", _CRASHES), cancelled)
    if answer.code in (0, None):
        return DEATH.not_tried(f"the process did not crash: it {answer.outcome}")
    named = "ended with exit code" not in answer.outcome
    text = f"a crash is told as “{answer.outcome}”"
    return DEATH.ok(text) if named else DEATH.warn(text, "Report it: this code has no words yet.")


def _silent(cancelled: Callable[[], bool]) -> Finding:
    if sys.platform != "win32":
        return SILENT.not_tried("only Windows opens console windows")
    answer = _ask(("-c", _WINDOW), cancelled)
    if answer.values is None:
        return SILENT.not_tried(f"the process {answer.failure}")
    if answer.values.get("visible"):
        return SILENT.fail("a program in the background opened a console window", "Report it with this file.")
    return SILENT.ok("a program in the background opened no console window")


def _ask(arguments: tuple[str, ...], cancelled: Callable[[], bool]) -> Answer:
    """Runs this Python until it ends; its last JSON line is the answer."""

    def waiting() -> None:
        if cancelled():
            raise _CancelledError("It was cancelled.", "Run it again.")

    with _folder() as folder, ProcessTree() as tree:
        env: dict[str, Any] = {**os.environ, "PYTHONPATH": str(PACKAGE_FOLDER), "PYTHONUTF8": "1"}
        child = tree.spawn((sys.executable, *arguments), env, folder, folder / "output.log")
        with contextlib.suppress(_CancelledError):
            wait_until_ended([child], LIMIT_S / 2, waiting)
        return read_answer(child)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rankdeck-selftest-", ignore_cleanup_errors=True) as name:
        yield Path(name)


class _CancelledError(RankdeckError):
    """The person has ended the self-test."""

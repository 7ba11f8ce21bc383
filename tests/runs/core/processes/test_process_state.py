"""What the system says of processes that stand still, on real ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from core.processes.process_state import is_stopped, look_at, program_of
from tests.helpers.wine import not_under_wine

needs_states = not_under_wine("tells neither that a process is suspended nor what another one has computed")

Start = Callable[[str], psutil.Process]
SLEEPS = "import time; print('there', flush=True); time.sleep(600)"
COMPUTES = "print('there', flush=True)\nwhile True: pass"
STARTS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}])"


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def run(text: str) -> psutil.Process:
        process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline().strip() == b"there"
        found = psutil.Process(process.pid)
        children = found.children()  # a virtual environment's Python on Windows starts the real one
        return children[0] if children and text is not STARTS else found

    yield run
    for process in started:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.communicate()


@needs_states
def test_a_suspended_process_is_stopped_until_it_is_continued(start: Start) -> None:
    process = start(SLEEPS)
    assert not is_stopped(process.pid)
    process.suspend()
    while not is_stopped(process.pid):
        continue
    state = look_at(process.pid)
    assert state.stopped and state.text.startswith("is stopped")
    process.resume()
    while is_stopped(process.pid):
        continue
    assert not look_at(process.pid).stopped


@needs_states
def test_one_that_sleeps_and_one_that_computes(start: Start) -> None:
    assert look_at(start(SLEEPS).pid).text.startswith("sleeps")
    assert look_at(start(COMPUTES).pid).text.startswith("computes")


@pytest.mark.windows
def test_the_program_of_a_wrapper_is_what_it_started(start: Start) -> None:
    wrapper = start(STARTS)
    assert program_of(wrapper.pid) in {child.pid for child in wrapper.children(recursive=True)}


@pytest.mark.windows
def test_one_that_has_ended() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert look_at(ended.pid).text == "has ended" and not is_stopped(ended.pid) and program_of(ended.pid) == ended.pid

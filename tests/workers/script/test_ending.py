"""How a program's end is told: the last traceback, exit codes, signals, NTSTATUS, and what to do."""

from __future__ import annotations

import pytest

from workers.script.ending import describe_failure, last_traceback

pytestmark = pytest.mark.windows

TRACE = """Traceback (most recent call last):
  File "/home/u/project/train.py", line 41, in <module>
    main()
  File "/home/u/lib/site-packages/torch/nn/functional.py", line 9, in f
    raise RuntimeError(x)
RuntimeError: mat1 and mat2 shapes cannot be multiplied
(8x4 and 5x1)
"""


def told(code: int, log: str, *, alone: bool = False) -> tuple[str, str, str]:
    said = describe_failure(code, log, name="train.py", python="/py", alone=alone)
    return said.title, said.cause, said.next_step


def test_the_last_traceback_is_the_cause() -> None:
    log = 'Traceback (most recent call last):\n  File "a", line 1\nKeyError: 1\nwent on\n' + TRACE + "\nbye\n"
    assert last_traceback(log) == TRACE.rstrip()
    title, cause, _ = told(1, log)
    assert title == "The script failed"
    assert cause == "train.py, line 41: RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 5x1)"


def test_prefixes_that_torch_puts_before_each_line() -> None:
    log = "".join(f"[rank1]: {line}\n" for line in TRACE.splitlines())
    assert last_traceback(log) == TRACE.rstrip()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "SIGKILL"),
        (-11, "segmentation fault"),
        (0xC0000005, "access violation"),
        (0xC0000135, "a DLL is missing"),
        (3, "exit code 3"),
    ],
)
def test_an_end_without_a_traceback_is_told_by_its_code(code: int, words: str) -> None:
    _, cause, _ = told(code, "step 1\r step 2\nlast words\n")
    assert words in cause and "“last words”" in cause


def test_an_abort_after_the_scripts_end_is_told_how_to_avoid() -> None:
    log = "step 12\nterminate called without an active exception\nFatal Python error: Aborted\n\n  <no frame>\n"
    title, cause, next_step = told(-6, log)
    assert title == "The script crashed" and "Fatal Python error: Aborted" in cause
    assert "destroy_process_group()" in next_step


RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/x/train.py", line 5, in <module>\n'
    '    raise RuntimeError("no")\n'
    "RuntimeError: no\n"
)
ABORT = "terminate called without an active exception\nFatal Python error: Aborted\n\n  <no frame>\n"
NATIVE = "[W1122 06:49:38.1 socket.cpp:200] Warning: it goes away\n"


@pytest.mark.parametrize("between", ["", NATIVE])
def test_an_abort_after_an_exception_is_told_by_the_exception(between: str) -> None:
    title, cause, next_step = told(-6, RAISED + between + ABORT)
    assert title == "The script failed" and "RuntimeError: no" in cause and "line 5" in cause
    assert "destroy_process_group()" not in next_step


def test_an_exception_that_was_caught_does_not_hide_an_abort() -> None:
    title, _, next_step = told(-6, f"{RAISED}step 12\n{ABORT}")
    assert title == "The script crashed" and "destroy_process_group()" in next_step


def test_a_crash_in_native_code_names_it() -> None:
    log = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  File x.py, line 3\n"
    )
    title, cause, _ = told(-11, log)
    assert title == "The script crashed" and "Fatal Python error: Segmentation fault" in cause


@pytest.mark.parametrize(
    ("error", "alone", "words"),
    [
        ("ModuleNotFoundError: No module named 'peft'", False, "pip install"),
        ("KeyError: 'LOCAL_RANK'", False, "do not leave them out"),
        ("AssertionError: Torch not compiled with CUDA enabled", True, "--no-torchrun"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried", False, "batch smaller"),
        ("RuntimeError: address already in use", False, "start the run again"),
    ],
)
def test_what_can_be_done_is_said(error: str, alone: bool, words: str) -> None:
    log = f'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n{error}\n'
    assert words in told(1, log, alone=alone)[2]

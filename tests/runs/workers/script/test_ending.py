"""How a program's end is told: the last traceback, exit codes, signals, NTSTATUS, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import pytest

from core.protocol.messages import RankFailed
from workers.script.ending import OwnCode, describe_failure

pytestmark = pytest.mark.windows

GPU, CPU, ONE_CPU, ONE_CPU_PLAIN = ("cuda", 2, False), ("cpu", 2, False), ("cpu", 1, False), ("cpu", 1, True)
FOLDERS = (PurePosixPath("/home/u/project"), PureWindowsPath("D:\\My Project"))

TRACE = """Traceback (most recent call last):
  File "/home/u/project/train.py", line 41, in <module>
    main()
  File "/home/u/lib/site-packages/torch/nn/functional.py", line 9, in f
    raise RuntimeError(x)
RuntimeError: mat1 and mat2 shapes cannot be multiplied
(8x4 and 5x1)
"""


def failure(
    code: int,
    log: str,
    launched: tuple[str, int, bool] = GPU,
    folders: tuple[PurePath, ...] = FOLDERS,
    python: str = "/env/bin/python",
) -> RankFailed:
    device, world_size, plain = launched
    script: Any = SimpleNamespace(name="train.py", python=python, plain=plain, project_folders=folders)
    return describe_failure(code, log, script, on_cpu=device == "cpu", world_size=world_size)


def told(code: int, log: str, launched: tuple[str, int, bool] = GPU) -> tuple[str, str, str]:
    said = failure(code, log, launched)
    return said.title, said.cause, said.next_step


def test_the_last_traceback_is_the_cause() -> None:
    log = 'Traceback (most recent call last):\n  File "a", line 1\nKeyError: 1\nwent on\n' + TRACE + "\nbye\n"
    assert failure(1, log).traceback == TRACE.rstrip()
    title, cause, _ = told(1, log)
    assert title == "The script failed"
    assert cause == "train.py, line 41: RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 5x1)"


def test_prefixes_that_torch_puts_before_each_line() -> None:
    log = "".join(f"[rank1]: {line}\n" for line in TRACE.splitlines())
    assert failure(1, log).traceback == TRACE.rstrip()


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
    ("error", "launched", "words"),
    [
        ("ModuleNotFoundError: No module named 'peft'", GPU, "pip install"),
        ("KeyError: 'LOCAL_RANK'", GPU, "don't leave them out"),
        (
            "AssertionError: Torch not compiled with CUDA enabled",
            ONE_CPU,
            "for this one: rankdeck run --no-to",
        ),
        ("AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'", ONE_CPU, "--no-torchrun"),
        ("RuntimeError: Distributed package doesn't have NCCL built in", ONE_CPU, "--no-torchrun"),
        ("RuntimeError: Distributed package doesn't have NCCL built in", CPU, "--devices cpu:1 --no-torchrun"),
        ("RuntimeError: Distributed package doesn't have NCCL built in", ONE_CPU_PLAIN, "Choose a GPU"),
        ("RuntimeError: NCCL error: unhandled system error", GPU, "the full output"),
        (
            "DistNetworkError: The client socket has timed out after 9ms while trying to connect to (h, 1).",
            CPU,
            "TORCHELASTIC_USE_AGENT_STORE=False",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried", GPU, "batch smaller"),
        ("RuntimeError: address already in use", GPU, "Start the run again"),
    ],
)
def test_what_can_be_done_is_said(error: str, launched: tuple[str, int, bool], words: str) -> None:
    log = f'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n{error}\n'
    assert words in told(1, log, launched)[2]


def frames(*places: str, error: str) -> str:
    """A traceback through these places, each ``file:line``, as Python prints it."""
    lines = [f'  File "{file}", line {line}, in f\n    code()' for file, _, line in (p.rpartition(":") for p in places)]
    return "\n".join(["Traceback (most recent call last):", *lines, error]) + "\n"


STDLIB = "/usr/lib/python3.11/json/decoder.py:337"
TORCH = "/env/lib/python3.11/site-packages/torch/x.py:9"
CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"


@pytest.mark.parametrize(
    ("log", "where"),
    [
        (frames("/home/u/project/train.py:6", STDLIB, error="E: no"), "train.py, line 6: E: no"),
        (
            frames("train.py:6", "/home/u/project/data/read.py:8", TORCH, error="E: no"),
            "train.py, line 8 of read.py: E",
        ),
        (frames("/home/u/project/train.py:6", "/src/mine/x.py:3", STDLIB, error="E: no"), "train.py, line 6: E: no"),
        (frames("/src/mine/x.py:3", "/env/lib/mine/y.py:4", error="E: no"), "train.py, line 3 of x.py: E: no"),
        (frames("/home/u/project/.venv/lib/python3.12/site-packages/a.py:3", error="E: no"), "line 3 of a.py"),
        (
            frames("D:\\My Project\\lib\\train.py:6", "C:\\Python311\\Lib\\json\\decoder.py:3", error="E: no"),
            "train.py, line 6: E: no",
        ),
        (frames("C:\\dev\\x.py:6", "C:\\Python311\\Lib\\json\\decoder.py:3", error="E: no"), "line 6 of x.py: E"),
        # the cause's place is not the exception's …
        (frames("train.py:3", error="K: x") + CAUSE + frames("train.py:5", error="E: no"), "train.py, line 5: E: no"),
        # … unless that has none in the script …
        (frames("train.py:3", error="K: x") + CAUSE + frames(TORCH, error="E: no"), "train.py, line 3: E: no"),
        # … or it is the same one, raised again where a pool's result was asked for
        (frames("train.py:3", error="K: x") + CAUSE + frames("train.py:9", error="K: x"), "train.py, line 3: K: x"),
        # what Python prints and passes over on its way out is no cause
        (
            frames("train.py:3", error="K: x") + "Exception ignored in: <f>\n" + frames("b.py:9", error="W: y"),
            "train.py, line 3: K: x",
        ),
    ],
)
def test_the_cause_names_the_scripts_own_line(log: str, where: str) -> None:
    assert where in told(1, log)[1]


WORK = "import json\ndef work(number):\n    return json.loads('{')\n"
POOL = "    import multiprocessing\n    with multiprocessing.Pool(1) as pool: pool.map(work, [1])\n"


def test_a_workers_exception_names_the_scripts_own_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{WORK}if __name__ == '__main__':\n{POOL}", encoding="utf-8", newline="\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, encoding="utf-8", timeout=100)
    said = failure(done.returncode, done.stderr, folders=(tmp_path,), python=sys.executable)
    assert said.cause.startswith("train.py, line 3: json.decoder.JSONDecodeError: Expecting property name"), done.stderr


@pytest.mark.slow
def test_what_no_torchrun_would_mend_is_said_to_be_mended_so() -> None:
    text = "import os, torch\nif 'RANK' in os.environ: torch.cuda.set_device(0)\n"
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        env={**os.environ, **place, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    said = failure(done.returncode, done.stderr, ONE_CPU)
    assert "rankdeck run --no-torchrun" in said.next_step, done.stderr


LINUX = OwnCode([PurePosixPath("/home/me/proj")], "/home/me/proj/.venv/bin/python")
WINDOWS = OwnCode([PureWindowsPath(r"C:\Me\Proj")], r"C:\Me\Proj\.venv\Scripts\python.exe")
PLAIN = OwnCode([PureWindowsPath(r"C:\Me\Proj")], r"C:\Python312\python.exe")


@pytest.mark.parametrize(
    ("code", "file", "inside", "may_be"),
    [
        (LINUX, "/home/me/proj/train.py", True, True),
        (LINUX, "/home/me/proj2/train.py", False, True),
        (LINUX, "/home/me/proj/.venv/lib/mine.py", False, False),
        (LINUX, "/home/me/proj/lib/mine.py", True, True),
        (LINUX, "/usr/lib/python3.11/json/decoder.py", False, False),
        (LINUX, "/opt/site-packages/torch/nn.py", False, False),
        (LINUX, "<frozen runpy>", False, False),
        (LINUX, "/home/me/Proj/train.py", False, True),
        (WINDOWS, r"c:\me\proj\train.py", True, True),
        (WINDOWS, r"C:\Me\Proj\.venv\Lib\x.py", False, False),
        (WINDOWS, r"D:\other\train.py", False, True),
        (PLAIN, r"C:\Python312\Lib\json\decoder.py", False, False),
        (PLAIN, r"D:\Python\Lib\json\decoder.py", False, False),
        (PLAIN, r"C:\Me\Proj\Lib\mine.py", True, False),
    ],
)
def test_a_files_place_tells_whose_it_is(code: OwnCode, file: str, inside: bool, may_be: bool) -> None:
    assert (code.is_inside(file), code.may_be(file)) == (inside, may_be)


def test_without_a_folder_only_relative_files_are_inside() -> None:
    code = OwnCode([], "/usr/bin/python3")
    assert code.is_inside("train.py") and not code.is_inside("/home/me/train.py")

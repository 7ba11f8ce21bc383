"""A few processes that turn parts into tokens side by side. They end with the process that made them.

Plain child processes with pipes rather than `multiprocessing`: they hold nothing of their parent's (no torch), need no
guard in its main module under Windows, and see the end of their input when it is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

import psutil

from core import errors
from core.errors import RankdeckError
from core.processes.program_environment import program_environment
from workers.data.reading.pieces import Part
from workers.data.tokens.tokenizer_spec import TokenizerSpec

MAX_PROCESSES: Final = 8
_END_LIMIT_S: Final = 5.0
_POLL_S: Final = 0.5
_JOBS_EACH: Final = 2
"""One that is being done, and one that waits: no process is idle while the next part is unpacked."""
_MEMORY_OF_ONE: Final = 600 << 20
"""What a process may need with a tokenizer of the `tokenizers` package; of bytes it needs a tenth of that."""


class TokenisingError(RankdeckError):
    """A process that was to make tokens failed."""

    title = "The dataset could not be tokenised"


def process_count(parts: int) -> int:
    """How many processes to use: as many as there are parts, physical cores, and memory for them; at most eight."""
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    if sys.platform == "linux":
        cores = min(cores, len(psutil.Process().cpu_affinity()))
    memory = psutil.virtual_memory().available // (2 * _MEMORY_OF_ONE)
    return max(1, min(parts, cores, memory, MAX_PROCESSES))


class PartPool:
    """Processes that do jobs; leaving the ``with`` block ends them.

    Args:
        count: How many.
        tokenizer: What the parts are tokenised with.
    """

    def __init__(self, count: int, tokenizer: TokenizerSpec) -> None:
        self._tokenizer = asdict(tokenizer)
        self._jobs: queue.SimpleQueue[tuple[int, Part, Path] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
        self._processes = [_spawn() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(process,), name="part-worker", daemon=True)
            for process in self._processes
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(_END_LIMIT_S)
        for process in self._processes:
            process.wait(_END_LIMIT_S)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def write(self, jobs: Iterator[tuple[int, Part, Path]], on_progress: Callable[[int, int | None], None]) -> None:
        """Has every part written.

        Args:
            jobs: Number, part, and where its tokens go; taken a few ahead of what is being written.
            on_progress: Called in this thread, at least twice a second, with a number and the bytes read of that part,
                or None when it is done; and (-1, 0) when there is nothing new. May raise to end it all.

        Raises:
            RankdeckError: A part cannot be read or written, or a process died.
        """
        left: set[int] = set()
        while True:
            while len(left) < _JOBS_EACH * len(self._processes) and (job := next(jobs, None)) is not None:
                left.add(job[0])
                self._jobs.put(job)
            if not left:
                return
            try:
                number, answer = self._answers.get(timeout=_POLL_S)
            except queue.Empty:
                on_progress(-1, 0)
                continue
            if "error" in answer:
                raise _as_error(answer["error"])
            if "done" in answer:
                left.discard(number)
            on_progress(number, None if "done" in answer else int(answer["read"]))

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        """Hands one process job after job, and its answers on."""
        while (job := self._jobs.get()) is not None:
            number, part, out = job
            try:
                self._do(process, number, part, out)
            except (OSError, ValueError):  # ValueError: a line that was cut off by its end
                code = process.poll()
                cause = f"A process that tokenised {part.name} ended{'' if code is None else f' with code {code}'}."
                self._answers.put((number, {"error": {"kind": "", "cause": cause}}))
                return

    def _do(self, process: subprocess.Popen[bytes], number: int, part: Part, out: Path) -> None:
        assert process.stdin is not None and process.stdout is not None
        job = {"part": asdict(part), "tokenizer": self._tokenizer, "out": str(out)}
        process.stdin.write(json.dumps(job).encode("utf-8") + b"\n")
        process.stdin.flush()
        while True:
            answer = json.loads(process.stdout.readline())
            self._answers.put((number, answer))
            if "read" not in answer:
                return


def _spawn() -> subprocess.Popen[bytes]:
    # One thread each: the processes are the parallelism.
    one_thread = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.Popen(
        [sys.executable, "-m", "workers.data.tokens.part_worker"],
        env=program_environment(os.environ, one_thread),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def _as_error(answer: Mapping[str, str]) -> RankdeckError:
    kind = getattr(errors, answer["kind"], None) if answer["kind"] else None
    if isinstance(kind, type) and issubclass(kind, RankdeckError) and kind is not errors.ConfigError:
        return kind(answer["cause"], answer["next_step"], title=answer["title"])
    return TokenisingError(
        answer["cause"], "Look at rank 0's log in the run's folder; resuming continues where it was."
    )

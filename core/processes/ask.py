"""`ask_program`: puts a request to a program of ours in its own process; its answer is the last line it prints."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.held_files import read_utf8
from core.parsing import parse_json
from core.processes.program_environment import program_environment
from core.processes.tree import Child, ProcessTree
from core.training_python import training_python

_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Answer:
    """A program's answer.

    Attributes:
        values: The last JSON object that it printed. None if there is none, or if it failed without naming a cause.
        last_line: The last line of its output that has text.
        outcome: Its end as text: "exited normally", …; "is running" if it took too long.
    """

    values: dict[str, Any] | None
    last_line: str
    outcome: str
    in_time: bool
    code: int | None = None

    @property
    def failure(self) -> str:
        """Its end and its last line, for an answer without values."""
        return f"{self.outcome}: {self.last_line}" if self.last_line else self.outcome


def ask_program(
    program: Sequence[str],
    request: Mapping[str, Any],
    env: Mapping[str, str],
    limit_s: float | None,
    waiting: Callable[[Path], None] = lambda _: None,
) -> Answer:
    """Run a program until it ends, or has taken too long. Blocks; may be called from any thread.

    Args:
        program: Arguments behind the interpreter; the path of a JSON file with the request is added.
        request: The request.
        env: The run's variables.
        limit_s: The longest time, after which the program is ended; None: no limit.
        waiting: Called now and then with the program's temporary folder. An error in it ends the program.
    """
    with tempfile.TemporaryDirectory(prefix="rankdeck-", ignore_cleanup_errors=True) as name, ProcessTree() as tree:
        folder = Path(name)
        path = folder / "request.json"
        path.write_text(json.dumps(request), encoding="utf-8")
        argv = (str(training_python().executable), *program, str(path))
        child = tree.spawn(argv, program_environment(os.environ, env), folder, folder / "output.log")
        wait_until_ended([child], limit_s, lambda: waiting(folder))
        return read_answer(child)


def wait_until_ended(children: Sequence[Child], limit_s: float | None, waiting: Callable[[], None]) -> None:
    """Wait until all have ended, one has failed (the others may wait for it), or the time is over."""
    deadline = None if limit_s is None else time.monotonic() + limit_s
    while any(child.poll() is None for child in children):
        waiting()
        if any(child.poll() not in (None, 0) for child in children):
            break
        if deadline is not None and time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    waiting()  # what was written last, just before the end


def read_answer(child: Child) -> Answer:
    code = child.poll()
    lines = read_utf8(child.log, errors="replace").splitlines()
    values = next((values for line in reversed(lines) if isinstance(values := _json(line), dict)), None)
    if values is not None and code != 0 and not values.get("cause"):
        values = None
    # pip ends its lines with \r\r\n on Windows, which reads as a line and an empty one.
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return Answer(values, last, child.outcome, code is not None, code)


def _json(line: str) -> object:
    try:
        return parse_json(line)
    except ValueError:
        return None

"""Node start: starts a machine's part of a run on several machines, over SSH."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from core.errors import RankdeckError
from core.launch.nodes.process import error_of
from core.launch.nodes.status import ERROR_EVENT
from core.machines.answers import Output
from core.machines.machine import Machine, MachineError
from core.machines.session import Session
from core.parsing import ParseError, parse_json
from core.paths import PACKAGE_FOLDER
from core.training_python import training_python

_SILENT_S: Final = 7 * 86_400.0
_LEFT: Final = 130


def start_node(machine: Machine, line: Sequence[str], folder: str, key: str) -> None:
    """Starts the command there and follows it to its end. A connection that breaks ends nothing there.

    Where that machine has no key of the nodes yet, this one's is copied first: through the connection, so that it
    stands on no command line.

    Args:
        machine: Where.
        line: The command for other machines, ``rankdeck`` first.
        folder: The folder to start it in, the same on all machines.
        key: The key of the nodes on this computer.

    Raises:
        RankdeckError: It could not be started, was refused, or failed; says why.
    """
    with Session(machine) as session:
        if session.hello.platform != "linux":
            raise MachineError(
                f"{machine.name} is a {session.hello.platform} machine, and PyTorch's store for several machines "
                "works on Linux only.",
                "Choose a Linux machine.",
                title="This machine cannot be a node",
            )
        text_of_key = f"{key}\n".encode("ascii")
        session.send_bytes({"op": "key"}, len(text_of_key), [text_of_key])
        last, failure, code = "", None, 0
        program = {"op": "program", "argv": ["sh", "-c", script(line, folder)]}
        for output in session.stream(program, Output, _SILENT_S, most=0):  # for as long as it trains
            if output.code is not None:
                code = output.code
                break
            text = (output.line or "").strip()
            failure = _error(text) or failure
            last = text or last
    if code in (0, _LEFT):
        return
    if failure is not None:
        raise MachineError(f"{machine.name}: {failure.cause}", failure.window_step, title=failure.title, code=code)
    raise MachineError(
        f"The command ended on {machine.name} with exit code {code}: {last or 'it printed nothing'}",
        f"Check that Rankdeck is at {PACKAGE_FOLDER} there too, and that {folder} is a folder that both share.",
        title=f"{machine.name} has not started",
        code=code,
    )


def script(line: Sequence[str], folder: str) -> str:
    """The shell's lines: a process of its own session, whose output is followed until it ends."""
    command = [str(training_python().executable), "-m", "core", *line[1:], "--json"]
    return "\n".join(
        (
            f"cd {shlex.quote(folder)} || exit 3",
            'log=$(mktemp "${TMPDIR:-/tmp}/rankdeck-node-XXXXXX") || exit 3',
            f'PYTHONPATH={shlex.quote(str(PACKAGE_FOLDER))} setsid {shlex.join(command)} > "$log" 2>&1 < /dev/null &',
            "node=$!",
            'tail -n +1 -s 0.2 -f --pid=$node "$log"',
            "wait $node",
            "code=$?",
            'rm -f "$log"',
            "exit $code",
        )
    )


def _error(text: str) -> RankdeckError | None:
    if ERROR_EVENT not in text:
        return None
    try:
        value = parse_json(text)
    except ParseError:
        return None
    return error_of(value) if isinstance(value, dict) else None

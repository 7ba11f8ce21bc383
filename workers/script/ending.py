"""How the user's program ended, in a person's words: its last traceback, else its exit code or signal."""

from __future__ import annotations

import re
from pathlib import PureWindowsPath
from typing import Final

from core.messages import RankFailed
from core.process_tree import describe_exit

_TRACEBACK: Final = "Traceback (most recent call last):"
_FATAL: Final = re.compile(r"Fatal Python error: .*")
_PREFIX: Final = re.compile(r"^\[(?:rank|default|gpu|cuda)?[ :_]?\d+\]:?\s?", re.IGNORECASE)
_PLACE: Final = re.compile(r'^\s*File "([^"]+)", line (\d+)')
_ERROR: Final = re.compile(r"^[A-Za-z_][\w.]*(?:: .*|$)")
_MORE_LINES: Final = 12
_NATIVE: Final = re.compile(r"\[[WE]\d{4} |\[[WE] ")  # a warning or error of torch's C++ parts
_ABORTED: Final = "terminate called without an active exception"
_HINTS: Final = (
    (
        re.compile(r"No module named '?([\w.]+)", re.IGNORECASE),
        "Install it into the script's interpreter ({python} -m pip install …), or choose another interpreter.",
    ),
    (
        re.compile(r"KeyError: '(?:LOCAL_)?(?:RANK|WORLD_SIZE)'|variable (?:RANK|WORLD_SIZE|MASTER_\w+) expected"),
        "The script wants torchrun's variables: do not leave them out.",
    ),
    (
        re.compile(r"out of memory", re.IGNORECASE),
        "Make the script's batch smaller, or use fewer ranks on one device.",
    ),
    (
        re.compile(r"address already in use|EADDRINUSE|errno: 98|10048", re.IGNORECASE),
        "Another program took the port that the ranks meet at; start the run again.",
    ),
    (
        re.compile(_ABORTED),
        "PyTorch may do so when a script ends without torch.distributed.destroy_process_group(); call it at the end.",
    ),
)  # fmt: skip
_NO_CUDA: Final = re.compile(
    r"Torch not compiled with CUDA|Found no NVIDIA|NVIDIA driver|without NCCL|nccl", re.IGNORECASE
)
_PLAIN_HINT: Final = (
    "On one device a script often runs as without torchrun: rankdeck run --no-torchrun, or tick it in the form."
)


def describe_failure(returncode: int, log: str, *, name: str, python: str, alone: bool) -> RankFailed:
    """The last words of a rank whose program failed.

    Args:
        returncode: As `subprocess` gives it.
        log: The end of what the program printed.
        name: The script's.
        python: Its interpreter.
        alone: It ran under torchrun's variables with nobody else.
    """
    until_abort = log.rpartition(_ABORTED)[0]
    if _raised_last(until_abort):
        returncode, log = 1, until_abort  # it aborted on its way out; the exception is what counts
    trace = last_traceback(log)
    error = _error_of(trace)
    words = describe_exit(returncode)
    if returncode < 0 or returncode > 255 or not error:
        cause = f"{name} {words}."
        last = _last_line(log)
        cause += f" {error}" if error else f" It last printed: “{last}”." if last else ""
    else:
        cause = f"{name}{_place_of(trace, name)}: {error}"
        cause += "" if returncode == 1 else f" ({words})"
    return RankFailed(_title(error, returncode), cause, _next_step(log[-8000:], python, alone), False, trace)


def last_traceback(log: str) -> str:
    """The last traceback (or native crash report) in a program's output; empty when there is none."""
    lines = [_PREFIX.sub("", line) for line in log.splitlines()]
    starts = [i for i, line in enumerate(lines) if _TRACEBACK in line or _FATAL.search(line)]
    if not starts:
        return ""
    start = starts[-1]
    found = [lines[start].strip()]
    if _FATAL.search(lines[start]):
        return "\n".join([*found, *(line for line in lines[start + 1 : start + 40] if line.strip())])
    for index in range(start + 1, len(lines)):
        line = lines[index]
        found.append(line)
        if line.strip() and not line[0].isspace() and _ERROR.match(line):
            found += _message_lines(lines[index + 1 : index + 1 + _MORE_LINES])
            break
    return "\n".join(found).rstrip()


def _raised_last(log: str) -> bool:
    """Whether the last that a program printed, up to native code's own messages, is an exception that nobody caught."""
    lines = [_PREFIX.sub("", line) for line in log.splitlines()]
    starts = [number for number, line in enumerate(lines) if _TRACEBACK in line]
    after = [line for line in lines[starts[-1] + 1 :] if not _NATIVE.match(line)] if starts else []
    flush = [line for line in after if line.strip() and not line[0].isspace()]  # neither frames nor a message's rest
    return len(flush) == 1 and bool(_ERROR.match(flush[0]))


def _message_lines(lines: list[str]) -> list[str]:
    """The further lines of an exception's message: up to the first empty one."""
    taken = []
    for line in lines:
        if not line.strip():
            break
        taken.append(line)
    return taken


def _error_of(trace: str) -> str:
    """The exception and its message, on one line."""
    lines = trace.splitlines()
    if not lines:
        return ""
    if _FATAL.search(lines[0]):
        return lines[0]
    found = next(
        (i for i, line in enumerate(lines) if i and line and not line[0].isspace() and _ERROR.match(line)), None
    )
    if found is None:
        return ""
    text = " ".join(line.strip() for line in lines[found : found + 3])
    return text if len(text) <= 400 else text[:397] + "..."


def _place_of(trace: str, name: str) -> str:
    places = [found for line in trace.splitlines() if (found := _PLACE.match(line))]
    own = [place for place in places if "site-packages" not in place[1] and "<frozen" not in place[1]]
    if not places:
        return ""
    chosen = (own or places)[-1]
    file = PureWindowsPath(chosen[1]).name  # it takes both kinds of slash
    return f", line {chosen[2]}" if file == name else f", line {chosen[2]} of {file}"


def _title(error: str, returncode: int) -> str:
    if "out of memory" in error.lower() or "MemoryError" in error:
        return "The script ran out of memory"
    if returncode < 0 or returncode > 255:
        return "The script crashed"
    return "The script failed"


def _last_line(log: str) -> str:
    lines = [line.strip() for line in re.split(r"[\r\n]+", log) if line.strip() and not line.startswith("rankdeck:")]
    return lines[-1][:300] if lines else ""


def _next_step(log: str, python: str, alone: bool) -> str:
    if alone and _NO_CUDA.search(log):
        return _PLAIN_HINT
    for pattern, words in _HINTS:
        if pattern.search(log):
            return words.replace("{python}", python)
    return "The rank's log has everything that it printed."

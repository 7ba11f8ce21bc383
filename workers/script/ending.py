"""Ending of the user's program as text: its last traceback, else its exit code or signal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Final

from core.errors import RankdeckError, sentences
from core.processes import describe_exit, exit_advice, is_crash
from core.protocol.messages import RankFailed
from core.recipes.user_script import UserScript

_TRACEBACK: Final = "Traceback (most recent call last):"
_FATAL: Final = re.compile(r"Fatal Python error: .*")
_PREFIX: Final = re.compile(r"^\[(?:rank|default|gpu|cuda)?[ :_]?\d+\]:?\s?", re.IGNORECASE)
_PLACE: Final = re.compile(r'^[ \t|]*File "([^"]+)", line (\d+)', re.MULTILINE)
_CHAINED: Final = re.compile(r"(The above exception was the direct cause|During handling of the above exception)")
_PASSED_OVER: Final = re.compile(r"Exception ignored in|Error in atexit")
_ERROR: Final = re.compile(r"^[A-Za-z_][\w.]*(?:: .*|$)")
_MORE_LINES: Final = 12
_INSTALLED: Final = re.compile(r"(^|[/\\])(site-packages|dist-packages)[/\\]|[/\\]lib(64)?[/\\](pypy|python)\d")
_WINDOWS_LIBRARY: Final = re.compile(r"^[A-Za-z]:\\(.*\\)?Lib\\")
_NATIVE: Final = re.compile(r"\[[WE]\d{4} |\[[WE] ")  # a warning or error of torch's C++ parts
_ABORTED: Final = "terminate called without an active exception"
_STORE_HINT: Final = (
    "If the script uses its own rendezvous port, let its rank 0 host the store there: set "
    "TORCHELASTIC_USE_AGENT_STORE=False under Variables."
)
_HINTS: Final = (
    (
        re.compile(r"No module named '?([\w.]+)", re.IGNORECASE),
        "Install it into the script's interpreter ({python} -m pip install …), or choose another interpreter.",
    ),
    (
        re.compile(r"KeyError: '(?:LOCAL_)?(?:RANK|WORLD_SIZE)'|variable (?:RANK|WORLD_SIZE|MASTER_\w+) expected"),
        "The script needs torchrun's variables, so don't leave them out.",
    ),
    (re.compile(r"out of memory", re.IGNORECASE), "Make the script's batch smaller, or use fewer ranks on one device."),
    (
        re.compile(r"address already in use|EADDRINUSE|errno: 98|10048", re.IGNORECASE),
        "Another program took the rendezvous port. Start the run again.",
    ),
    (re.compile(r"client socket has timed out .*trying to connect", re.IGNORECASE), _STORE_HINT),
    (
        re.compile(_ABORTED),
        # A gloo thread drops a tensor while Python ends. After DDP, PyTorch 2.13 keeps these threads in any case.
        "This can happen as a script ends while PyTorch still runs gloo's threads. Call "
        "torch.distributed.destroy_process_group() at the end; after DDP also sys.stdout.flush() and os._exit(0).",
    ),
)  # fmt: skip
_NO_CUDA: Final = re.compile(
    r"Torch not compiled with CUDA|Found no NVIDIA|NVIDIA driver|No CUDA GPUs|no GPUs found|without NCCL|"
    r"have NCCL built in|requires CUDA support|'torch\._C' has no attribute '_cuda|no accelerator|"
    r"accelerator device when none is available|invalid device ordinal",
    re.IGNORECASE,
)
_PLAIN_HINT: Final = (
    "Many scripts take torchrun's variables as a sign of a GPU. Turn on “Without torchrun variables” for this one."
)
_GPU_HINT: Final = (
    "The script needs a GPU but ran on CPU devices. Choose GPUs, or try one CPU device and turn on “Without torchrun "
    "variables”."
)
_NEEDS_GPU: Final = "The script needs a GPU but ran on a CPU device. Choose a GPU, or change the script."
_SEE_LOG: Final = "See its log for the full output."
# Command-line options that do what a hint says.
_OPTIONS: Final = {
    _STORE_HINT: "--env TORCHELASTIC_USE_AGENT_STORE=False",
    _PLAIN_HINT: "rankdeck run --no-torchrun",
    _GPU_HINT: "rankdeck run --devices cpu:1 --no-torchrun",
}


def describe_failure(returncode: int, log: str, script: UserScript, *, on_cpu: bool, world_size: int) -> RankFailed:
    """The last message of a rank whose program failed; `log` is the end of its output."""
    until_abort = log.rpartition(_ABORTED)[0]
    if _raised_last(until_abort):
        # It aborted on its way out; the exception is what counts.
        returncode, log = 1, until_abort
    chain = _last_chain(log)
    trace = chain[-1] if chain else ""
    error = _error_line(trace)
    exit_text = describe_exit(returncode)
    if is_crash(returncode) or returncode > 255 or not error:
        cause = f"{script.name} {exit_text}."
        last = _last_line(log)
        cause += f" {error}" if error else f" It last printed: “{last}”." if last else ""
    else:
        cause = f"{script.name}{_find_place(chain, script)}: {error}"
        cause += "" if returncode == 1 else f" ({exit_text})"
    step = _next_step(log[-8000:], error, script, on_cpu, world_size) or sentences(exit_advice(returncode), _SEE_LOG)
    failure = RankdeckError(cause, step, title=_title(error, returncode), option=_OPTIONS.get(step, ""))
    return RankFailed(usage=False, traceback=trace, peer_lost=False, **failure.as_dict())


def _lines(log: str) -> list[str]:
    return [_PREFIX.sub("", line) for line in log.splitlines()]


def _starts(lines: list[str]) -> list[int]:
    """The lines at which tracebacks and crash reports begin, without those that Python prints and passes over."""
    starts = [i for i, line in enumerate(lines) if _TRACEBACK in line or _FATAL.search(line)]
    return [i for i in starts if i == 0 or not _PASSED_OVER.match(lines[i - 1])]


def _traceback_at(lines: list[str], start: int) -> str:
    first = lines[start].strip()
    if _FATAL.search(first):
        return "\n".join([first, *(line for line in lines[start + 1 : start + 40] if line.strip())])
    end = next((number for number in range(start + 1, len(lines)) if _ERROR.match(lines[number])), len(lines)) + 1
    message = takewhile(_is_of_message, lines[end : end + _MORE_LINES])
    return "\n".join([first, *lines[start + 1 : end], *message]).rstrip()


def _is_of_message(line: str) -> bool:
    """True if an exception's message continues in this line: it is not empty and begins no other report."""
    return line.strip() not in ("", '"""') and _TRACEBACK not in line and not _PASSED_OVER.match(line)


def _raised_last(log: str) -> bool:
    """True if the last output, up to native code's own messages, is an uncaught exception."""
    lines = _lines(log)
    starts = [number for number, line in enumerate(lines) if _TRACEBACK in line]
    after = [line for line in lines[starts[-1] + 1 :] if not _NATIVE.match(line)] if starts else []
    flush = [line for line in after if line.strip() and not line[0].isspace()]  # neither frames nor a message's rest
    return len(flush) == 1 and bool(_ERROR.match(flush[0]))


def _error_line(trace: str) -> str:
    lines = trace.splitlines()
    if not lines or _FATAL.search(lines[0]):
        return "".join(lines[:1])
    found = next((number for number, line in enumerate(lines) if number and _ERROR.match(line)), len(lines))
    text = " ".join(line.strip() for line in lines[found : found + 3])
    return text if len(text) <= 400 else text[:397] + "..."


def _find_place(chain: list[str], script: UserScript) -> str:
    """The line of the person's own code that raised the last exception: ``, line 6`` or ``, line 6 of data.py``."""
    own = OwnCode(script.project_folders, script.python)
    # A pool prints a worker's exception, then raises the same one once more where the result was asked for.
    errors = [_error_line(trace) for trace in chain]
    tried = [*(trace for trace in chain if _error_line(trace) == errors[-1]), *reversed(chain)]
    frames = [place for trace in tried for place in reversed(_PLACE.findall(trace))]
    for is_own in (own.is_inside, own.may_be, lambda _file: True):
        for file, line in frames:
            if is_own(file):
                short = PureWindowsPath(file).name  # it takes both kinds of slash
                return f", line {line}" if short == script.name else f", line {line} of {short}"
    return ""


def _last_chain(log: str) -> list[str]:
    """The tracebacks of the last exception: those of its causes first, its own last."""
    lines = _lines(log)
    starts = _starts(lines)
    chain: list[str] = []
    for number, start in enumerate(starts):
        before = lines[starts[number - 1] : start] if number else []
        if not any(_CHAINED.match(line) for line in before):
            chain = []
        chain.append(_traceback_at(lines, start))
    return chain


def _title(error: str, returncode: int) -> str:
    if "out of memory" in error.lower() or "MemoryError" in error:
        return "The script ran out of memory"
    if returncode < 0 or returncode > 255:
        return "The script crashed"
    return "The script failed"


def _last_line(log: str) -> str:
    lines = [line.strip() for line in re.split(r"[\r\n]+", log) if line.strip() and not line.startswith("rankdeck:")]
    return lines[-1][:300] if lines else ""


def _next_step(log: str, error: str, script: UserScript, on_cpu: bool, world_size: int) -> str:
    if on_cpu and _NO_CUDA.search(error or log[-2000:]):
        if world_size > 1:
            return _GPU_HINT
        return _NEEDS_GPU if script.plain else _PLAIN_HINT
    for pattern, hint in _HINTS:
        if pattern.search(log):
            return hint.replace("{python}", script.python)
    return ""


class OwnCode:
    """Tells a project's own files from those of its environment: the standard library, installed packages."""

    def __init__(self, folders: Sequence[PurePath], python: str) -> None:
        self._folders = [_parts(str(folder)) for folder in folders]
        program = _path(python)
        prefix = program.parent.parent if program.parent.name.lower() in ("bin", "scripts") else program.parent
        self._libraries = [(*_parts(str(prefix)), name) for name in ("lib", "lib64")]

    def is_inside(self, file: str) -> bool:
        if self._is_installed(file):
            return False
        return not _path(file).is_absolute() or any(_starts_with(_parts(file), folder) for folder in self._folders)

    def may_be(self, file: str) -> bool:
        """True for a file outside the project and the environment: perhaps a package in development."""
        return not self._is_installed(file) and not _WINDOWS_LIBRARY.match(file)

    def _is_installed(self, file: str) -> bool:
        if file.startswith("<") or _INSTALLED.search(file):
            return True
        return any(_starts_with(_parts(file), library) for library in self._libraries)


def _path(text: str) -> PurePath:
    return PureWindowsPath(text) if "\\" in text or text[1:2] == ":" else PurePosixPath(text)


def _parts(text: str) -> tuple[str, ...]:
    path = _path(text)
    return tuple(part.lower() for part in path.parts) if isinstance(path, PureWindowsPath) else path.parts


def _starts_with(parts: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    return bool(folder) and parts[: len(folder)] == folder

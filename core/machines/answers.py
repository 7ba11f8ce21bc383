"""Answers of another machine, as values whose every field is checked (`core.records`).

A machine can be taken over. So nothing that it sends is used as a path, a setting or a size before it was read here; an
answer of another form, over a limit, or nested deeper than `core.parsing` allows ends the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from core.errors import ProtocolError
from core.machine.devices import Device
from core.machine.platform import Platform
from core.machines.machine import Machine
from core.records import Limits, Whole

# The longest frame: the files of a run whose checkpoint has thousands of shards.
LINE_BYTES: Final = 8 << 20
# The most bytes behind a frame of a file that grows, or of a checkpoint: a sender's frames hold 1 MiB, or one line.
CHUNK_BYTES: Final = 16 << 20
# The most bytes of a file that comes as a whole: a ledger of a million chunks has 150 MB.
WHOLE_BYTES: Final = 256 << 20
# The most frames of one answer, such as the lines of a program.
MOST_FRAMES: Final = 100_000

Name = Annotated[str, Limits(1, 255)]
Line = Annotated[str, Limits(0, 100_000)]
Lines = Annotated[tuple[Line, ...], Limits(0, 10_000)]
FolderName = Annotated[str, Limits(1, 4096)]
Bytes = Annotated[int, Limits(0, WHOLE_BYTES)]


@dataclass(frozen=True, slots=True)
class Done:
    """An answer without content."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a request was refused."""

    title: Line = ""
    cause: Line = ""
    next_step: Line = ""
    window_step: Line = ""
    exit_code: Annotated[int, Limits(1, 255)] = 1


@dataclass(frozen=True, slots=True)
class Hello:
    """The agent's first frame."""

    python: Annotated[tuple[Whole, ...], Limits(2, 5)]
    executable: FolderName
    own_python: FolderName
    own_folder: FolderName
    has_own_python: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """The first frame of Rankdeck's own program."""

    runs_dir: FolderName


@dataclass(frozen=True, slots=True)
class Missing:
    """Files that the machine lacks: by hash, the number of bytes that have arrived already."""

    missing: dict[Name, Whole]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that was made of files sent there."""

    path: FolderName


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was started."""

    run_dir: FolderName
    notes: Lines


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run that was resumed, and its plan as sentences."""

    lines: Lines


@dataclass(frozen=True, slots=True)
class ThereFile:
    """A file of a run, by its path in the run's folder."""

    path: Name
    size: Whole
    sha256: Annotated[str, Limits(64, 64)]


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Files of a run that can be fetched: what it keeps of its base model, its model, and a checkpoint's number."""

    checkpoint: Annotated[int, Limits(1)] | None
    kept: Annotated[tuple[ThereFile, ...], Limits(0, 100)]
    model: ThereFile | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a file; its bytes follow."""

    bytes: Bytes = 0


@dataclass(frozen=True, slots=True)
class News:
    """A change of a followed run: bytes that were appended, a file that begins again, a replaced file, or its state."""

    bytes: Bytes = 0
    file: Name | None = None
    offset: Whole = 0
    restart: Name | None = None
    whole: Name | None = None
    version: Line = ""
    state: Any = None
    live: bool = False
    port: Annotated[int, Limits(1, 65_535)] | None = None
    token: Annotated[str, Limits(0, 512)] = ""


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices and platform of a machine."""

    devices: Annotated[tuple[Device, ...], Limits(0, 1024)]
    platform: Platform
    problem: Line | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A line that a program prints there, or its exit code."""

    line: Line | None = None
    code: Annotated[int, Limits(-(2**31), 2**32 - 1)] | None = None


def unreadable(machine: Machine, why: object) -> ProtocolError:
    """The error for an answer that is not of its form."""
    return ProtocolError(f"{machine.name} answered in another form ({why}).")

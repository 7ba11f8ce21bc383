"""Answers: what another machine may say over a connection, as values whose every field is checked (`core.records`).

A machine can be taken over. So nothing that it says is a path, a setting or a size of this computer until it was read
here; what is not of its form, longer than its limit, or deeper than JSON may be (`core.parsing`) ends the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from core.errors import ProtocolError
from core.machine.devices import Device
from core.machine.platform import Platform
from core.machines.machine import Machine
from core.records import Limits, Whole
from core.resume.plan import PlanSummary

# The longest frame: the list of a machine's checkpoints.
LINE_BYTES: Final = 8 << 20
# The most bytes behind a frame of a file that grows, or of a checkpoint: a sender's frames hold 1 MiB, or one line.
CHUNK_BYTES: Final = 16 << 20
# The most bytes of a file that comes as a whole: a ledger of a million chunks has 150 MB.
WHOLE_BYTES: Final = 256 << 20
# Of an answer that is a list, such as the lines of a program.
MOST_FRAMES: Final = 100_000

Name = Annotated[str, Limits(1, 255)]
Line = Annotated[str, Limits(0, 100_000)]
Lines = Annotated[tuple[Line, ...], Limits(0, 10_000)]
FolderName = Annotated[str, Limits(1, 4096)]
Port = Annotated[int, Limits(1, 65_535)]
Bytes = Annotated[int, Limits(0, WHOLE_BYTES)]


@dataclass(frozen=True, slots=True)
class Done:
    """An answer of which nothing is needed but that it came."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request was refused."""

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
    platform: Name
    own_python: FolderName
    own_folder: FolderName
    has_own_python: bool


@dataclass(frozen=True, slots=True)
class Ready:
    """Rankdeck's own program answers."""

    runs_dir: FolderName


@dataclass(frozen=True, slots=True)
class Missing:
    """Files that are not there, by hash, each with how many of its bytes are."""

    missing: dict[Name, Whole]
    free_bytes: Whole


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of a tree."""

    path: FolderName


@dataclass(frozen=True, slots=True)
class Found:
    """A run there, by its name: its folder (None: there is none), its state, and how far its metrics are."""

    run_dir: FolderName | None
    state: Any = None
    live: bool = False
    metrics_bytes: Whole = 0
    metrics_sha256: Line = ""


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was started."""

    run_dir: FolderName
    config: Annotated[str, Limits(0, 1 << 20)]
    notes: Lines
    name: Line = ""
    devices: Annotated[tuple[Line, ...], Limits(0, 65_536)] = ()
    mode: Line = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a resume, carried out or not."""

    plan: PlanSummary


@dataclass(frozen=True, slots=True)
class ThereCheckpoint:
    """A checkpoint that a run has there."""

    number: Annotated[int, Limits(1)]
    folder: Literal["checkpoints", "generations"]
    diverged: bool


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of the base model that the run keeps (`core.machines.run_stream.KEPT`)."""

    path: Name
    size: Bytes
    sha256: Name


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Every checkpoint, what the run keeps of its base model, and the size of its own."""

    checkpoints: Annotated[tuple[ThereCheckpoint, ...], Limits(0, 100_000)]
    model_bytes: Whole | None
    kept: Annotated[tuple[KeptFile, ...], Limits(0, 100)] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a file; the bytes follow."""

    bytes: Bytes = 0


@dataclass(frozen=True, slots=True)
class News:
    """What is new in a run that is followed: one of a file's bytes, a file that begins again, and a state."""

    bytes: Bytes = 0
    file: Name | None = None
    offset: Whole = 0
    restart: Name | None = None
    whole: Name | None = None
    state: Any = None
    live: bool = False
    port: Port | None = None
    token: Annotated[str, Limits(0, 512)] = ""


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices and platform of a machine."""

    devices: Annotated[tuple[Device, ...], Limits(0, 1024)]
    platform: Platform
    problem: Line | None = None
    cpus: Whole = 0
    samples: Any = None


@dataclass(frozen=True, slots=True)
class FindingThere:
    """A finding of the doctor there."""

    id: Name
    name: Line
    group: Line
    level: Literal["ok", "warn", "fail", "not_tried"]
    text: Line
    meaning: Line = ""
    next_step: Line = ""
    fix: Line = ""
    command: Line = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """One of the doctor's findings."""

    finding: FindingThere
    stops_runs: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of an environment that is made there."""

    progress: Line = ""


@dataclass(frozen=True, slots=True)
class Output:
    """A line of a program that runs there, or its exit code."""

    line: Line | None = None
    code: Annotated[int, Limits(-(2**31), 2**32 - 1)] | None = None


def unreadable(machine: Machine, why: object) -> ProtocolError:
    """The error for an answer that is not of its form."""
    return ProtocolError(f"{machine.name} answered in another form ({why}).")

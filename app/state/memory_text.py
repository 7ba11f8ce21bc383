"""Memory strip of New run as text: the verdict on each device, every mode beside it, and what would make it fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.errors import RankdeckError, sentences
from core.estimate.estimate import DeviceNeed, ModeEstimate
from core.estimate.overview import Overview
from core.estimate.remedies import Remedy
from core.estimate.verdict import Verdict
from core.formatting import UNKNOWN, byte_size, memory_size
from core.machine.devices.names import short_label

NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_VERDICTS: Final[dict[Verdict, tuple[str, str]]] = {
    "fits": ("Fits", "success"),
    "tight": ("Tight", "warning"),
    "too_large": ("Does not fit", "error"),
    "unknown": ("Memory not known", "muted"),
}
"""What each verdict is called, and its tone."""
_PARTS: Final = {
    "parameters": "Weights",
    "gradients": "Gradients",
    "optimizer": "Optimizer",
    "activations": "Activations",
    "communication": "Exchange between devices",
    "copy": "Copy for a checkpoint",
    "framework": "PyTorch and the recipe",
    "allocator": "Gaps",
}


@dataclass(frozen=True, slots=True)
class ModeLine:
    """One mode beside the others.

    Attributes:
        name: "DDP", "ZeRO 2".
        need: Of the device that needs most; empty for a mode that cannot be used.
        verdict, tone: As a word, and its colour.
        parts: What the need is made of, a line each; or why it cannot be used.
        is_chosen: It is the draft's mode.
    """

    name: str
    need: str
    verdict: str
    tone: str
    parts: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class RemedyText:
    """What would make the run fit, as a small button.

    Attributes:
        label, tip: On it, and what it does.
        changes: Settings and their new values.
    """

    label: str
    tip: str
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MemoryText:
    """What the strip says.

    Attributes:
        verdict, tone: Of the chosen mode, as a word, and its colour.
        devices: Need and free memory of each device, in one line.
        note: Why something is not known, as a sentence.
        modes: Every mode; empty while nothing is known.
        totals: Memory of the machine, disk space, a line each.
        remedies: What would make it fit.
    """

    verdict: str
    tone: str
    devices: str = ""
    note: str = ""
    modes: tuple[ModeLine, ...] = ()
    totals: tuple[str, ...] = ()
    remedies: tuple[RemedyText, ...] = ()


MEASURING: Final = MemoryText("", "muted", "Estimating memory…")


def memory_text(made: Overview) -> MemoryText:
    """An estimate as text."""
    chosen, note = made.chosen, made.figures.note
    verdict, tone = _VERDICTS[chosen.verdict]
    measured = made.figures.is_measured
    remedies = tuple(map(_remedy, made.remedies))
    modes = tuple(_mode_line(mode, mode.name == chosen.name, measured) for mode in made.modes)
    return MemoryText(verdict, tone, " · ".join(map(_device, chosen.devices)), note, modes, _totals(made), remedies)


def unknown_text(error: RankdeckError) -> MemoryText:
    """Why nothing could be estimated."""
    return MemoryText(*_VERDICTS["unknown"], note=sentences(error.cause, error.window_step))


def _device(need: DeviceNeed) -> str:
    free = "" if need.free_bytes is None else f" of {memory_size(need.free_bytes)}"
    return f"{short_label(need.device)} {memory_size(need.memory.total)}{free}".replace(" ", NO_BREAK)


def _remedy(remedy: Remedy) -> RemedyText:
    after = "measured once it is chosen" if remedy.bytes is None else f"{memory_size(remedy.bytes)} on a device"
    return RemedyText(remedy.label, f"{remedy.text}: {after}", remedy.changes)


def _mode_line(mode: ModeEstimate, is_chosen: bool, measured: bool) -> ModeLine:
    name = mode.label[:1].upper() + mode.label[1:]
    if mode.reason:
        return ModeLine(name, "", UNKNOWN, "muted", mode.reason, is_chosen)
    largest = max(mode.devices, key=lambda need: need.memory.total)
    sizes = largest.memory.as_dict() | ({} if measured else {"activations": None})
    parts = [f"{text}: {memory_size(sizes[part])}" for part, text in _PARTS.items()]
    verdict, tone = _VERDICTS[mode.verdict] if mode.verdict != "unknown" else (UNKNOWN, "muted")
    lines = [mode.sentence(), f"{short_label(largest.device)}:", *parts]
    return ModeLine(name, memory_size(mode.largest), verdict, tone, "\n".join(lines), is_chosen)


def _totals(made: Overview) -> tuple[str, ...]:
    chosen, free = made.chosen, made.free
    lines = [f"Memory of this computer: {memory_size(chosen.host_bytes)} of {memory_size(free.ram)} free"]
    if chosen.commit_bytes is not None:
        lines.append(f"With the page file: {memory_size(chosen.commit_bytes)} of {memory_size(free.commit)} free")
    copies = made.run.config.keep_checkpoints + 1
    each = f"{copies} × {byte_size(chosen.checkpoint_bytes)}"
    lines.append(f"Checkpoints: {byte_size(chosen.disk_bytes)} ({each}) of {byte_size(free.disk)} free")
    return tuple(lines)

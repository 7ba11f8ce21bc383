"""Texts of the dialog that sets up PyTorch: for which machine, where, what can be added, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.environments.extras import Extra
from core.environments.places import Places, places_on
from core.formatting import byte_size
from core.machine.drives import Drive, drive_of
from core.machine.torch_builds import BuildChoice

if TYPE_CHECKING:
    from core.environments.make import Progress

ABOUT: Final = (
    "Training needs PyTorch, which is not part of this installation. It gets a Python of its own; nothing else on this "
    "PC is changed. It is used only after it has passed a test."
)
ABOUT_ANOTHER: Final = (
    "Another one is made beside it. The present one stays as it is, and trains until the new one works."
)
SIZES_WAIT: Final = "Asking for sizes…"
RUNS_STAY: Final = "there are runs, which stay"
_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Offered:
    """Choices that the dialog offers.

    Attributes:
        build: The build of PyTorch, and why.
        extras: What can be added.
        places: Where things are kept now.
        drives: Where else they can be.
        free: Free bytes where environments are kept now; None where that is not known.
        present: What differs in the environment that trains now; empty where there is none, or nothing differs.
    """

    build: BuildChoice
    extras: tuple[Extra, ...]
    places: Places
    drives: tuple[Drive, ...] = ()
    free: int | None = None
    present: str = ""


@dataclass(frozen=True, slots=True)
class PlaceChoice:
    """An entry in the list of drives.

    Attributes:
        text: "D:, 812 GB free".
        places: What is kept where.
    """

    text: str
    places: Places


def place_choices(offered: Offered) -> list[PlaceChoice]:
    """Where things can be kept: as now, or on another drive."""
    now = offered.places
    free = "" if offered.free is None else f", {byte_size(offered.free)} free"
    found = [PlaceChoice(f"As now: {drive_of(now.environments)}{free}", now)]
    here = drive_of(now.environments).rstrip("\\/")
    for drive in offered.drives:
        if str(drive.root).rstrip("\\/") != here:
            text = f"{str(drive.root).rstrip(chr(92))}, {byte_size(drive.free)} free"
            found.append(PlaceChoice(text, places_on(drive.root, now)))
    return found


def chosen_place(folder: Path, free: int | None, now: Places) -> PlaceChoice:
    text = str(folder) if free is None else f"{folder}, {byte_size(free)} free"
    return PlaceChoice(text, places_on(folder, now))


def place_lines(places: Places, now: Places) -> tuple[tuple[str, str], ...]:
    """What is kept where: a title and a folder for each, with what a person may wonder about."""
    moved = places.runs != now.runs
    runs = f"{places.runs} (from the next start of Rankdeck)" if moved else str(places.runs)
    if not moved and places.environments != now.environments:
        runs = f"{places.runs} ({RUNS_STAY})"
    return (("PyTorch", str(places.environments)), ("Models", str(places.models)), ("Runs", runs))


def choice_text(places: Places, extras: Sequence[Extra], chosen: Sequence[str], wheels: Path | None) -> str:
    """What is made: "In D:\\Rankdeck\\environments, with: Parquet files as data."."""
    titles = [extra.title for extra in extras if extra.name in chosen]
    added = f", with: {'; '.join(titles)}" if titles else ""
    source = f" Everything is taken from {wheels}." if wheels is not None else ""
    return f"In {places.environments}{added}.{source}"


def size_text(plan_text: str, free: int | None, folder: Path) -> str:
    """How large it is and how much room there is."""
    room = "" if free is None else f" {byte_size(free)} free on {drive_of(folder)}"
    return f"{plan_text}{room}"


def extra_notes(extras: Sequence[Extra]) -> dict[str, str]:
    """The line under a check box, where it has one: why it cannot be ticked, or what a person must weigh."""
    return {extra.name: extra.unavailable or extra.note for extra in extras if extra.unavailable or extra.note}


def share_of(progress: Progress) -> int | None:
    """How much of the download has arrived, in thousandths; None in steps without a size."""
    return round(_STEPS * progress.done / progress.total) if progress.total else None

"""A run's readable name: "MiniGPT · stdlib · DDP × 2 · 12:17"."""

from __future__ import annotations

import re
import time
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from core.config.mode import Mode
from core.run_folder.notes import RunNotes
from core.run_folder.state import RunState

SEPARATOR: Final = " · "
MAX_DATA: Final = 40


def first_name(title: str, dataset: str = "") -> str:
    """The name of a new run until the user names it: "MiniGPT · stdlib".

    `title` is the recipe's, or the script's file name; `dataset` is empty for a program that reads its own.
    """
    return SEPARATOR.join(part for part in (title, _data(dataset)) if part)


def label(state: RunState, notes: RunNotes, now: float | None = None) -> str:
    """The name of a run in a list: the user's name for it, else its recipe and data, its devices, and its start."""
    if notes.name:
        return notes.name
    if not state.name or state.name == state.run_id:  # of 0.1, or made by hand
        return state.run_id
    return SEPARATOR.join(part for part in (state.name, devices_text(state), begun_text(state.created, now)) if part)


def devices_text(state: RunState) -> str:
    """The mode and the number of ranks; of one rank, the kind of its device; empty until that is known."""
    mode = Mode.read(state.mode)
    if state.world_size > 1 and mode is not Mode.AUTO:
        return f"{mode.label} × {state.world_size}"
    if not state.devices or mode is Mode.AUTO:
        return ""
    return "1 CPU" if state.devices[0].startswith("cpu") else "1 GPU"


def begun_text(created: float, now: float | None = None) -> str:
    if not created:
        return ""
    begun, today = time.localtime(created), time.localtime(now)
    is_today = begun[:3] == today[:3]
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", begun)


def _data(dataset: str) -> str:
    if "://" in dataset:
        scheme, _, rest = dataset.partition("://")
        return (rest or scheme).strip("/")[:MAX_DATA]
    path = PureWindowsPath(dataset) if re.match(r"[A-Za-z]:[\\/]|\\\\", dataset) else PurePosixPath(dataset)
    return path.name[:MAX_DATA]

"""Checks of folders: write permission and room for runs, leftovers of killed runs."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sys
from pathlib import Path
from typing import Final

from core.client import find_leftovers
from core.doctor.finding import FOLDERS, Finding, Topic
from core.errors import RankdeckError
from core.files.atomic import explain, write_atomic
from core.formatting import byte_size
from core.held_files import read_utf8
from core.launch.preflight import check_folder
from core.run_folder.store import RunStore, list_runs

RUNS: Final = Topic("runs_folder", "Runs folder", FOLDERS, "Runs write checkpoints here; a full disk stops training.")
WRITING: Final = Topic(
    "writing",
    "Write permission",
    FOLDERS,
    "Each run makes its folder here and replaces files in it; security software may refuse that.",
)
LEFTOVERS: Final = Topic(
    "leftovers", "Leftovers", FOLDERS, "Processes of a run that was killed still hold memory of the devices."
)
_LOW_DISK_BYTES: Final = 5 * 10**9


def check_disk(runs_dir: Path) -> Finding:
    try:
        check_folder(runs_dir)
    except RankdeckError as error:
        return RUNS.fail(error.cause, error.next_step, "choose_runs_folder")
    existing = next(path for path in (runs_dir.absolute(), *runs_dir.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{runs_dir}, {byte_size(free)} free"
    if free < _LOW_DISK_BYTES:
        step = "Free some space, or set RANKDECK_HOME to another drive."
        return RUNS.warn(text, step, "open_storage" if sys.platform == "win32" else "choose_runs_folder")
    return RUNS.ok(text)


def check_writing(runs_dir: Path) -> Finding:
    """Write, replace and remove a file in the folder of runs, as a run does."""
    if not runs_dir.is_dir():
        if runs_dir.exists():
            return WRITING.fail(f"{runs_dir} is a file", "Choose another folder.", "choose_runs_folder")
        step = "It is made with the first run, or now."
        return WRITING.not_tried(f"{runs_dir} does not exist yet", step, "create_runs_folder")
    path = runs_dir / f".doctor-{secrets.token_hex(4)}"
    try:
        for text in ("first", "second"):
            write_atomic(path, text)
        if read_utf8(path) != "second":
            return WRITING.fail(f"{runs_dir} keeps an old file where a new one was written", "Choose another folder.")
    except RankdeckError as error:
        return WRITING.fail(error.cause, error.next_step, "choose_runs_folder")
    except OSError as error:
        refusal = explain(error, f"{path} could not be read")
        return WRITING.fail(refusal.cause, refusal.next_step, "choose_runs_folder")
    finally:
        with contextlib.suppress(OSError):  # a drive that cannot be written refuses this too
            path.unlink(missing_ok=True)
    return WRITING.ok("files are written, replaced and removed")


def check_leftovers(runs_dir: Path) -> Finding:
    """Look for processes of a run whose host and watcher were killed; ends none."""
    try:
        entries = list_runs(runs_dir)
    except RankdeckError as error:
        return LEFTOVERS.warn(error.cause, error.next_step)
    found = find_leftovers([RunStore(entry.path) for entry in entries])
    if not found:
        return LEFTOVERS.ok("no leftover processes of ended runs")
    runs = ", ".join(f"{folder.name} (pid {', '.join(map(str, pids))})" for folder, pids in found.items())
    step = " ".join(f"Run: rankdeck stop {folder.name}" for folder in found)
    return LEFTOVERS.warn(f"leftover processes of ended runs: {runs}", step, "end_leftovers")

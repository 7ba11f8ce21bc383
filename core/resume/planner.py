"""Resume planner: decides before anything is touched, as a value that window and command line can show.

Three things can be named: a run of ours (its folder, id or state file), AI-OS's `chunk_tracker_state.json`, or a
folder with one. We cannot load AI-OS's weights, so there a *new* run trains the remaining chunks; nothing in its folder
is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import RunNotFoundError, StateFileError, UsageError
from core.files.atomic import explained, parse_path
from core.ledger.state_file import FILE_NAME, read_state_file
from core.machine.devices import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import Platform, this_platform
from core.resume.aios import plan_aios
from core.resume.changes import CHANGES
from core.resume.own_run import plan_own
from core.resume.plan import ResumePlan
from core.run_folder.store import RunStore, find_run

__all__ = ["CHANGEABLE", "ResumePlan", "plan_resume"]

# What may change when a run is resumed. The chunk size only says what it was, or is refused.
CHANGEABLE: Final = ("steps", "epochs", "devices", *CHANGES, "dataset_file", "dataset_chunk_size", "recipe")


def plan_resume(
    text: str,
    runs_dir: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    available: Sequence[Device] | None = None,
    platform: Platform | None = None,
    accept_code: bool = False,
) -> ResumePlan:
    """Plan to resume `text`; reads only.

    Args:
        text: A run's folder, id or name, or the path of a `chunk_tracker_state.json` (ours or AI-OS's).
        runs_dir: Where runs are looked up, and where a new one would be made.
        changes: Some of `CHANGEABLE`, as flags give them, and `checkpoint`, the number of the one to go back to.
        available: This machine's devices; None looks.
        platform: This machine; None looks.
        accept_code: The person agrees to run the code that the run names (`ResumePlan.code`). Before that none of it
            is executed, not even its check of the settings.

    Raises:
        RunNotFoundError: Nothing goes by that name.
        RunBusyError: The run is live.
        StateFileError: A state file is damaged, of the wrong kind or newer, or doesn't fit dataset or chunk size.
        DatasetError: The dataset is not there, or not the same.
        ConfigError, UsageError: A change that can't be; nothing left to train.
        PreflightError: This machine isn't ready.
    """
    if available is None:
        with DeviceMonitor() as monitor:
            available = monitor.devices()
    platform = platform or this_platform()
    changes = dict(changes or {})
    checkpoint = changes.pop("checkpoint", None)
    with explained(f"{text} could not be read"):
        path = _find_state_file(text)
    if path is not None:
        file = read_state_file(path)
        if file.form != "rankdeck":
            if checkpoint is not None:
                cause = f"{path} is AI-OS's and has no checkpoints."
                raise UsageError(cause, "Don't choose a checkpoint.", option="leave out --checkpoint")
            return plan_aios(file, runs_dir, changes, available, platform)
        store = _store_around(path)
    else:
        store = find_run(runs_dir, text)
    number = None if checkpoint is None else str(checkpoint)
    return plan_own(store, runs_dir, changes, number, available, platform, accept_code=accept_code)


def _find_state_file(text: str) -> Path | None:
    """The state file that `text` names by path: itself, or the one in a folder that holds no run of ours."""
    path = parse_path(text)
    if path is None:
        return None
    if path.is_file() and path.name not in ("run.toml", "state.json", "metrics.jsonl"):
        return path.absolute()
    if path.is_dir() and not any((path / name).exists() for name in ("run.toml", "state.json")):
        inside = path / FILE_NAME
        if inside.is_file():
            return inside.absolute()
        raise RunNotFoundError(f"{path} contains neither a run nor a {FILE_NAME}.", "List the runs: rankdeck runs.")
    if path.name == FILE_NAME and not path.parent.joinpath("run.toml").exists():
        raise RunNotFoundError(f"There is no file {path}.", "Check the path.", title="The state file is missing")
    return None


def _store_around(path: Path) -> RunStore:
    for folder in (path.parent, path.parent.parent.parent):
        if (folder / "run.toml").exists():
            return RunStore.open(folder)
    raise StateFileError(
        f"{path} is a state file of Rankdeck, but it is not in its run's folder.",
        "Give the run's folder instead: rankdeck resume RUN_FOLDER",
    )

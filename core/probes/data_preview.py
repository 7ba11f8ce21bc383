"""Shows a dataset as a recipe's model will see it, before anything is trained: samples, columns, counts, an epoch.

A process of its own (`workers.programs.preview_main`) reads the data and loads the recipe; this asks it, and adds the
arithmetic. It is the door for the command line and the window alike.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from core.config import RunConfig
from core.config.config_file import to_toml
from core.data.hub import DownloadNeededError
from core.errors import ConfigError, DatasetError, PreflightError, RankdeckError, UsageError
from core.launch.resolved import ResolvedRun, resolve
from core.ledger.chunk_grid import ChunkGrid
from core.machine.devices import Device
from core.machine.packages import MissingPackageError
from core.machine.platform import Platform
from core.parsing import parse_json
from core.processes import Child, ProcessTree
from core.processes.program_environment import program_environment
from core.recipes.manifest import Recipe

DOCUMENTS: Final = 3
LIMIT_S: Final = 600.0
_POLL_S: Final = 0.05


class PreviewError(RankdeckError):
    """The dataset could not be looked at."""

    title = "The dataset could not be shown"


_CLASSES: Final[dict[str, type[RankdeckError]]] = {
    "DownloadNeededError": DownloadNeededError,
    "DatasetError": DatasetError,
    "PreflightError": PreflightError,
    "UsageError": UsageError,
}
"""What exit code an error of the process has here."""


def preview_data(
    config: RunConfig,
    recipe: Recipe,
    available: Sequence[Device],
    platform: Platform,
    *,
    documents: int = DOCUMENTS,
    read_all: bool = False,
    limit_s: float | None = LIMIT_S,
    progress: Callable[[str], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Looks at a dataset. Blocks; may be called from any thread.

    Args:
        config: What would be trained; of its fields those about data, batch and devices count.
        recipe: Its recipe.
        available: This machine's devices.
        platform: This machine.
        documents: How many of the first documents, and of the first samples, are shown.
        read_all: Tokenise all of it (a run then finds it done) instead of estimating from its first 32 MB.
        limit_s: After that it is ended, whatever it is doing; None: never.
        progress: Is told what is being done, and how far it is.
        cancelled: Asked now and then; True ends it.

    Returns:
        Plain values; docs/data.md names them.

    Raises:
        RankdeckError: As a run's would be: the dataset, a column or a package is missing, …
        PreviewError: It took too long, was cancelled, or its process died.
    """
    run = resolve(config, recipe, available, platform)
    config = run.config
    with tempfile.TemporaryDirectory(prefix="rankdeck-preview-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "run.toml").write_text(to_toml(config), encoding="utf-8", newline="\n")
        request = {"recipe": str(recipe.folder), "documents": documents, "read_all": read_all}
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        argv = (sys.executable, "-m", "workers.programs.preview_main", str(folder))
        with ProcessTree() as tree:
            child = tree.spawn(argv, program_environment(os.environ, config.env), folder, folder / "preview.log")
            _wait(child, folder, limit_s, progress, cancelled)
            found = _result(child, folder)
    found["epoch"] = epoch_figures(found["samples"], run)
    return found


def epoch_figures(samples: int, run: ResolvedRun) -> dict[str, Any]:
    """Blocks, chunks and optimizer steps of one epoch, and what they depend on.

    Args:
        samples: Samples to train on.
        run: What would be trained.
    """
    grid = ChunkGrid(max(1, samples), run.config.samples_per_block, run.config.dataset_chunk_size)
    return {
        "samples": samples,
        "blocks": grid.blocks,
        "chunks": grid.chunks,
        "steps": max(1, -(-samples // (run.replica_groups * run.batch.global_))),
        "mode": run.mode,
        "devices": [device.uuid for device in run.devices],
        "global_batch": run.batch.global_,
        "recipe": run.recipe.name,
    }


def _wait(
    child: Child,
    folder: Path,
    limit_s: float | None,
    progress: Callable[[str], None],
    cancelled: Callable[[], bool],
) -> None:
    deadline = None if limit_s is None else time.monotonic() + limit_s
    shown = ""
    while child.poll() is None:
        if cancelled():
            raise PreviewError("It was cancelled.", "You can preview again at any time.")
        if deadline is not None and time.monotonic() > deadline:
            raise PreviewError(
                f"It did not finish within {limit_s:g} s.",
                "Preview less of it, or start the run, which has no time limit for this.",
            )
        text = _text(folder / "progress.txt")
        if text and text != shown:
            shown = text
            progress(text)
        time.sleep(_POLL_S)


def _result(child: Child, folder: Path) -> dict[str, Any]:
    """What the process found, or the error that it met."""
    try:
        found = parse_json(_text(folder / "result.json"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        lines = _text(folder / "preview.log").splitlines()
        raise PreviewError(
            f"The preview process {child.outcome}{f': {lines[-1].strip()}' if lines else ''}.",
            "Check this machine: rankdeck doctor",
        )
    if "error" in found:
        raise _as_error(found["error"])
    return found


def _as_error(values: dict[str, Any]) -> RankdeckError:
    cause, next_step, title = values["cause"], values["next_step"], values["title"]
    if values["kind"] == "ConfigError":
        error = ConfigError(values["field"], cause, next_step)
        error.title = title
        return error
    if values["kind"] == "MissingPackageError":
        return MissingPackageError.of(values["packages"], cause, next_step)
    return _CLASSES.get(values["kind"], PreviewError)(cause, next_step, title=title)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not written yet, or, under Windows, being replaced just now
        return ""

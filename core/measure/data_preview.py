"""Preview of a dataset as a recipe's model will see it: samples, columns, counts, an epoch.

A process of its own (`workers.programs.preview_main`) reads the data and loads the recipe; here is the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from core.config.config_file import to_json
from core.data.hub import DownloadNeededError
from core.errors import ConfigError, DatasetError, PreflightError, RankdeckError, UsageError
from core.held_files import read_utf8
from core.launch.resolved import ResolvedRun
from core.ledger.chunk_grid import ChunkGrid
from core.parsing import parse_json
from core.processes.ask import ask_program
from core.recipes.check import error_in

DOCUMENTS: Final = 3
LIMIT_S: Final = 600.0


class PreviewError(RankdeckError):
    """The dataset could not be looked at."""

    title = "The dataset could not be shown"


# Errors of the process that are the same here, with their exit codes.
_CLASSES: Final[dict[str, type[RankdeckError]]] = {
    error.__name__: error for error in (ConfigError, DownloadNeededError, DatasetError, PreflightError, UsageError)
}


def preview_data(
    run: ResolvedRun,
    *,
    documents: int = DOCUMENTS,
    read_all: bool = False,
    limit_s: float | None = LIMIT_S,
    progress: Callable[[str], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Read a dataset. Blocks; may be called from any thread.

    Args:
        run: As its recipe fits it (`ResolvedRun.fitted`).
        documents: Number of the first documents, and of the first samples, to show.
        read_all: Tokenise all of it (a run then finds it done) instead of estimating from its first 32 MB.
        limit_s: After that it is ended; None: never.
        progress: Gets the current step as text.
        cancelled: Asked now and then; True ends it.

    Returns:
        Plain values; docs/data.md names them.

    Raises:
        RankdeckError: As a run's would be: the dataset, a column or a package is missing, …
        PreviewError: It took too long, was cancelled, or its process died.
    """
    config = run.config
    shown = ""

    def waiting(folder: Path) -> None:
        nonlocal shown
        if cancelled():
            raise PreviewError("It was cancelled.", "You can preview again at any time.")
        text = _text(folder / "progress.txt")
        if text not in ("", shown):
            shown = text
            progress(text)

    asked = {"config": parse_json(to_json(config)), "recipe": str(run.recipe.folder)}
    asked |= {"documents": documents, "read_all": read_all}
    answer = ask_program(("-m", "workers.programs.preview_main"), asked, config.env, limit_s, waiting)
    if not answer.in_time:
        raise PreviewError(
            f"It did not finish within {limit_s:g} s.",
            "Preview less of it, or start the run, which has no time limit for this.",
        )
    found = answer.values
    if found is None:
        raise PreviewError(f"The preview process {answer.failure}.", "Check this machine: rankdeck doctor")
    error = error_in(found, _CLASSES.get(found.get("kind", ""), PreviewError))
    if error is not None:
        raise error
    found["epoch"] = epoch_figures(found["samples"], run)
    return found


def epoch_figures(samples: int, run: ResolvedRun) -> dict[str, Any]:
    """Compute blocks, chunks and optimizer steps of one epoch, beside the settings on which they depend."""
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


def _text(path: Path) -> str:
    try:
        return read_utf8(path, errors="replace")
    except OSError:  # not written yet, or, under Windows, being replaced just now
        return ""

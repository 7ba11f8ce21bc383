"""One run exported as one thing: where it goes, what makes it, what is said of it."""

from __future__ import annotations

import csv
import json
import struct
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.checkpoints.state_header import read_head
from core.errors import ConfigError, RankdeckError
from core.export import AUTO_DTYPE, DTYPE_NAMES, KINDS
from core.export.lines import ExportCancelledError, Line, MetricsLines, Progress
from core.export.weights import write_weights
from core.files.atomic import replace_with_retry
from core.files.destination import check_file_place, check_folder_place, refused, staged_folder
from core.files.links import refuse_links_below
from core.held_files import remove_file
from core.processes.ask import ask_program
from core.recipes.catalog import get_recipe
from core.recipes.check import error_in
from core.recipes.manifest import Recipe
from core.recipes.outside_code import OutsideCodeError, outside_code
from core.run_folder.store import RunStore

_EXPORTS_FOLDER: Final = "exports"
_MODEL_NAME: Final = "model.safetensors"
# Kinds of lines and the names of their tables.
TABLES: Final[Mapping[str, str]] = {"step": "steps", "eval": "evals", "device": "devices", "sample": "samples"}
_FIRST: Final = ("ts", "attempt", "rank", "step")
_LEFT_OUT: Final = ("event", "nonfinite")
LIMIT_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Exported:
    kind: str
    path: Path
    details: tuple[str, ...]


def default_place(store: RunStore, kind: str, checkpoint: int | None = None) -> Path:
    """The default place of an export: `exports` in the run's folder, where its host never looks."""
    name = kind if checkpoint is None else f"{kind}-checkpoint-{checkpoint}"
    folder = store.dir / _EXPORTS_FOLDER / name
    return folder / _MODEL_NAME if kind == "safetensors" else folder


def export_run(
    store: RunStore,
    kind: str,
    out: Path | None = None,
    *,
    checkpoint: int | None = None,
    overwrite: bool = False,
    trust_recipe: bool = False,
    dtype: str = AUTO_DTYPE,
    progress: Progress = lambda _done: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Exported:
    """Export a run, live or not. Blocks; may be called from any thread.

    `out` is the file or folder; without one an earlier export in `default_place` is replaced. `trust_recipe` lets the
    recipe's own code run, though it was never started on this machine. `cancelled` is asked now and then; True ends
    it, and nothing is written.

    Raises:
        UsageError: It cannot be exported so; nothing was written.
        RankdeckError: It failed; earlier files are still there.
    """
    if out is None:
        refuse_links_below(store.dir / _EXPORTS_FOLDER)
    place = (out or default_place(store, kind, checkpoint)).expanduser().absolute()
    overwrite = overwrite or out is None
    if checkpoint is not None and kind not in ("safetensors", "hf"):
        raise refused(f"A checkpoint holds weights, and {KINDS[kind]} hold none.", "Leave --checkpoint out.")
    if dtype != AUTO_DTYPE and kind != "hf":
        what = "are exported as they are" if kind == "safetensors" else "hold no weights"
        raise refused(f"{KINDS[kind]} {what}.", "Leave --dtype out, or export a Hugging Face folder: --to hf")
    if kind == "safetensors":
        return _weights(store, place, checkpoint, overwrite)
    check_folder_place(place, overwrite)
    if kind == "hf":
        code = outside_code(store.config().replace(log_file=None, deepspeed_config=None))  # an export reads neither
        if code is not None and not trust_recipe and not code.is_known:
            raise OutsideCodeError(
                f"{code.text} It was never started on this machine.",
                "Read that code first. If you trust it, export the run on the command line.",
                option=f"rankdeck export {store.dir.name} --to hf --trust-recipe",
            )
        return _by_recipe(store, kind, place, checkpoint, cancelled, dtype)
    lines = MetricsLines(store.metrics, cancelled)
    with staged_folder(place) as staging:
        made = write_tables(lines, staging, progress)
        if not made:
            raise refused(f"{store.dir.name} has no metrics yet.", "Export it after its first step.")
    details = [f"{name}: {count:,} rows" for name, count in made.items()]
    if lines.damaged:
        details.append(f"{lines.damaged:,} damaged lines of metrics.jsonl were left out.")
    return Exported(kind, place, tuple(details))


def _weights(store: RunStore, place: Path, checkpoint: int | None, overwrite: bool) -> Exported:
    target = place / _MODEL_NAME if place.is_dir() or not place.suffix else place
    check_file_place(target, overwrite)
    recipe, _ = _find_recipe(store)
    description = write_weights(store, recipe, checkpoint, target)
    details = [f"{description}{_size_text([target])}"]
    tokenizer = next(iter(sorted(store.data.glob("**/tokenizer.json"))), None)
    if tokenizer is not None:  # without it the weights mean nothing
        details.append(f"Their tokenizer: {tokenizer}")
    return Exported("safetensors", target, tuple(details))


def _by_recipe(
    store: RunStore,
    kind: str,
    place: Path,
    checkpoint: int | None,
    cancelled: Callable[[], bool],
    dtype: str,
) -> Exported:
    recipe = check_recipe(*_find_recipe(store), kind, store.dir.name)
    with staged_folder(place) as staging:
        weights, target = staging / _MODEL_NAME, staging / ".made"
        description = write_weights(store, recipe, checkpoint, weights)
        target.mkdir()
        run_export(store, recipe, weights, target, dtype, cancelled=cancelled)
        remove_file(weights)
        names = sorted(path.name for path in target.iterdir())
        size = _size_text(sorted(target.glob("*.safetensors")))
        for path in target.iterdir():
            replace_with_retry(path, staging / path.name)
    return Exported(kind, place, (f"{description}{size}", ", ".join(names)))


def _size_text(files: list[Path]) -> str:
    try:
        heads = [read_head(path)[0] for path in files]
        found = {str(entry["dtype"]) for head in heads for name, entry in head.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return ""
    names = ", ".join(sorted(DTYPE_NAMES.get(name, name) for name in found))
    return f": {names}, {sum(path.stat().st_size for path in files) / 1e6:,.1f} MB" if names else ""


def _find_recipe(store: RunStore) -> tuple[Recipe | None, str]:
    """Find the recipe that a run trains; None and the reason where it cannot be used here any more."""
    try:
        return get_recipe(store.config().recipe), ""
    except ConfigError as error:
        return None, error.cause


def write_tables(lines: MetricsLines, folder: Path, progress: Progress) -> dict[str, int]:
    """Write a CSV file for each kind of line into an existing folder; return rows by file name.

    Raises:
        OSError: The disk refuses.
        RankdeckError: The metrics cannot be read, or it was cancelled.
    """
    columns = _columns(lines, lambda done: progress(done / 2))
    rows = dict.fromkeys((f"{TABLES[kind]}.csv" for kind in TABLES if kind in columns), 0)
    with ExitStack() as stack:
        writers = {}
        for kind, names in columns.items():
            file = stack.enter_context((folder / f"{TABLES[kind]}.csv").open("w", encoding="utf-8", newline=""))
            writers[kind] = csv.writer(file, lineterminator="\n")
            writers[kind].writerow(names)
        for line in lines.read(lambda done: progress(0.5 + done / 2)):
            kind = line["event"]
            if kind in writers:
                writers[kind].writerow(_cells(line, columns[kind]))
                rows[f"{TABLES[kind]}.csv"] += 1
    return rows


def _columns(lines: MetricsLines, progress: Progress) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for line in lines.read(progress):
        if line["event"] in TABLES:
            known = found.setdefault(line["event"], {})
            if not line.keys() <= known.keys():
                known.update(dict.fromkeys(line))
    order: Callable[[str], int] = lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST)  # noqa: E731
    return {kind: sorted((name for name in names if name not in _LEFT_OUT), key=order) for kind, names in found.items()}


def _cells(line: Line, names: list[str]) -> list[Any]:
    nonfinite = line.get("nonfinite", ())
    return [_cell(line.get(name)) if name not in nonfinite else "nan" for name in names]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


class RecipeExportError(RankdeckError):
    title = "The recipe could not export the run"


def check_recipe(recipe: Recipe | None, problem: str, kind: str, run: str) -> Recipe:
    """Check that the recipe can export `run` to `kind`; without one `problem` is the reason. Raises `UsageError`."""
    if recipe is None:
        raise refused(problem, "Restore the run's recipe. To list recipes: rankdeck recipes")
    if kind not in recipe.exports:
        raise refused(
            f"{recipe.title} cannot export its weights as a {KINDS[kind]}.",
            "Export the weights as safetensors.",
            f"rankdeck export {run} --to safetensors",
        )
    return recipe


def run_export(
    store: RunStore,
    recipe: Recipe,
    weights: Path,
    target: Path,
    dtype: str = AUTO_DTYPE,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Let the recipe fill the empty folder `target` from a file of whole weights. Blocks; works on any thread.

    Raises:
        RecipeExportError: It failed, took too long, or left nothing in the folder.
        ExportCancelledError: `cancelled` returned True.
    """

    def waiting(_folder: Path) -> None:
        if cancelled():
            raise ExportCancelledError("The export was cancelled.", "Nothing was written.")

    asked = {"run_dir": str(store.dir), "recipe": str(recipe.folder), "weights": str(weights), "target": str(target)}
    asked["dtype"] = dtype
    program = ("-m", "workers.programs.export_main")
    answer = ask_program(program, asked, store.config().env, LIMIT_S, waiting)
    if not answer.in_time:
        raise RecipeExportError(f"It did not finish within {LIMIT_S:g} s.", "Look into its export(given).")
    if answer.values is None:
        raise RecipeExportError(f"Its process {answer.failure}.", f"Look into {recipe.folder / recipe.entry}.")
    error = error_in(answer.values, RecipeExportError)
    if error is not None:
        raise error
    if not any(target.iterdir()):
        raise RecipeExportError(f"{recipe.title} wrote nothing to the export folder.", "Correct its export(given).")

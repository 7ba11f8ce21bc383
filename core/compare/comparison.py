"""`Comparison`: two to eight runs, what they did and what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.compare.figures import read_figures
from core.compare.results import Row, common_heroes, result_rows
from core.compare.settings import environment_rows, read_environment, read_settings, setting_rows
from core.errors import UsageError
from core.recipes.heroes import Hero
from core.run_folder.naming import SEPARATOR
from core.run_folder.record import RunRecord, notes_of
from core.run_folder.store import RunEntry, RunStore, read_entry

LEAST_RUNS: Final = 2
MOST_RUNS: Final = 8
GAP: Final = 2
# Letters of a column, below which cells say nothing any more.
LEAST_WIDTH: Final = 10
SECTIONS: Final = ("Results", "Settings", "Environment")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs beside each other; `notes` are sentences about runs that are damaged or train different recipes."""

    paths: tuple[Path, ...] = ()
    labels: tuple[str, ...] = ()
    results: tuple[Row, ...] = ()
    settings: tuple[Row, ...] = ()
    live: tuple[bool, ...] = ()
    notes: tuple[str, ...] = ()
    heroes: tuple[Hero, ...] = ()
    environment: tuple[Row, ...] = ()

    def sections(self, *, all_rows: bool = False) -> Iterator[tuple[str, tuple[Row, ...]]]:
        for heading, rows in zip(SECTIONS, (self.results, self.settings, self.environment), strict=True):
            shown = rows if all_rows or rows is self.results else tuple(row for row in rows if row.differs)
            if shown:
                yield heading, shown

    @property
    def same_text(self) -> str:
        """The number of equal settings: "38 settings are the same."; empty for none."""
        same = sum(not row.differs for row in self.settings)
        return f"{same} setting{' is' if same == 1 else 's are'} the same." if same else ""

    def table(self, *, all_rows: bool = False) -> list[tuple[str, ...]]:
        empty = ("",) * len(self.labels)
        lines: list[tuple[str, ...]] = [("", *self.labels)]
        for heading, rows in self.sections(all_rows=all_rows):
            lines.append((heading, *empty))
            lines += [(row.label, *row.texts) for row in rows]
        return lines

    def as_text(self, *, all_rows: bool = False, width: int = 0) -> str:
        """The table as text, in columns.

        Args:
            all_rows: Include equal rows.
            width: Characters in a line; the longest cells are elided in their middle to fit. 0: no limit.
        """
        lines = self.table(all_rows=all_rows)
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.labels) + 1)]
        while width and sum(widths) + GAP * (len(widths) - 1) > width and max(widths) > LEAST_WIDTH:
            widths[widths.index(max(widths))] -= 1
        return "".join(
            (" " * GAP).join(_elided(cell, own).ljust(own) for cell, own in zip(line, widths, strict=True)).rstrip()
            + "\n"
            for line in lines
        )

    def as_tabs(self, *, all_rows: bool = False) -> str:
        lines = self.table(all_rows=all_rows)
        return "".join("\t".join(" ".join(cell.split()) for cell in line).rstrip("\t") + "\n" for line in lines)

    def as_dict(self, *, all_rows: bool = False) -> dict[str, Any]:
        """The comparison for JSON: the runs, and by section each name's values in the runs' order."""
        runs = [{"path": str(path), "label": label} for path, label in zip(self.paths, self.labels, strict=True)]
        parts = {
            heading.lower(): {row.name: list(row.values) for row in rows}
            for heading, rows in self.sections(all_rows=all_rows)
        }
        same = sum(not row.differs for row in self.settings)
        return {"runs": runs, **{name.lower(): {} for name in SECTIONS}, **parts, "same_settings": same}


def compare_runs(stores: Sequence[RunStore]) -> Comparison:
    """Read two to eight runs and compare them, in their order; a run given twice counts once. Raises `UsageError`."""
    paths = tuple(dict.fromkeys(store.dir for store in stores))
    if not LEAST_RUNS <= len(paths) <= MOST_RUNS:
        raise UsageError(
            f"{len(paths)} run{' was' if len(paths) == 1 else 's were'} given.",
            f"Give {LEAST_RUNS} to {MOST_RUNS} different runs. To list them: rankdeck runs",
            title="These runs cannot be compared",
        )
    records = [_record(path) for path in paths]
    labels = _distinct([record.label for record in records], paths)
    return Comparison(
        paths,
        labels,
        result_rows(records, [read_figures(RunStore(path)) for path in paths]),
        setting_rows([read_settings(record) for record in records]),
        tuple(record.entry.state is not None and record.entry.state.is_live for record in records),
        tuple(_notes(records, labels)),
        common_heroes(records) or (),
        environment_rows([read_environment(RunStore(path)) for path in paths]),
    )


def _notes(records: Sequence[RunRecord], labels: Sequence[str]) -> Iterator[str]:
    for record, label in zip(records, labels, strict=True):
        if not record.path.is_dir():
            yield f"“{label}” is no longer on this disk."
        elif record.entry.state is None:
            yield f"“{label}” is damaged: {record.entry.problem or 'its state cannot be read.'}"
    if len({record.entry.state.recipe for record in records if record.entry.state is not None}) > 1:
        yield "The runs train different recipes, so no result is marked as the best."


def _record(path: Path) -> RunRecord:
    return RunRecord(read_entry(path) or RunEntry(path, None), notes_of(path))


def _distinct(labels: Sequence[str], paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(
        f"{label}{SEPARATOR}{path.name}" if labels.count(label) > 1 and label != path.name else label
        for label, path in zip(labels, paths, strict=True)
    )


def _elided(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"

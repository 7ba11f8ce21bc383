"""Folder of a benchmark's results: table, environment and pictures; each file whole or not there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.bench.charts import charts_of
from core.bench.pictures import draw_pictures
from core.bench.result import Bench
from core.bench.table import table_of
from core.errors import RankdeckError, UsageError
from core.files.atomic import explained, write_atomic

RESULTS: Final = "results.csv"
ENVIRONMENT: Final = "environment.json"


@dataclass(frozen=True, slots=True)
class BenchFolder:
    """A folder that takes results.

    Attributes:
        path: Where.
        environment: What was measured on what.
    """

    path: Path
    environment: Mapping[str, Any]

    @classmethod
    def make(cls, path: Path, environment: Mapping[str, Any]) -> BenchFolder:
        """Makes the folder, and writes the first file: what cannot be written is known before anything is measured.

        Raises:
            UsageError: It holds results already.
            RankdeckError: It cannot be made or written: no permission, disk full, a file in its place.
        """
        if (path / RESULTS).exists():
            raise UsageError(
                f"{path} holds results already.", "Choose another folder.", title="Results are not replaced"
            )
        with explained(f"{path} could not be made"):
            path.mkdir(parents=True, exist_ok=True)
        write_atomic(path / ENVIRONMENT, json.dumps(environment, indent=2, ensure_ascii=False) + "\n")
        return cls(path, environment)

    def keep(self, bench: Bench) -> None:
        """Writes the table of what was measured so far, which a power cut would take; `write` says what goes wrong."""
        if bench.has_figures:
            with contextlib.suppress(RankdeckError):
                write_atomic(self.path / RESULTS, table_of(bench).as_csv())

    def write(self, bench: Bench, cancelled: Callable[[], bool] = lambda: False) -> str:
        """Writes the table and the pictures.

        Args:
            bench: What was measured.
            cancelled: Asked now and then while pictures are drawn; True ends that.

        Returns:
            Why there are no pictures, as a sentence; empty: there are.

        Raises:
            RankdeckError: A file cannot be written.
        """
        write_atomic(self.path / RESULTS, table_of(bench).as_csv())
        return draw_pictures(charts_of(bench), self.path, cancelled)

"""Looks for a table's text column: `python -m workers.programs.column_main SETTINGS`, for `core.recipes.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workers.data.reading.corpus import find_column
from workers.programs.answer import answer


def check_column(asked: dict[str, Any], _folder: Path) -> dict[str, Any]:
    """Answers nothing where there is one."""
    find_column(asked["config"]["dataset_file"], asked["config"]["options"])
    return {}


if __name__ == "__main__":
    answer(check_column, defects=False)

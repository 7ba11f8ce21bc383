"""Looks at how a dataset is read: `python -m workers.programs.column_main SETTINGS`, for `core.recipes.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from workers.data.reading.corpus import MAX_BAD_ROWS, look_at
from workers.data.reading.row_counts import BadRowLimit, RowCounts
from workers.programs.answer import answer

_READ_BYTES: Final = 8_000_000
"""A dataset of that size is read to its end, a tenth of a second, so that its documents and bad rows are known."""


def check_column(asked: dict[str, Any], _folder: Path) -> dict[str, Any]:
    """Answers with how it is read, as notes; refuses what cannot be trained on."""
    options = asked["config"]["options"]
    limit = BadRowLimit.parse(options.get(MAX_BAD_ROWS))
    corpus = look_at(asked["config"]["dataset_file"], options, asked["config"]["data_files"])
    notes = [*corpus.remarks]
    documents = ""
    if corpus.size_bytes <= _READ_BYTES:
        counts = RowCounts()
        for _ in corpus.pieces(counts):
            continue
        limit.check(counts)
        documents = f", {counts.documents:,} document{'' if counts.documents == 1 else 's'}"
        if counts.left_out:
            notes.append(f"{counts.left_out} The first: {counts.examples[0]}.")
    if corpus.column:
        notes.insert(0, f"Data: {corpus.text}{documents}.")
    return {"notes": notes}


if __name__ == "__main__":
    answer(check_column, defects=False)

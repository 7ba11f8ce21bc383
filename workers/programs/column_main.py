"""Looks at how a dataset is read: `python -m workers.programs.column_main SETTINGS`, for `core.recipes.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from core.data.dataset import is_hub
from core.data.formats import BETWEEN_DOCUMENTS
from core.data.hub import ALLOW_DOWNLOAD, DownloadNeededError, HubName, cached_info
from workers.data.reading.corpus import MAX_BAD_ROWS, look_at
from workers.data.reading.row_counts import BadRowLimit, RowCounts
from workers.programs.answer import answer

# A dataset of that size is read to its end, a tenth of a second, so that its documents and bad rows are known.
_READ_BYTES: Final = 8_000_000
_DOWNLOADED: Final = (
    "The dataset is downloaded when the run starts. The first rank checks its rows then, before a step."
)


def check_column(asked: dict[str, Any], _folder: Path) -> dict[str, Any]:
    """Answers with how it is read, as notes; refuses what cannot be trained on."""
    dataset, options = asked["config"]["dataset_file"], {**asked["config"]["options"], ALLOW_DOWNLOAD: False}
    limit = BadRowLimit.parse(options.get(MAX_BAD_ROWS))
    if is_hub(dataset) and cached_info(HubName.parse(dataset)) is None:
        return {"notes": [_DOWNLOADED]}
    try:
        corpus = look_at(dataset, options, asked["config"]["data_files"])
    except DownloadNeededError:  # another part of it is here
        return {"notes": [_DOWNLOADED]}
    notes = [*corpus.remarks]
    amount = ""
    if corpus.size_bytes <= _READ_BYTES:
        counts = RowCounts()
        text_bytes = sum(len(piece.data) for piece in corpus.pieces(counts))
        limit.check(counts)
        amount = f", {counts.documents:,} document{'' if counts.documents == 1 else 's'}"
        if options.get("tokenizer") == "byte":
            amount += f", {text_bytes + len(BETWEEN_DOCUMENTS) * counts.documents:,} tokens"
        if counts.left_out:
            notes.append(f"{counts.left_out} The first: {counts.examples[0]}.")
    return {"notes": [f"Data: {corpus.text}{amount}.", *notes]}


if __name__ == "__main__":
    answer(check_column, defects=False)

"""Looks at how a dataset is read: `python -m workers.programs.column_main SETTINGS`, for `core.recipes.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from workers.data.reading.corpus import MAX_BAD_ROWS, look_at_what_is_here
from workers.data.reading.row_counts import BadRowLimit, RowCounts
from workers.data.tokens.tokenizer_spec import TokenizerSpec
from workers.programs.answer import answer

# A dataset of that size is read to its end, a tenth of a second, so that its documents and bad rows are known.
_READ_BYTES: Final = 8_000_000
_DOWNLOADED: Final = (
    "The dataset is downloaded when the run starts. The first rank checks its rows then, before a step."
)


def check_column(asked: dict[str, Any], _folder: Path) -> dict[str, Any]:
    """Answer with notes on how it is read; refuse data that cannot be trained on."""
    dataset, options = asked["config"]["dataset_file"], asked["config"]["options"]
    limit = BadRowLimit.parse(options.get(MAX_BAD_ROWS))
    corpus = look_at_what_is_here(dataset, options, asked["config"]["data_files"])
    if corpus is None:
        return {"notes": [_DOWNLOADED]}
    notes = [*corpus.remarks]
    amount = ""
    if corpus.size_bytes <= _READ_BYTES:
        counts = RowCounts()
        text_bytes = sum(len(piece.data) for piece in corpus.pieces(counts))
        limit.check(counts)
        amount = f", {counts.documents:,} document{'' if counts.documents == 1 else 's'}"
        if options.get("tokenizer") == "byte":
            amount += f", {text_bytes + len(TokenizerSpec().separator) * counts.documents:,} tokens"
        if counts.left_out:
            notes.append(f"{counts.left_out} The first: {counts.examples[0]}.")
        if counts.repeated:
            notes.append(counts.repeated)
    return {"notes": [f"Data: {corpus.text}{amount}.", *notes]}


if __name__ == "__main__":
    answer(check_column, defects=False)

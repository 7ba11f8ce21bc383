"""The process behind `rankdeck preview`: the first samples of a dataset as the recipe's model will see them.

``python -m workers.programs.preview_main REQUEST``, started by `core.measure.data_preview`. ``progress.txt`` beside the
request says what is being done.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.config import RunConfig
from core.config.config_file import without_version
from core.config.layers import config_from_mapping
from core.data.dataset import is_hub
from core.data.hub import ALLOW_DOWNLOAD, HubName, cached_info, not_here
from core.errors import ConfigError, DatasetError
from core.files.atomic import write_atomic
from core.paths import token_cache_dir
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe
from workers.data.reading.corpus import MAX_BAD_ROWS, Corpus, open_corpus, texts
from workers.data.reading.hub import size_text
from workers.data.reading.pieces import Piece
from workers.data.reading.row_counts import BadRowLimit, RowCounts
from workers.data.tokens.token_cache import TokenData, found_tokens, tokenise
from workers.data.tokens.tokenizer_spec import Encoder, Ids, TokenizerSpec
from workers.data.windows import cut_windows
from workers.programs.answer import answer
from workers.recipe_api.loader import load_function

LOOKED_AT_BYTES: Final = 32_000_000
_SHOWN_TOKENS: Final = 2_048
_TOKENS_IN_ALL: Final = 20_480
_SHOWN_CHARS: Final = 240
_SAY_EVERY_S: Final = 0.2


class _Source:
    """A `workers.recipe_api.TextSource` without a run."""

    def __init__(self, config: RunConfig, corpus: Corpus) -> None:
        self.config = config
        self._corpus = corpus

    @property
    def options(self) -> Mapping[str, Any]:
        return self.config.options

    def texts(self, limit_bytes: int) -> Iterator[str]:
        return texts(self._corpus, limit_bytes)


def look(
    config: RunConfig, recipe: Recipe, folder: Path, request: Mapping[str, Any], say: Callable[[str], None]
) -> dict[str, Any]:
    """All of a preview but the epoch."""
    limit = BadRowLimit.parse(config.options.get(MAX_BAD_ROWS))
    if is_hub(config.dataset_file):
        name = HubName.parse(config.dataset_file)
        if cached_info(name) is None and config.options.get(ALLOW_DOWNLOAD) is not True:
            say("asking the Hub how large it is")
            raise not_here(name, size_text(name))
    corpus = open_corpus(config.dataset_file, config.options, say, config.data_files)
    spec, described = _tokenizer(config, recipe, corpus, folder, say)
    encoder = spec.open()
    data = tokenise(corpus, spec, token_cache_dir(), say) if request["read_all"] else None
    data = data or found_tokens(corpus, spec, token_cache_dir())
    start = _Start(encoder, config.seq_len, request["documents"])
    counts, looked_at = RowCounts(), 0

    def on_read(read_bytes: int) -> None:
        nonlocal looked_at
        looked_at = read_bytes

    say("reading the first rows")
    for piece in corpus.pieces(counts, on_read):
        if counts.training_documents is not None and start.training_tokens is None:
            start.finish()
            start.training_tokens = start.tokens
        start.add(piece)
        if looked_at >= LOOKED_AT_BYTES or (data is not None and start.enough):
            break
    else:
        looked_at = corpus.size_bytes
    start.finish()
    answered = _answer(config, corpus, start, counts, data, looked_at)
    remarks = _over_the_limit(limit, counts if data is None else data.counts, is_all=answered["exact"])
    return answered | {"tokenizer": described, "remarks": [*remarks, *answered["remarks"]]}


def _over_the_limit(limit: BadRowLimit, counts: RowCounts, *, is_all: bool) -> list[str]:
    """Refuse data with too many bad rows; of data that was read in part, say that training would refuse it so far."""
    try:
        limit.check(counts)
    except DatasetError as error:
        if is_all:
            raise
        return [f"If all of the data is like its beginning, training refuses it. {error.cause}"]
    return []


def _tokenizer(
    config: RunConfig, recipe: Recipe, corpus: Corpus, folder: Path, say: Callable[[str], None]
) -> tuple[TokenizerSpec, dict[str, Any]]:
    """The recipe's tokenizer; bytes where it has none."""
    say("loading the recipe")
    try:
        make: Callable[..., TokenizerSpec] = load_function(recipe, "make_tokenizer", "tokenizer.py")
    except ConfigError:
        return TokenizerSpec(), {"kind": "bytes", "vocab_size": 256, "from_recipe": False}
    say("making the tokenizer")
    spec = make(_Source(config, corpus), folder)
    return spec, {"kind": spec.kind, "vocab_size": spec.open().vocab_size, "from_recipe": True}


class _Start:
    """The first documents and samples, and the number of tokens of all that was read."""

    def __init__(self, encoder: Encoder, seq_len: int, shown: int) -> None:
        self.tokens = 0
        self.training_tokens: int | None = None
        self.documents: list[dict[str, Any]] = []
        self._encoder = encoder
        self._seq_len, self._shown = seq_len, shown
        self._first: list[Ids] = []
        self._held = 0
        self._waiting: list[Piece] = []
        self._begin = 0
        self._text = b""
        self._bytes = 0

    @property
    def enough(self) -> bool:
        return len(self.documents) >= self._shown and self._held > self._shown * self._seq_len

    def add(self, piece: Piece) -> None:
        self._waiting.append(piece)
        if len(self._waiting) >= 256 or len(piece.data) > 1 << 16 or not self.enough:
            self.finish()

    def finish(self) -> None:
        if not self._waiting:
            return
        for piece, ids in zip(self._waiting, self._encoder.encode([p.data for p in self._waiting]), strict=True):
            self._keep(ids)
            self._text = self._text or piece.data[: 4 * _SHOWN_CHARS]
            self._bytes += len(piece.data)
            if piece.ends:
                self._end_document()
        self._waiting = []

    def samples(self) -> list[dict[str, Any]]:
        if not self._first:
            return []
        ids, length = np.concatenate(self._first), self._seq_len
        most = min(_SHOWN_TOKENS, max(1, _TOKENS_IN_ALL // max(1, self._shown)), length)
        windows = [ids[at : at + length + 1] for at in range(0, self._shown * length, length)]
        return [
            {
                "number": number,
                "length": max(0, len(window) - 1),
                "ids": window[:most].tolist(),
                "pieces": [self._encoder.decode([int(i)]) for i in window[:most]],
                "text": self._encoder.decode(window.tolist())[:_SHOWN_CHARS],
            }
            for number, window in enumerate(windows)
            if len(window) == length + 1
        ]

    def _keep(self, ids: Ids) -> None:
        self.tokens += len(ids)
        wanted = self._shown * self._seq_len + 1 - self._held
        if wanted > 0:
            self._first.append(ids[:wanted])
            self._held += len(ids[:wanted])

    def _end_document(self) -> None:
        if len(self.documents) < self._shown:
            tokens = self.tokens - self._begin
            samples = (self.tokens - 1) // self._seq_len - self._begin // self._seq_len + 1 if tokens else 0
            self.documents.append(
                {
                    "text": self._text.decode("utf-8", "replace")[:_SHOWN_CHARS],
                    "bytes": self._bytes,
                    "tokens": tokens,
                    "samples": samples,
                    "split": samples > 1,
                }
            )
        self._keep(self._encoder.separator)
        self._begin, self._text, self._bytes = self.tokens, b"", 0


def _answer(
    config: RunConfig, corpus: Corpus, start: _Start, counts: RowCounts, data: TokenData | None, looked_at: int
) -> dict[str, Any]:
    exact = data is not None or looked_at >= corpus.size_bytes
    factor = corpus.size_bytes / max(1, looked_at)
    tokens = data.tokens if data is not None else start.tokens if exact else round(start.tokens * factor)
    counts = counts if data is None else data.counts
    if not counts.documents:
        raise DatasetError(
            f"The dataset contains no text: {counts.summary or 'it has no rows'}.",
            "Choose other data, or another text column (text_column).",
            title="The dataset is empty",
        )
    try:
        held_out = config.options.get("val_fraction")
        fraction = held_out if isinstance(held_out, float) else 0.0
        if data is not None:
            cut = data.cut(config.seq_len, fraction)
        else:
            train_tokens = start.training_tokens if exact or not corpus.held_out else _training_share(corpus, tokens)
            cut = cut_windows(tokens, config.seq_len, fraction, train_tokens)
        samples, val_samples = cut.samples, cut.val_samples
    except DatasetError:
        if exact:
            raise
        samples = val_samples = 0
    sizes = [source.size_bytes for source in corpus.sources]
    return {
        "dataset": config.dataset_file,
        "files": len(sizes),
        "validation_files": len(corpus.held_out),
        "size_bytes": corpus.size_bytes,
        "form": corpus.form,
        "shape": corpus.shape.text or "texts",
        "remarks": [*([counts.repeated] if counts.repeated else []), *corpus.remarks],
        "text_column": corpus.column or None,
        "text_column_guessed": corpus.guessed,
        "columns": corpus.columns.as_list(),
        "looked_at_bytes": looked_at,
        "exact": exact,
        "tokenised": data is not None,
        "tokens": tokens,
        "counts": counts.as_dict() | {"bad_rows": counts.bad_rows, "words": counts.summary},
        "seq_len": config.seq_len,
        "samples": samples,
        "val_samples": val_samples,
        "first_documents": start.documents,
        "first_samples": start.samples(),
    }


def _training_share(corpus: Corpus, tokens: int) -> int:
    """Estimate of the tokens before a validation split."""
    return round(tokens * corpus.without_validation().size_bytes / max(1, corpus.size_bytes))


def preview(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    next_say = [0.0]

    def say(text: str) -> None:
        if time.monotonic() >= next_say[0]:
            next_say[0] = time.monotonic() + _SAY_EVERY_S
            write_atomic(folder / "progress.txt", text, durable=False)

    config = config_from_mapping(without_version(asked["config"], folder))
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as made:
        return look(config, get_recipe(asked["recipe"]), Path(made), asked, say)


if __name__ == "__main__":
    answer(preview)

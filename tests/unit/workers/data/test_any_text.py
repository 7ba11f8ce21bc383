"""Any text comes out of any format as it went in, and is the same tokens."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.written import write_rows
from workers.data.reading.corpus import open_corpus
from workers.data.tokens.token_cache import tokenise
from workers.data.tokens.tokenizer_spec import TokenizerSpec

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")

NAMES = ["a.jsonl", "a.json", "columns.json", "a.csv", "a.tsv", "a.jsonl.gz", "a.csv.gz"]
NO_VALUE = ("nan", "none", "null", "<na>", "#n/a")  # as pandas and Excel write it
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


def holds_text(text: str) -> bool:
    return not text.isspace() and text.strip().lower() not in NO_VALUE


@hypothesis.settings(max_examples=50, deadline=None)
@hypothesis.given(
    texts=st.lists(ANY_TEXT.filter(holds_text), min_size=1, max_size=4),
    name=st.sampled_from(NAMES),
)
def test_any_text_is_the_same_tokens_in_any_format(texts: list[str], name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="Größe ", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        corpus = open_corpus(str(write_rows(folder / name, texts)), {"text_column": "text"})
        data = tokenise(corpus, TokenizerSpec(), folder / "cache")
        wanted = b"".join(text.encode() + b"\n\n" for text in texts)
        assert bytes(data.open()) == wanted
        assert np.array_equal(data.ends(), np.cumsum([len(text.encode()) + 2 for text in texts]))
        assert (data.documents, data.counts.bad_rows) == (len(texts), 0)

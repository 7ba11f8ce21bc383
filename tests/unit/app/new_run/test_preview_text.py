"""Texts of the data preview."""

from __future__ import annotations

import pytest

from app.new_run.preview_text import columns_of, sample_title, visible

pytestmark = pytest.mark.windows


def test_line_ends_are_seen_and_can_still_end_the_line() -> None:
    assert visible("a\tb\r\n") == "a⇥b␍↵"
    assert visible("a\nb", breaks=True) == "a↵\nb"


def test_a_sample_has_its_length_in_tokens() -> None:
    assert sample_title({"number": 0, "length": 128}) == "Sample 0 (128 tokens)"


def test_a_column_says_its_share_of_text() -> None:
    column = {"name": "review", "text_share": 0.5, "mean_chars": 1234.0}
    found = {"columns": [column], "text_column": "review", "text_column_guessed": True}
    texts = columns_of(found)
    assert texts[""] == "guessed: review"
    assert texts["review"] == "review (text in 50\N{NO-BREAK SPACE}% of rows, 1,234 characters on average)"

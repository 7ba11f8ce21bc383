"""`rankdeck`: the window for no words, the command line for all others."""

from __future__ import annotations

import pytest

from app.__main__ import is_for_window


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ([], True),
        (["--window"], True),
        (["-style", "fusion"], True),
        (["train"], False),
        (["--help"], False),
        (["-h"], False),
        (["--version"], False),
        (["nonsense"], False),
    ],
)
def test_which_words_open_the_window(words: list[str], window: bool) -> None:
    assert is_for_window(words) is window

"""Distinct parts of names: what tells several names apart, for places that have no room for whole ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

_WORD_END: Final = re.compile(r"[\s\-_/.,:=·×]")


def distinct_parts(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each name as what all begin with, what tells it apart, and what all end with; whole words only.

    A name that is its own beginning, and a single one, is not divided: ``("", name, "")``.
    """
    begin = _common_start(names)
    rests = [name.removeprefix(begin) for name in names]
    end = _common_start([rest[::-1] for rest in rests])[::-1]
    middles = [rest.removesuffix(end) for rest in rests]
    if len(set(names)) < 2 or not all(middles):
        return [("", name, "") for name in names]
    return [(begin, middle, end) for middle in middles]


def _common_start(texts: Sequence[str]) -> str:
    """What all texts begin with, up to the end of a word: the least and the greatest share it with all between."""
    pairs = zip(min(texts, default=""), max(texts, default=""), strict=False)
    common = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    ends = [found.end() for found in _WORD_END.finditer(common)]
    return common[: ends[-1]] if ends else ""

"""Fuzzy matching: how well a few typed letters fit a text, and which entries of a long list fit best."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

TITLE_STARTS: Final = 100
WORD_STARTS: Final = 80
INSIDE: Final = 50
INITIALS: Final = 40
ELSEWHERE: Final = 30
SCATTERED: Final = 10
"""Scores of one typed word, from the title's start to letters that are spread over it."""
MIN_SCATTERED: Final = 3
"""Letters that a word needs before it may be spread: two letters are found in almost any text."""
MAX_SPREAD: Final = 3
"""How many times its own length a word may be spread over."""
_WORD: Final = re.compile(r"\w+")


class Searchable(Protocol):
    """An entry with a title, and text that is searched but need not be shown."""

    @property
    def title(self) -> str:
        """What is shown."""

    @property
    def also(self) -> str:
        """Other names for it."""

    @property
    def weight(self) -> float:
        """Below 1 for an entry that stands behind others that fit as well."""


E = TypeVar("E", bound=Searchable)


class Index(Generic[E]):
    """Entries with their texts prepared for a search at each key."""

    def __init__(self, entries: Sequence[E]) -> None:
        self.entries = list(entries)
        self._texts = [(entry.title.casefold(), entry.also.casefold(), _initials(entry.title)) for entry in entries]

    def best(self, query: str, many: int) -> list[E]:
        """The entries that fit all words of a query, the best first; of equal ones the earlier.

        Args:
            query: As typed; empty: the first entries, lighter ones last.
            many: How many at most.
        """
        terms = query.casefold().split()
        if not terms:
            return sorted(self.entries, key=lambda entry: -entry.weight)[:many]
        scored = (
            (score * self.entries[place].weight, -place)
            for place, (title, also, initials) in enumerate(self._texts)
            if (score := _score_all(terms, title, also, initials))
        )
        return [self.entries[-place] for _, place in heapq.nlargest(many, scored)]


def score(query: str, title: str, also: str = "") -> float:
    """How well a query fits; 0 where one of its words does not."""
    return _score_all(query.casefold().split(), title.casefold(), also.casefold(), _initials(title))


def matched(query: str, title: str) -> list[int]:
    """Places of the title's letters that a query's words fit, to be made bold."""
    folded = title.casefold()
    if len(folded) != len(title):  # a letter that became two: places would be wrong
        return []
    places: set[int] = set()
    for word in query.casefold().split():
        start = _word_start(word, folded)
        start = folded.find(word) if start < 0 else start
        if start >= 0:
            places.update(range(start, start + len(word)))
        else:
            places.update(_scattered(word, folded) or ())
    return sorted(places)


def _score_all(terms: Sequence[str], title: str, also: str, initials: str) -> float:
    total = 0.0
    for word in terms:
        one = _score(word, title, also, initials)
        if not one:
            return 0.0
        total += one
    return total / len(terms) + 1.0 / (1 + len(title))  # of two that fit alike, the shorter


def _score(word: str, title: str, also: str, initials: str) -> float:
    if title.startswith(word):
        return TITLE_STARTS
    if word in title:
        return WORD_STARTS if _word_start(word, title) >= 0 else INSIDE
    if len(word) > 1 and initials.startswith(word):
        return INITIALS
    if word in also:
        return ELSEWHERE
    places = _scattered(word, title) if len(word) >= MIN_SCATTERED else None
    return 0.0 if places is None else SCATTERED * len(word) / (places[-1] - places[0] + 1)


def _word_start(word: str, text: str) -> int:
    """Where `word` begins a word of the text; -1 where it does not."""
    start = text.find(word)
    while start > 0 and text[start - 1].isalnum():
        start = text.find(word, start + 1)
    return start


def _scattered(word: str, text: str) -> list[int] | None:
    """Places of the word's letters in their order; None where one is missing or they are too far apart."""
    places: list[int] = []
    at = -1
    for letter in word:
        at = text.find(letter, at + 1)
        if at < 0:
            return None
        places.append(at)
    return places if places[-1] - places[0] < MAX_SPREAD * len(word) else None


def _initials(title: str) -> str:
    return "".join(found[0][0] for found in _WORD.finditer(title.casefold()))

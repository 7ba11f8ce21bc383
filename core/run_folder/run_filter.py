"""Filter over runs: ``lr>1e-4 tag:night state:failed words``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.run_folder.record import RunRecord

_TERM: Final = re.compile(r'(!?)(?:([A-Za-z_][\w-]*)(>=|<=|!=|[:=<>]))?("([^"]*)"?|\S+)')
_UNFINISHED: Final = re.compile(r"(?:^|\s)(!?[A-Za-z_][\w-]*(>=|<=|!=|[:=<>]))\s*$")
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_SAME: Final = {"tags": "tag", "run_id": "id", "learning_rate": "lr", "gpus": "devices", "ranks": "devices"}


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a filter, such as ``lr>1e-4``; a bare word has no name."""

    name: str
    sign: str
    text: str
    is_negated: bool = False

    def holds(self, record: RunRecord, searched_text: str | None = None) -> bool:
        return self._holds(record, searched_text) != self.is_negated

    def _holds(self, record: RunRecord, searched_text: str | None) -> bool:
        if not self.name:
            return self.text in (record.searched_text if searched_text is None else searched_text)
        value = record.value(self.name)
        if value is None:
            return self.sign == "!="
        number = _number(self.text)
        if self.sign in _COMPARE:
            own = _number(value)
            return own is not None and number is not None and _COMPARE[self.sign](own, number)
        values = value if isinstance(value, tuple | list) else (value,)
        if self.sign == ":":
            return any(_contains(one, self.text, number) for one in values)
        return any(_equals(one, self.text, number) for one in values) == (self.sign == "=")


def parse_filter(text: str) -> tuple[Term, ...]:
    """Parse a filter's terms, all of which must hold. Every text is a filter; quotes hold words together.

    Examples: ``state:failed``, ``lr>=1e-3``, ``tag=night``, ``mode!=ddp``, ``!draft``, ``"two words"``. A last term
    that has no value yet (``lr>``) is left out.
    """
    terms = []
    text = _UNFINISHED.sub("", text)
    for negation, name, sign, value, quoted in _TERM.findall(text):
        known = name.replace("-", "_").lower()
        wanted = (quoted if value.startswith('"') else value).lower()
        terms.append(Term(_SAME.get(known, known), sign, wanted, bool(negation)))
    return tuple(terms)


def filter_problem(text: str) -> str:
    if unfinished := _UNFINISHED.search(text):
        sign = unfinished[2]
        return f"{unfinished[1]} needs a value, as in {f'lr{sign}1e-4' if sign in _COMPARE else f'mode{sign}ddp'}."
    for term in parse_filter(text):
        if term.sign in _COMPARE and _number(term.text) is None:
            return f"{term.name}{term.sign} compares numbers, and {term.text!r:.40} is not one."
    return ""


def matching(records: Iterable[RunRecord], terms: Sequence[Term]) -> list[RunRecord]:
    return [record for record in records if all(term.holds(record) for term in terms)]


def unknown_names(records: Iterable[RunRecord], terms: Sequence[Term]) -> list[str]:
    wanted = {term.name for term in terms if term.name}
    for record in records:
        wanted = {name for name in wanted if record.value(name) is None}
        if not wanted:
            break
    return sorted(wanted)


def _contains(value: Any, text: str, number: float | None) -> bool:
    own = _number(value) if not isinstance(value, str) else None
    return own == number if own is not None and number is not None else text in str(value).lower()


def _equals(value: Any, text: str, number: float | None) -> bool:
    own = _number(value)
    return own == number if own is not None and number is not None else str(value).lower() == text


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None

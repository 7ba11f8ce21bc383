"""Output that nothing was charted from: the names and numbers in it, for the person to say what they mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from workers.script.printed.names import Names
from workers.script.printed.stamps import without_stamps

PATIENCE: Final = 50
"""Lines with numbers in which there may be nothing to chart: libraries print their settings first."""
MOST_NAMES: Final = 40
_NAMED: Final = 6
_EXAMPLE_CHARS: Final = 60
_JSON_FILE_LINE: Final = re.compile(r'"[^"]*"\s*:')


class Unread:
    """Counts the lines that hold numbers and gave no point; `names` has the names that were seen in them."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.lines = 0
        self._example = ""

    def take(self, text: str) -> None:
        """A line of output."""
        message = without_stamps(text[: 10 * _EXAMPLE_CHARS])
        if re.search(r"\d", message) and not _JSON_FILE_LINE.match(message):
            self.lines += 1
            self._example = message.strip(" |")[:_EXAMPLE_CHARS]

    def describe(self) -> dict[str, Any]:
        """An alert's title, cause and next step; `names` (printed → chart) and `numbers` (printed → the last ones).

        Names whose numbers change come first, since settings do not; and fractions, since counters have none.
        """
        found = self._names.numbers
        order = sorted(found, key=lambda name: _rank(found[name]))[:MOST_NAMES]
        numbers = {name: found[name] for name in order}
        how = "Map printed names to charts" if numbers else "Print a name before each number"
        many = "1 line with numbers" if self.lines == 1 else f"{self.lines} lines with numbers"
        cause = f"The script has printed {many}, but Rankdeck recognised no step, loss or other metric in them."
        return {
            "title": "The script's output could not be charted",
            "cause": f"{cause} {_seen(numbers) or f'The numbers have no names, for example in “{self._example}”.'}",
            "next_step": f"{how}, or call rankdeck.log(step=…, loss=…) in the script.",
            "names": {name: self._names.seen.get(name, name) for name in order},
            "numbers": numbers,
        }


def _rank(numbers: list[float]) -> tuple[bool, bool]:
    return len(numbers) < 2, all(number % 1 == 0 for number in numbers)


def _seen(numbers: Mapping[str, list[float]]) -> str:
    shown = [f"{name} ({', '.join(f'{value:g}' for value in numbers[name])})" for name in list(numbers)[:_NAMED]]
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"Names seen: {', '.join(shown)}{more}." if shown else ""

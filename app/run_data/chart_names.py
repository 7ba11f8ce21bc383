"""Chart names: the chart that each name printed by a script becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.metrics.metric import METRICS, NO_CARD

if TYPE_CHECKING:
    from app.run_data.metrics_batch import Event

# The kind of alert that says so.
NOT_CHARTED: Final = "not_charted"

# Charts that have a meaning; any other name has a card of its own.
CHARTS: Final = ("step", *(one.name for one in METRICS if one.card != NO_CARD))


@dataclass(frozen=True, slots=True)
class ChartName:
    """One printed name.

    Attributes:
        printed: As `core.recipes.user_script.plain` gives it.
        chart: What it is charted as; `core.recipes.user_script.DROP`: not at all.
        chosen: A person said so; otherwise it is what Rankdeck takes the name for.
    """

    printed: str
    chart: str
    chosen: bool


def names_in(events: Iterable[Event]) -> dict[str, str]:
    """Return the chart of each printed name that the ranks reported, also of names that cannot be charted."""
    found: dict[str, str] = {}
    for event in events:
        names = event.get("names")
        if (event.get("event") == "charts" or event.get("kind") == NOT_CHARTED) and isinstance(names, dict):
            found |= {str(printed): str(chart) for printed, chart in names.items()}
    return found


def unread_numbers(events: Iterable[Event]) -> dict[str, str]:
    """Return the last numbers of each printed name, where nothing that the run printed could be charted."""
    found: dict[str, str] = {}
    for event in events:
        numbers = event.get("numbers")
        if event.get("kind") == NOT_CHARTED and isinstance(numbers, dict):
            for printed, last in numbers.items():
                shown = [f"{value:g}" for value in last if isinstance(value, int | float)]
                found[str(printed)] = ", ".join(shown)
        elif event.get("event") == "charts":
            found.clear()
    return found


def chart_names(chosen: Mapping[str, str], seen: Mapping[str, str]) -> list[ChartName]:
    """Return every chosen or seen name, the chosen ones first.

    Args:
        chosen: Of `core.recipes.user_script.parse_charts`.
        seen: Of `names_in`.
    """
    known = [ChartName(printed, chart, True) for printed, chart in chosen.items()]
    return known + [ChartName(printed, chart, False) for printed, chart in seen.items() if printed not in chosen]

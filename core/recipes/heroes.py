"""Heroes: the five figures that say at a glance how a run of a recipe is doing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MEMORY: Final = "memory"
CHECKPOINT: Final = "checkpoint"
DIRECTIONS: Final = ("", "lower", "higher")
MOST: Final = 5

_METRIC: Final = re.compile(r"[A-Za-z_][\w./@-]{0,63}")
_KEYS: Final = ("metric", "label", "unit", "better")


class HeroError(ValueError):
    """An invalid `[[heroes]]` table, as a sentence."""


@dataclass(frozen=True, slots=True)
class Hero:
    """One figure.

    Attributes:
        metric: A name that the run's ranks or evaluations report; or "memory", "checkpoint".
        unit: Of its value; empty for none.
        better: "lower", "higher", or empty where neither is better.
    """

    metric: str
    label: str
    unit: str = ""
    better: str = ""


# For a recipe that names none.
DEFAULT_HEROES: Final = (
    Hero("loss", "Loss", better="lower"),
    Hero("val_loss", "Validation loss", better="lower"),
    Hero("tokens_per_s", "Throughput", "tok/s", "higher"),
    Hero(MEMORY, "Memory"),
    Hero(CHECKPOINT, "Checkpoint"),
)


def direction(heroes: Sequence[Hero], metric: str) -> str:
    """Whether "lower" or "higher" values of a metric are better; empty where that is not known.

    `heroes` are the recipe's, empty for the default ones. The figure of `loss` stands for `val_loss` too.
    """
    better = {hero.metric: hero.better for hero in heroes or DEFAULT_HEROES if hero.better}
    known = better.get(metric) or better.get(metric.removeprefix("val_"))
    return known or ("lower" if "loss" in metric else "")


def evaluated_metric(heroes: Sequence[Hero]) -> str:
    """The metric by which evaluations of a recipe are compared: the first such figure, else the validation loss."""
    return next((hero.metric for hero in heroes if hero.better and hero.metric.startswith("val_")), "val_loss")


def read_heroes(tables: object) -> tuple[Hero, ...]:
    """The figures of a manifest's `[[heroes]]`; raises `HeroError`."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise HeroError("heroes must be a list of [[heroes]] tables.")
    if len(tables) > MOST:
        raise HeroError(f"There are {len(tables)} [[heroes]]; {MOST} have room.")
    heroes = tuple(_hero(number, table) for number, table in enumerate(tables, 1))
    metrics = [hero.metric for hero in heroes]
    twice = next((metric for metric in metrics if metrics.count(metric) > 1), None)
    if twice is not None:
        raise HeroError(f"Two heroes show the metric {twice!r}.")
    return heroes


def _hero(number: int, table: Mapping[str, Any]) -> Hero:
    unknown = next((key for key in table if key not in _KEYS), None)
    if unknown is not None:
        raise HeroError(f"hero {number} has an unknown key {unknown!r}. Choose one of: {', '.join(_KEYS)}.")
    metric = table.get("metric")
    if not isinstance(metric, str) or not _METRIC.fullmatch(metric):
        raise HeroError(f"hero {number} has the metric {metric!r}; it must be the name of a metric.")
    for key in ("label", "unit", "better"):
        if not isinstance(table.get(key, ""), str):
            raise HeroError(f"hero {metric!r}: {key} is {table[key]!r}; it must be text.")
    if table.get("better", "") not in DIRECTIONS:
        raise HeroError(f'hero {metric!r}: better is {table["better"]!r}; it must be "lower", "higher" or "".')
    title = metric.replace("_", " ")
    return Hero(
        metric, table.get("label") or title[:1].upper() + title[1:], table.get("unit", ""), table.get("better", "")
    )

"""Heroes: the five figures that say at a glance how a run of a recipe is doing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.records import RecordError, read_record

MEMORY: Final = "memory"
CHECKPOINT: Final = "checkpoint"
DIRECTIONS: Final = ("", "lower", "higher")
MOST: Final = 5

_METRIC: Final = re.compile(r"[A-Za-z_][\w./@-]{0,63}")


@dataclass(frozen=True, slots=True)
class Hero:
    """One figure.

    Attributes:
        metric: A name that the run's ranks or evaluations report; or "memory", "checkpoint".
        unit: Of its value; empty for none.
        better: "lower", "higher", or empty where neither is better.
    """

    metric: str
    label: str = ""
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
    """The figures of a manifest's `[[heroes]]`; raises `ValueError` with a sentence."""
    if not isinstance(tables, list):
        raise ValueError("heroes must be a list of [[heroes]] tables.")
    if len(tables) > MOST:
        raise ValueError(f"There are {len(tables)} [[heroes]]; {MOST} have room.")
    heroes = tuple(_hero(number, table) for number, table in enumerate(tables, 1))
    metrics = [hero.metric for hero in heroes]
    twice = next((metric for metric in metrics if metrics.count(metric) > 1), None)
    if twice is not None:
        raise ValueError(f"Two heroes show the metric {twice!r}.")
    return heroes


def _hero(number: int, table: object) -> Hero:
    try:
        hero = read_record(Hero, table, strict=True)
    except RecordError as error:
        raise ValueError(f"hero {number}: {error}. Its keys are metric, label, unit and better.") from None
    if not _METRIC.fullmatch(hero.metric):
        raise ValueError(f"hero {number} has the metric {hero.metric!r}; it must be the name of a metric.")
    if hero.better not in DIRECTIONS:
        raise ValueError(f'hero {hero.metric!r}: better is {hero.better!r}; it must be "lower", "higher" or "".')
    title = hero.metric.replace("_", " ")
    return replace(hero, label=hero.label or title[:1].upper() + title[1:])

"""Main metric of a recipe, for lists of runs and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.formatting import number
from core.metrics.curve import MetricCurve, read_curve
from core.recipes.heroes import CHECKPOINT, MEMORY, Hero


@dataclass(frozen=True, slots=True)
class MainMetric:
    """The metric by which runs of a recipe are judged; `names` are its columns, the preferred one first."""

    title: str
    eval_title: str
    names: tuple[str, ...]
    eval_names: tuple[str, ...]
    is_higher_better: bool = False

    def last(self, loss: float | None, curve: MetricCurve) -> float | None:
        """The newest value: of a loss the one in the run's state, which is there before the curve was read."""
        return loss if loss is not None and "loss" in self.names else curve.last

    def best(self, curve: MetricCurve) -> float | None:
        return curve.best_high if self.is_higher_better else curve.best_low

    def text(self, last: float | None, curve: MetricCurve) -> str:
        """ "loss 1.83, best evaluation 1.79"; empty while nothing is known."""
        best = self.best(curve)
        parts = ["" if last is None else f"{self.title} {number(last)}"]
        parts.append("" if best is None else f"best evaluation {number(best)}")
        return ", ".join(part for part in parts if part)

    def read(self, loss: float | None, columns: Path, metrics: Path) -> MetricCurve:
        """Its curve from a run's files, which are not read for a loss that the run's state has."""
        known = loss is not None and "loss" in self.names
        return MetricCurve() if known else read_curve(columns, metrics, self.names, self.eval_names)


LOSS: Final = MainMetric("loss", "validation loss", ("loss",), ("val_loss", "loss"))
# Looked up at most; a look-up reads every manifest, and damaged runs may name any recipe.
MAX_RECIPES: Final = 32


def metric_of(heroes: Sequence[Hero]) -> MainMetric:
    """The main metric of a recipe's first hero, and its evaluations' title."""
    hero = heroes[0]
    title, evals = _inside(hero.label), (f"val_{hero.metric}", hero.metric)
    also = (other for other in heroes if other.metric.startswith("val_") and other.better == hero.better)
    evaluated = next(also, Hero(evals[0], f"validation {title}"))
    names = tuple(dict.fromkeys((evaluated.metric, *evals)))
    return MainMetric(title, _inside(evaluated.label), (hero.metric,), names, hero.better == "higher")


def _inside(label: str) -> str:
    """A label within a sentence."""
    return label[:1].lower() + label[1:]


class MainMetrics:
    """Main metrics by recipe, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[str, MainMetric] = {"": LOSS}

    def of(self, recipe: str) -> MainMetric:
        """The recipe's first hero; the loss where it names none, or is missing."""
        known = self._known.get(recipe)
        if known is None and len(self._known) < MAX_RECIPES:
            known = self._known[recipe] = _looked_up(recipe)
        return known or LOSS


def _looked_up(recipe: str) -> MainMetric:
    from core.recipes.catalog import get_recipe  # here: the window opens without it

    try:
        heroes = get_recipe(recipe).heroes
    except RankdeckError:
        return LOSS
    return metric_of(heroes) if heroes and heroes[0].metric not in (MEMORY, CHECKPOINT) else LOSS

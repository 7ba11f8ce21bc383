"""Main metric of a recipe: what the list of runs shows at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.errors import RankdeckError
from core.formatting import number
from core.metrics.curve import MetricCurve
from core.recipes.heroes import CHECKPOINT, MEMORY, Hero
from core.run_folder.state import RunState


@dataclass(frozen=True, slots=True)
class MainMetric:
    """The metric by which runs of a recipe are judged.

    Attributes:
        title: Within a sentence.
        names: Of its columns, the preferred one first.
        eval_names: Of those of its evaluations.
        is_higher_better: Its best value is the highest.
    """

    title: str
    names: tuple[str, ...]
    eval_names: tuple[str, ...]
    is_higher_better: bool = False

    def last(self, state: RunState | None, curve: MetricCurve) -> float | None:
        """The newest value: for a loss the state's, which is there before the curve was read."""
        if state is not None and state.loss is not None and "loss" in self.names:
            return state.loss
        return curve.last

    def best(self, curve: MetricCurve) -> float | None:
        """The best value of the evaluations."""
        return curve.best_high if self.is_higher_better else curve.best_low

    def text(self, state: RunState | None, curve: MetricCurve) -> str:
        """ "loss 1.83, best evaluation 1.79"; empty while nothing is known."""
        last, best = self.last(state, curve), self.best(curve)
        parts = ["" if last is None else f"{self.title} {number(last)}"]
        parts.append("" if best is None else f"best evaluation {number(best)}")
        return ", ".join(part for part in parts if part)


LOSS: Final = MainMetric("loss", ("loss",), ("val_loss", "loss"))
MAX_RECIPES: Final = 32
"""Looked up at most; a look-up reads every manifest, and damaged runs may name any recipe."""


def metric_of(hero: Hero) -> MainMetric:
    """The main metric that a recipe's first hero names."""
    evals = (f"val_{hero.metric}", hero.metric)
    return MainMetric(hero.label[:1].lower() + hero.label[1:], (hero.metric,), evals, hero.better == "higher")


class MainMetrics:
    """Main metrics by recipe, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[str, MainMetric] = {"": LOSS}

    def of(self, recipe: str) -> MainMetric:
        """The recipe's first hero; the loss where it names none, or is not there any more."""
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
    return metric_of(heroes[0]) if heroes and heroes[0].metric not in (MEMORY, CHECKPOINT) else LOSS

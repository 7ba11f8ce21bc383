"""Stop rules: when a run ends because it is good enough, or has used its time. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from core.config.run_config import RunConfig
from core.config.stop_target import StopTarget, read_stop_target
from core.errors import ConfigError
from core.recipes.heroes import DEFAULT_HEROES, direction, evaluated_metric
from core.recipes.manifest import Recipe


@dataclass(frozen=True, slots=True)
class StopRules:
    """The stop rules of one run.

    Attributes:
        patience: Evaluations without an improvement; None: any number.
        label: The metric's name in a sentence.
        is_higher_better: Higher values of the metric are better.
        target: The value to reach, with its direction.
        in_steps: The target may be among the metrics of steps: a program decides itself what it evaluates.
    """

    patience: int | None = None
    min_delta: float = 1e-3
    metric: str = "val_loss"
    label: str = ""
    is_higher_better: bool = False
    target: StopTarget | None = None
    max_s: float | None = None
    in_steps: bool = False

    @property
    def any(self) -> bool:
        return any(rule is not None for rule in (self.patience, self.target, self.max_s))

    def is_better(self, value: float, other: float) -> bool:
        return value > other if self.is_higher_better else value < other


def stop_rules(config: RunConfig, recipe: Recipe) -> StopRules:
    """Return the rules that a config sets.

    Without a target the evaluations are compared by the recipe's own metric, with one by the target's.

    Raises:
        ConfigError: The direction of the target's metric is not known, or a rule needs evaluations and none are made.
    """
    target = None if config.stop_at is None else _with_direction(read_stop_target(config.stop_at), recipe)
    needs = "early_stop_patience" if config.early_stop_patience is not None else "stop_at" if target else ""
    if needs and config.eval_every is None and not recipe.self_contained:
        raise ConfigError("eval_every", f"{needs} needs evaluations, and none are made.", "Set eval_every.")
    metric = evaluated_metric(recipe.heroes) if target is None else target.metric
    better = direction(recipe.heroes, metric) if target is None else target.better
    return StopRules(
        patience=config.early_stop_patience,
        min_delta=config.early_stop_min_delta,
        metric=metric,
        label=_label(metric, recipe),
        is_higher_better=better == "higher",
        target=target,
        max_s=None if config.max_hours is None else config.max_hours * 3600,
        in_steps=recipe.self_contained,
    )


def _label(metric: str, recipe: Recipe) -> str:
    """Return a name such as "The validation loss"; the metric's own if the recipe has no other."""
    label = next((hero.label for hero in recipe.heroes or DEFAULT_HEROES if hero.metric == metric), "")
    return f"The {label if label[:2].isupper() else label[:1].lower() + label[1:]}" if label else metric


def _with_direction(target: StopTarget, recipe: Recipe) -> StopTarget:
    better = target.better or direction(recipe.heroes, target.metric)
    if not better:
        raise ConfigError(
            "stop_at",
            f"{recipe.title} does not say whether a lower or a higher {target.metric} is better.",
            f"Say it yourself: {target.metric}<={target.value:g} or {target.metric}>={target.value:g}.",
        )
    return StopTarget(target.metric, target.value, better)

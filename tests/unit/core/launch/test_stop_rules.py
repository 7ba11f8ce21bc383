"""Stop rules of a config: which metric counts, in which direction, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import RunConfig
from core.config.stop_target import StopTarget
from core.errors import ConfigError
from core.launch.stop_rules import StopRules, stop_rules
from core.recipes.catalog import get_recipe

pytestmark = pytest.mark.windows


def rules(recipe: str = "minigpt", **fields: Any) -> StopRules:
    return stop_rules(RunConfig(recipe=recipe, **fields), get_recipe(recipe))


def test_a_run_has_none_unless_it_is_told() -> None:
    assert not rules().any
    assert rules(early_stop_patience=3).any and rules(max_hours=2).any


def test_the_recipe_names_metric_and_direction() -> None:
    assert (rules(early_stop_patience=3).metric, rules(early_stop_patience=3).is_higher_better) == ("val_loss", False)
    ppo = rules("clstm_ppo", early_stop_patience=3)
    assert (ppo.metric, ppo.is_higher_better) == ("val_return", True)
    assert ppo.is_better(2.0, 1.0) and not ppo.is_better(1.0, 1.0)


def test_the_targets_metric_is_the_one_that_counts() -> None:
    assert rules(stop_at="val_loss=1.2").target == StopTarget("val_loss", 1.2, "lower")
    assert rules("clstm_ppo", stop_at="val_return=190").target == StopTarget("val_return", 190.0, "higher")
    own = rules(stop_at="val_accuracy>=0.9", early_stop_patience=2)
    assert (own.metric, own.is_higher_better) == ("val_accuracy", True)


def test_units() -> None:
    assert rules(max_hours=1.5).max_s == 5400.0


def test_an_unknown_direction_is_asked_for() -> None:
    with pytest.raises(ConfigError) as caught:
        rules(stop_at="val_speed=3")
    assert caught.value.field == "stop_at" and "val_speed>=3" in caught.value.next_step


@pytest.mark.parametrize("rule", [{"early_stop_patience": 2}, {"stop_at": "val_loss=1"}])
def test_a_rule_without_evaluations_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        rules(eval_every=None, **rule)
    assert caught.value.field == "eval_every"
    assert rules(eval_every=None, max_hours=1).any


def test_a_script_decides_itself_what_it_evaluates() -> None:
    assert rules("script", eval_every=None, stop_at="loss=0.1").in_steps

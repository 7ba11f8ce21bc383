"""Main metric of a recipe."""

from __future__ import annotations

from core.metrics.curve import MetricCurve
from core.recipes.heroes import DEFAULT_HEROES, Hero
from core.recipes.main_metric import LOSS, MAX_RECIPES, MainMetrics, metric_of

CURVE = MetricCurve((3.0, 1.5), 1.5, best_low=1.4, best_high=9.0)
RETURN = metric_of(
    [Hero("episode_return", "Return", better="higher"), Hero("val_return", "Evaluation return", better="higher")]
)


def test_a_recipe_names_it_and_any_other_has_the_loss() -> None:
    metrics = MainMetrics()
    assert metrics.of("clstm_ppo") == RETURN
    assert metrics.of("minigpt") == metrics.of("") == metrics.of("gone") == metrics.of("/home/me/recipe") == LOSS
    assert metric_of(DEFAULT_HEROES) == LOSS
    assert (RETURN.title, RETURN.eval_title) == ("return", "evaluation return")
    assert RETURN.eval_names == ("val_return", "val_episode_return", "episode_return")
    accuracy = metric_of([Hero("accuracy", "Accuracy", better="higher"), Hero("val_loss", "Loss", better="lower")])
    assert (accuracy.eval_title, accuracy.eval_names) == ("validation accuracy", ("val_accuracy", "accuracy"))


def test_a_thousand_made_up_recipes_are_not_looked_up() -> None:
    metrics = MainMetrics()
    for number in range(MAX_RECIPES + 5):
        assert metrics.of(f"recipe {number}") is LOSS
    assert metrics.of("clstm_ppo") is LOSS, "the last ones are not looked up"


def test_the_state_has_a_loss_before_the_curve_was_read() -> None:
    assert LOSS.last(2.0, CURVE) == 2.0
    assert LOSS.last(None, CURVE) == 1.5
    assert RETURN.last(2.0, CURVE) == 1.5, "its loss says little"


def test_the_best_depends_on_the_direction() -> None:
    assert LOSS.text(1.8312, CURVE) == "loss 1.83, best evaluation 1.40"
    assert RETURN.text(RETURN.last(None, CURVE), CURVE) == "return 1.50, best evaluation 9.00"
    assert LOSS.text(None, MetricCurve()) == ""

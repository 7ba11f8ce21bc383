"""The figures of a run's header."""

from __future__ import annotations

from typing import Any

import pytest

from app.run.hero_figures import HeroFigure, ago, hero_figures, heroes_of
from app.run_data.run_series import RunSeries
from core.formatting import UNKNOWN
from core.machine.devices.names import RankNames
from core.recipes.heroes import CHECKPOINT, DEFAULT_HEROES, MEMORY, Hero
from core.run_folder.state import RunState
from tests.helpers.synthetic_run import series_of

GIB = 2**30
LOSS = Hero("loss", "Loss", better="lower")


def steps(name: str, values: list[float], rank: int = 0) -> list[dict[str, Any]]:
    return [{"event": "step", "rank": rank, "step": n + 1, "ts": float(n), name: v} for n, v in enumerate(values)]


def figure(hero: Hero, series: RunSeries, now: float = 0.0, **state: Any) -> HeroFigure:
    values = {"state": "training", "devices": ("GPU-1", "GPU-2")} | state
    names = RankNames(("GPU-1", "GPU-2"), {"GPU-1": "GPU 0 · RTX 6000", "GPU-2": "GPU 1 · RTX 4090"})
    return hero_figures((hero,), series, RunState("r").replace(**values), names, now)[0]


def test_what_is_not_known_is_an_en_dash() -> None:
    for hero in DEFAULT_HEROES:
        assert figure(hero, RunSeries()).value == UNKNOWN


def test_a_metric_of_steps_is_its_last_value_with_its_change() -> None:
    found = figure(LOSS, series_of(*steps("loss", [3.0] * 20 + [2.0] * 20)))
    tip = "Last value. The arrow compares the means of the last 20 steps and of the 20 before."
    assert found == HeroFigure("Loss", "2.00", "↓ 1.0", "better", tip)
    assert figure(LOSS, series_of(*steps("loss", [3.0] * 20 + [2.0] * 19 + [1.5]))).value == "1.50"
    rising = figure(LOSS, series_of(*steps("loss", [2.0] * 20 + [3.0] * 20)))
    assert (rising.note, rising.trend) == ("↑ 1.0", "worse")
    still = figure(LOSS, series_of(*steps("loss", [2.0] * 40)))
    assert (still.note, still.trend) == ("", "")
    chance = figure(LOSS, series_of(*steps("loss", [1.0, 3.0] * 10 + [1.1, 3.0] * 10)))
    assert chance.note == "", "the steps differ by more than the means"


def test_a_direction_that_is_neither_has_no_judgement() -> None:
    found = figure(Hero("kl", "KL"), series_of(*steps("kl", [0.1] * 20 + [0.2] * 20)))
    assert found.note == "↑ 0.10" and found.trend == ""


def test_ranks_are_averaged_and_their_throughput_is_added() -> None:
    series = series_of(*steps("loss", [1.0], 0), *steps("loss", [2.0], 1))
    assert figure(LOSS, series).value == "1.50"
    speed = Hero("tokens_per_s", "Throughput", "tok/s", "higher")
    both = series_of(*steps("tokens_per_s", [100_000.0], 0), *steps("tokens_per_s", [212_000.0], 1))
    assert figure(speed, both, state="finished") == HeroFigure("Throughput", "312 k", "tok/s")
    assert figure(speed, both, tokens_per_s=900.0).value == "312 k", "as the chart says it"


def evaluations(*values: float) -> RunSeries:
    return series_of(
        *({"event": "eval", "step": 50 * n, "ts": float(n), "val_loss": v} for n, v in enumerate(values, 1))
    )


@pytest.mark.parametrize(
    ("values", "value", "note", "trend"),
    [
        ((2.0, 1.9), "1.90", "↓ best at 100", "better"),
        ((1.8, 1.9), "1.90", "best 1.80 at 50", ""),
        ((1.8,), "1.80", "↓ best at 50", ""),
    ],
)
def test_an_evaluation_says_which_was_best(values: tuple[float, ...], value: str, note: str, trend: str) -> None:
    hero = Hero("val_loss", "Validation loss", better="lower")
    assert figure(hero, evaluations(*values)) == HeroFigure("Validation loss", value, note, trend)


def test_ranks_that_evaluate_by_themselves_are_averaged_and_the_best_is_the_best_of_all() -> None:
    lines = [
        {"event": "eval", "rank": rank, "attempt": 1, "step": step, "ts": float(step), "val_loss": loss}
        for step, losses in ((10, (2.0, 1.0)), (20, (1.5, 2.5)))
        for rank, loss in enumerate(losses)
    ]
    shown = figure(Hero("val_loss", "Validation loss", "", "lower"), series_of(*lines))
    assert (shown.value, shown.note) == ("2.00", "best 1.00 at 10")


def test_memory_is_that_of_the_fullest_device() -> None:
    samples = [
        {"event": "device", "uuid": uuid, "ts": float(n)}
        | {"memory_used_bytes": used * GIB, "memory_total_bytes": of * GIB}
        for n, (uuid, used, of) in enumerate([("GPU-1", 31, 48), ("GPU-2", 23, 24), ("GPU-2", 22, 24)])
    ]
    hero = Hero(MEMORY, "Memory")
    live = figure(hero, series_of(*samples))
    assert (live.value, live.note, live.tip) == ("22 / 24 GiB", "GPU 1", "GPU 1 · RTX 4090")
    over = figure(hero, series_of(*samples), state="finished")
    assert (over.value, over.note) == ("23 / 24 GiB", "peak · GPU 1")


def test_a_checkpoint_says_how_old_it_is() -> None:
    series = series_of({"event": "commit", "step": 450, "checkpoint": 2, "ts": 1000.0})
    hero = Hero(CHECKPOINT, "Checkpoint")
    assert figure(hero, series, 1090.0, checkpoint=2).note == "1 min ago"
    assert figure(hero, series, checkpoint=2, state="finished").note == "step 450"
    assert figure(hero, series).value == UNKNOWN


def test_ages_are_said_in_their_largest_unit() -> None:
    assert [ago(s) for s in (3, 45, 60, 3600, 90_000)] == ["now", "40 s ago", "1 min ago", "1 h ago", "1 d ago"]


def test_a_script_shows_what_it_reports_and_no_tokens_that_it_does_not_count() -> None:
    series = series_of(*steps("loss", [1.0]), *steps("reward", [2.0]), *steps("lr", [0.1]))
    shown = heroes_of((), series, is_script=True)
    assert [hero.metric for hero in shown] == ["loss", "reward", "lr", MEMORY]
    assert heroes_of((), series, is_script=False) == DEFAULT_HEROES
    assert heroes_of((LOSS,), series, is_script=False) == (LOSS,)

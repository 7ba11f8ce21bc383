"""Results of trials."""

from __future__ import annotations

from typing import get_args

from core.trials.outcome import OUTCOMES, Outcome
from core.tune.result import Result
from tests.unit.core.tune.made import START, result


def test_every_outcome_has_words_and_some_say_that_memory_is_short() -> None:
    assert set(OUTCOMES) == set(get_args(Outcome))
    short = {outcome for outcome in OUTCOMES if Result(START, outcome).is_short}
    assert short == {"too_large", "out_of_memory", "killed"}


def test_json_has_figures_only_where_something_was_measured() -> None:
    shown = result(START).as_dict()
    assert (shown["batch_size"], shown["samples_per_s"], shown["exchange"], shown["cause"]) == (2, 100.0, "shared", "")
    failed = Result(START, "failed", cause="It cannot.").as_dict()
    assert failed["samples_per_s"] is failed["step_s"] is None and failed["cause"] == "It cannot."

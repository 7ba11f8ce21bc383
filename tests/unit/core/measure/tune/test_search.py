"""The search for a micro-batch, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from core.config.mode import Mode
from core.errors import ConfigError
from core.measure.trial import OUTCOMES, Outcome
from core.measure.tune.tuned import Result, check_tunable, fastest, in_micro_batches, next_trial
from tests.unit.core.measure.tune.made import RUN, failed, result, run, searched


def sizes(start: int, share: int, speeds: dict[int, float]) -> list[int]:
    """The micro-batches tried where these have speeds, and all others are too large."""

    def answer(size: int) -> Result:
        speed = speeds.get(size)
        return failed(size, "too_large") if speed is None else result(size, speed, share)

    return [one.micro_batch for one in searched(start, share, answer)]


def test_the_first_trial_is_the_run_as_it_is() -> None:
    assert next_trial(2, 16, ()) == 2


@pytest.mark.parametrize(
    ("start", "share", "speeds", "expected"),
    [
        (2, 16, {2: 20, 4: 40, 8: 80, 16: 160}, [2, 4, 8, 16]),
        (1, 64, {1: 10, 2: 20, 4: 15, 8: 14}, [1, 2, 4, 8]),  # slower twice ends the doubling
        (1, 64, {1: 10, 2: 20, 4: 15, 8: 30, 16: 20, 32: 19}, [1, 2, 4, 8, 16, 32]),  # slower once by chance does not
        (4, 48, {4: 4, 8: 8, 12: 12}, [4, 8, 16]),  # one that does not fit ends the doubling
        (1, 9, {1: 1, 3: 3, 9: 9}, [1, 3, 9]),  # without doubles the next divisor
        (8, 16, {8: 10, 16: 9, 4: 12, 2: 11}, [8, 16, 4, 2]),  # smaller ones where larger ones are no faster
        (16, 16, {2: 1, 1: 1}, [16, 8, 4, 2, 1]),  # settings that do not fit give way until some do
    ],
)
def test_micro_batches_in_the_order_of_their_trials(
    start: int, share: int, speeds: dict[int, float], expected: list[int]
) -> None:
    assert sizes(start, share, speeds) == expected


def test_a_failure_of_another_kind_ends_the_search() -> None:
    assert len(searched(2, 16, lambda size: failed(size, "failed", "It cannot."))) == 1


def test_a_gain_by_chance_does_not_change_settings() -> None:
    slightly = [result(2, 100.0), result(4, 101.0)]
    assert fastest(slightly) is slightly[0]
    assert fastest([*slightly, result(8, 103.0)]) is not slightly[0]
    assert fastest([]) is None


def test_every_outcome_has_a_text_and_some_mean_short_memory() -> None:
    assert set(OUTCOMES) == set(get_args(Outcome))
    short = {outcome for outcome in OUTCOMES if failed(2, outcome).is_short}
    assert short == {"too_large", "out_of_memory", "killed"}


def test_json_has_figures_only_where_something_was_measured() -> None:
    shown = result(2).as_dict()
    assert (shown["batch_size"], shown["grad_accum_steps"], shown["samples_per_s"], shown["cause"]) == (2, 8, 100.0, "")
    none = failed(2, "failed", "It cannot.").as_dict()
    assert none["samples_per_s"] is none["step_s"] is None and none["cause"] == "It cannot."


def test_the_global_batch_stays() -> None:
    assert in_micro_batches(RUN, 2) is RUN
    tried = in_micro_batches(RUN, 16)
    assert (tried.batch.micro, tried.batch.accumulation, tried.batch.global_) == (16, 1, RUN.batch.global_)


def test_a_script_deepspeed_and_a_compiled_model_cannot_be_tuned() -> None:
    for can in (RUN, run(Mode.FSDP), run(Mode.ZERO, zero_engine="torch")):
        check_tunable(can)
    with pytest.raises(ConfigError, match="script"):
        check_tunable(replace(RUN, recipe=replace(RUN.recipe, self_contained=True)))
    with pytest.raises(ConfigError, match="DeepSpeed"):
        check_tunable(replace(RUN, choice=replace(RUN.choice, engine="deepspeed")))
    compiler = replace(RUN.platform, cxx="/usr/bin/g++")
    with pytest.raises(ConfigError, match="again"):
        check_tunable(replace(RUN, platform=compiler, config=RUN.config.replace(torch_compile=True)))

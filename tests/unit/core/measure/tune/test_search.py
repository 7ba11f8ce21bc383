"""The search, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from core.measure.trial import OUTCOMES, Outcome
from core.measure.tune.choice import Choice
from core.measure.tune.search import Result, fastest, next_trial
from tests.unit.core.measure.tune.made import START, result, searched


def sizes(results: list[Result]) -> list[int]:
    return [one.choice.micro_batch for one in results if one.choice.exchange == "auto" and not one.choice.checkpointing]


def by_size(speeds: dict[int, float]) -> object:
    return lambda choice: result(choice, speeds[choice.micro_batch])


def too_large(choice: Choice) -> Result:
    return Result(choice, "too_large", cause="It needs too much.")


def test_the_first_trial_is_the_run_as_it_is() -> None:
    assert next_trial(START, ()) == START


def test_micro_batches_are_doubled_while_that_helps_and_the_global_batch_stays() -> None:
    results = searched(START, lambda choice: result(choice, 10.0 * choice.micro_batch))
    assert sizes(results) == [2, 4, 8, 16]
    assert {one.choice.micro_batch * one.choice.accumulation for one in results} == {16}


def test_doubling_ends_when_steps_get_slower_twice() -> None:
    wide = Choice(1, 64, "auto")
    speeds = {1: 10.0, 2: 20.0, 4: 15.0, 8: 14.0}
    assert sizes(searched(wide, lambda choice: result(choice, speeds[choice.micro_batch]))) == [1, 2, 4, 8]
    speeds[8] = 30.0  # one that is slower by chance does not end it
    speeds |= {16: 20.0, 32: 19.0}
    assert sizes(searched(wide, lambda choice: result(choice, speeds[choice.micro_batch]))) == [1, 2, 4, 8, 16, 32]


def test_between_what_fits_and_what_does_not_the_gap_is_halved() -> None:
    start = Choice(4, 12, "auto")  # divisors of 48: 4, 6, 8, 12, 16, 24, 48

    def answer(choice: Choice) -> Result:
        return result(choice, choice.micro_batch) if choice.micro_batch <= 12 else too_large(choice)

    assert sizes(searched(start, answer)) == [4, 8, 16, 12]


def test_without_doubles_the_next_divisor_is_tried() -> None:
    start = Choice(1, 9, "auto")
    assert sizes(searched(start, lambda choice: result(choice, choice.micro_batch))) == [1, 3, 9]


def test_smaller_ones_are_tried_where_larger_ones_are_no_faster() -> None:
    speeds = {8: 10.0, 16: 9.0, 4: 12.0, 2: 11.0}
    start = Choice(8, 2, "auto")
    results = searched(start, lambda choice: result(choice, speeds[choice.micro_batch]))
    assert sizes(results) == [8, 16, 4, 2]
    best = fastest(results)
    assert best is not None and best.choice.micro_batch == 4


def test_settings_that_do_not_fit_give_way_to_smaller_ones_until_one_does() -> None:
    def answer(choice: Choice) -> Result:
        return result(choice, 1.0) if choice.micro_batch <= 2 else Result(choice, "out_of_memory")

    assert sizes(searched(Choice(16, 1, "auto"), answer))[:4] == [16, 8, 4, 2]


def test_a_failure_of_another_kind_ends_the_search() -> None:
    assert len(searched(START, lambda choice: Result(choice, "failed", cause="It cannot."))) == 1


def test_the_other_all_reduce_is_tried_with_the_best_micro_batch() -> None:
    def exchanges(came_to: str, own: str = "auto") -> list[str]:
        start = Choice(16, 1, own)
        return [one.choice.exchange for one in searched(start, lambda choice: result(choice, 1.0, came_to))]

    assert exchanges("shared")[-1] == "plain"
    assert exchanges("gloo")[-1] == "shared"
    assert exchanges("shared", "shared")[-1] == "auto"
    assert set(exchanges("nccl")) == {"auto"}
    assert set(exchanges("", "")) == {""}


def test_checkpointing_is_tried_where_memory_ended_the_doubling() -> None:
    def answer(choice: Choice) -> Result:
        fits = choice.micro_batch <= 4 or choice.checkpointing
        return result(choice, 10.0 * choice.micro_batch) if fits else too_large(choice)

    results = searched(START, answer)
    assert [one.choice.micro_batch for one in results if one.choice.checkpointing] == [8, 16]
    plenty = searched(START, lambda choice: result(choice, choice.micro_batch))
    assert not any(one.choice.checkpointing for one in plenty)


def test_checkpointing_that_is_on_is_tried_off_if_need_be_in_smaller_micro_batches() -> None:
    def answer(choice: Choice) -> Result:
        return result(choice) if choice.checkpointing or choice.micro_batch <= 8 else too_large(choice)

    results = searched(Choice(16, 1, "", True), answer)
    assert [one.choice.micro_batch for one in results if not one.choice.checkpointing] == [16, 8]


def test_what_is_faster_by_chance_does_not_change_settings() -> None:
    slightly = [result(START, 100.0), result(START.in_micro_batches(4), 101.0)]
    assert fastest(slightly) is slightly[0]
    assert fastest([*slightly, result(START.in_micro_batches(8), 103.0)]) is not slightly[0]
    assert fastest([]) is None


def test_compiling_is_tried_last_with_the_best_of_the_others() -> None:
    start = replace(START, compiles=False)
    results = searched(start, lambda choice: result(choice, 90.0 + choice.micro_batch + 20 * bool(choice.compiles)))
    assert [bool(one.choice.compiles) for one in results] == [False] * (len(results) - 1) + [True]
    best = fastest(results)
    assert best is results[-1] and best.choice.micro_batch == 16


def test_every_outcome_has_words_and_some_say_that_memory_is_short() -> None:
    assert set(OUTCOMES) == set(get_args(Outcome))
    short = {outcome for outcome in OUTCOMES if Result(START, outcome).is_short}
    assert short == {"too_large", "out_of_memory", "killed"}


def test_json_has_figures_only_where_something_was_measured() -> None:
    shown = result(START).as_dict()
    assert (shown["batch_size"], shown["samples_per_s"], shown["exchange"], shown["cause"]) == (2, 100.0, "shared", "")
    failed = Result(START, "failed", cause="It cannot.").as_dict()
    assert failed["samples_per_s"] is failed["step_s"] is None and failed["cause"] == "It cannot."

"""Results of a benchmark and the rows of its table."""

from __future__ import annotations

import pytest

from core.measure.bench.contenders import Kind
from core.measure.bench.rows import Spread, ratios, rows_of
from tests.unit.core.measure.bench.made import KILLED, MB, SUMS, WEAK, bench, memory, steps


def test_efficiency_is_compared_within_a_turn() -> None:
    first, second = rows_of(bench(Kind.WEAK, WEAK))
    assert (first["efficiency"], first["target"], first["verdict"]) == (1.0, None, None)
    assert second["efficiency"] == pytest.approx(0.1 / 0.11)
    assert second["efficiency_high"] == pytest.approx((0.1 / 0.11 + 0.2 / 0.21) / 2)
    assert second["speedup"] == pytest.approx(2 * second["efficiency"])
    assert (second["target"], second["verdict"], second["exchange"]) == (0.9, "unclear", "shared")


@pytest.mark.parametrize(("step_s", "verdict"), [(0.101, "reached"), (0.2, "missed")])
def test_the_target_is_reached_or_missed(step_s: float, verdict: str) -> None:
    assert rows_of(bench(Kind.WEAK, {0: steps(0.1, 0.1), 1: steps(step_s, step_s)}))[1]["verdict"] == verdict


def test_a_contender_that_failed_keeps_its_row() -> None:
    first, second = rows_of(bench(Kind.STRONG, {0: steps(0.2), 1: [*steps(0.1), KILLED]}))
    assert first["global_batch"] == second["global_batch"] == 8
    assert second["outcome"] == "process killed" and second["efficiency"] == 1.0 and second["turns"] == 1
    alone = rows_of(bench(Kind.STRONG, {0: [KILLED], 1: steps(0.1)}))
    assert alone[0]["samples_per_s"] is None and alone[1]["efficiency"] is None


def test_a_sum_is_over_when_the_last_rank_has_it() -> None:
    shared, gloo = rows_of(bench(Kind.COMM, {0: [SUMS]}))
    assert (gloo["transport"], gloo["size_bytes"], gloo["is_model"], gloo["sums"]) == ("gloo", MB, True, 2)
    assert (gloo["time_s"], gloo["time_s_low"]) == (0.003, 0.0025)
    assert gloo["mb_per_s"] == pytest.approx(MB / 0.003 / 1e6)
    assert gloo["bus_mb_per_s"] == pytest.approx(gloo["mb_per_s"])  # of two devices each sends all of it
    assert (shared["transport"], shared["is_model"]) == ("shared", False)
    assert rows_of(bench(Kind.COMM, {0: [KILLED]})) == [{"kind": "comm", "devices": 2, "outcome": "process killed"}]


def test_memory_is_judged_for_each_rank() -> None:
    flat, leaking = [300 * MB] * 60, [300 * MB + 9000 * step for step in range(60)]
    first, second, third = rows_of(bench(Kind.MEMORY, {0: [memory(flat)], 1: [memory(flat, leaking)]}))
    assert [(row["devices"], row["rank"]) for row in (first, second, third)] == [(1, 0), (2, 0), (2, 1)]
    assert [row["verdict"] for row in (first, second, third)] == ["no growth", "no growth", "grows"]
    assert third["peak_bytes"] == 300 * MB + 9000 * 59 and third["bytes_per_step"] == pytest.approx(9000)
    assert rows_of(bench(Kind.MEMORY, {0: [memory([MB] * 5)]}))[0]["verdict"] is None


def test_accumulation_is_compared_on_the_same_devices() -> None:
    found = bench(Kind.ACCUMULATION, {0: steps(0.4, 0.8), 1: steps(0.2, 0.4), 4: steps(0.3)})
    rows = rows_of(found)
    assert [(row["devices"], row["micro_batch"], row["accumulation"]) for row in rows[:2]] == [(1, 1, 8), (1, 2, 4)]
    assert [row["step_ratio"] for row in rows[:2]] == [2.0, 1.0]
    assert rows[4]["devices"] == 2 and rows[4]["step_ratio"] == 1.0


def test_speeds_are_of_all_devices_together() -> None:
    found = bench(Kind.WEAK, WEAK)
    assert found.measured[0].speeds == pytest.approx([40, 20, 40])
    assert found.measured[1].speeds == pytest.approx([8 / 0.11, 8 / 0.21, 8 / 0.12])
    assert found.measured[1].steps_s == [0.11, 0.21, 0.12]
    assert found.base is found.measured[0] and found.has_figures


def test_without_the_fewest_devices_there_is_nothing_to_compare_with() -> None:
    found = bench(Kind.WEAK, {0: [KILLED], 1: WEAK[1]})
    assert found.base is None and found.has_figures
    assert not bench(Kind.WEAK, {0: [KILLED]}).has_figures


def test_the_middle_and_the_quartiles() -> None:
    assert Spread.of([5, 1, 2, 4, 3]) == Spread(3, 2, 4)
    assert Spread.of([7]) == Spread(7, 7, 7)
    assert Spread.of([]) is None


def test_a_ratio_is_taken_within_a_turn() -> None:
    assert ratios([2.0, 1.0, 3.0], [1.0, 0.5]) == [2.0, 2.0]
    assert ratios([1.0], [0.0]) == []

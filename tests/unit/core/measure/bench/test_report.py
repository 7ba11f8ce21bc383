"""Report of a benchmark: rows, cells and sentences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.cli.bench import show
from core.cli.terminal import Terminal
from core.formatting import short_duration
from core.measure.bench.contenders import Kind
from core.measure.bench.report import Bench, Spread, columns_of, ratios, rows_of, sentences, spread_text
from core.measure.trial import transport_title
from tests.unit.core.measure.bench.made import KILLED, MB, SUMS, WEAK, bench, steps


def cells(made: Bench) -> list[list[str]]:
    return [[column.text(row) for column in columns_of(made.kind)] for row in rows_of(made)]


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


def test_speeds_are_of_all_devices_together() -> None:
    found = bench(Kind.WEAK, WEAK)
    assert found.measured[0].speeds == pytest.approx([40, 20, 40])
    assert found.measured[1].speeds == pytest.approx([8 / 0.11, 8 / 0.21, 8 / 0.12])
    assert found.measured[1].steps_s == [0.11, 0.21, 0.12]


def test_the_middle_and_the_quartiles() -> None:
    assert Spread.of([5, 1, 2, 4, 3]) == Spread(3, 2, 4)
    assert Spread.of([7]) == Spread(7, 7, 7)
    assert Spread.of([]) is None


def test_a_ratio_is_taken_within_a_turn() -> None:
    assert ratios([2.0, 1.0, 3.0], [1.0, 0.5]) == [2.0, 2.0]
    assert ratios([1.0], [0.0]) == []


def test_a_person_reads_medians_with_quartiles() -> None:
    assert [column.title for column in columns_of(Kind.WEAK)] == [
        "Devices", "Mode", "Micro-batch", "Accumulation", "Global batch", "Step", "Samples/s", "Speed-up",
        "Efficiency", "Result",
    ]  # fmt: skip
    first, second = cells(bench(Kind.WEAK, WEAK))
    assert first == ["1", "one device", "4", "1", "4", "100 ms (100 to 150)", "40.0 (30.0 to 40.0)", "1.00 ×",
                     "100 %", "measured"]  # fmt: skip
    assert second[-2:] == ["91 % (87 to 93)", "unclear"]
    assert cells(bench(Kind.COMM, {0: [SUMS]}))[0][:3] == ["2", "shared memory", "4 KiB"]
    assert cells(bench(Kind.COMM, {0: [SUMS]}))[1][1:3] == ["gloo", "1 MiB (model)"]


def test_unmeasured_cells_are_dashes() -> None:
    assert cells(bench(Kind.STRONG, {0: steps(0.25), 1: [KILLED]}))[1][5:] == ["–", "–", "–", "–", "process killed"]
    assert cells(bench(Kind.COMM, {0: [KILLED]})) == [["2", "–", "–", "–", "–", "–", "–", "process killed"]]


def test_units_stand_once() -> None:
    assert spread_text(0.0278, 0.0247, 0.0309, short_duration) == "27.8 ms (24.7 to 30.9)"
    assert spread_text(1.2, 0.9, 1.3, short_duration) == "1.20 s (900 ms to 1.30 s)"
    assert spread_text(0.9, 0.9, 0.9, short_duration) == "900 ms"
    assert (transport_title("shared"), transport_title("nccl"), transport_title("gloo")) == (
        "shared memory",
        "NCCL",
        "gloo",
    )


def test_sentences_name_the_target_and_compare_sums() -> None:
    assert sentences(bench(Kind.WEAK, WEAK)) == [
        "2 devices: 91 % (87 to 93) of the ideal speed; the target of 90 % is within the spread."
    ]
    missed = bench(Kind.STRONG, {0: steps(0.1), 1: steps(0.09)})
    assert sentences(missed) == ["2 devices: 56 % of the ideal speed; the target of 80 % is missed."]
    assert sentences(bench(Kind.COMM, {0: [SUMS]})) == ["The model's gradients (1 MiB) on 2 devices: gloo 3.00 ms."]


def test_sentences_name_failures_and_a_stop() -> None:
    found = sentences(replace(bench(Kind.WEAK, {0: steps(0.1), 1: [KILLED]}), is_stopped=True))
    assert found[0] == ("2 devices, micro-batch 4 × 1: process killed. The process of rank 1 killed (SIGKILL).")
    assert found[1].startswith("Stopped early")


def test_figures_are_written_to_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for as_json in (False, True):
        show(Terminal(), bench(Kind.WEAK, WEAK), tmp_path, as_json=as_json)
        printed = capsys.readouterr().out
    written = json.loads((tmp_path / "bench-weak.json").read_text(encoding="utf-8"))
    assert written == json.loads(printed) and written["rows"][1]["target"] == 0.9

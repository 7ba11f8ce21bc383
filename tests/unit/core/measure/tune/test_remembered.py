"""What tuning found is kept by model shape and devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.config.mode import Mode
from core.measure.tune.remembered import FILE, EarlierTuning, earlier_tuning, remember
from core.measure.tune.tuned import Comparison, Tuned
from tests.unit.core.measure.tune.made import RUN, START, result, run

MINE = RUN
BETTER = result(replace(START.in_micro_batches(16), checkpointing=True), 150.0)
FOUND = Tuned(MINE, (result(START), BETTER), Comparison((1.5, 1.5, 1.5)))


def test_what_was_found_is_offered_to_the_next_run_of_this_kind(tmp_path: Path) -> None:
    file = tmp_path / "runs" / FILE
    assert earlier_tuning(file, MINE) is None
    remember(file, FOUND, now=1000.0)
    kept = earlier_tuning(file, MINE)
    assert kept is not None and kept.changes == FOUND.changes and kept.when == 1000.0
    assert kept.text(1000.0).startswith(
        "Tuned before: micro-batch 16, accumulation 1, gradient checkpointing on (1.50 ×"
    )
    tuned = BETTER.choice.applied(MINE)
    has_it = earlier_tuning(file, tuned)
    assert has_it is not None and has_it.changes == {}
    assert "were the fastest" in has_it.text(1000.0)
    for other in (run(seq_len=64), run(Mode.FSDP), run(precision="bf16")):
        assert earlier_tuning(file, other) is None
    fewer = replace(MINE, devices=MINE.devices[:1])
    assert earlier_tuning(file, fewer) is None


def test_another_global_batch_gets_the_nearest_micro_batch(tmp_path: Path) -> None:
    remember(tmp_path / FILE, FOUND)
    smaller = earlier_tuning(tmp_path / FILE, run(global_batch_size=24))
    assert smaller is not None and smaller.changes["batch_size"] == 12


def test_settings_that_are_best_are_kept_too_and_uncertain_ones_are_not(tmp_path: Path) -> None:
    remember(tmp_path / FILE, replace(FOUND, comparison=None, is_stopped=True))
    assert not (tmp_path / FILE).exists()
    remember(tmp_path / FILE, replace(FOUND, comparison=Comparison((0.9, 0.9))), now=5.0)
    assert earlier_tuning(tmp_path / FILE, MINE) == EarlierTuning({}, 1.0, 5.0)


def test_a_file_that_cannot_be_read_or_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{", encoding="utf-8")
    assert earlier_tuning(tmp_path / FILE, MINE) is None
    (tmp_path / "file").write_text("", encoding="utf-8")
    remember(tmp_path / "file" / FILE, FOUND)
    remember(tmp_path / FILE, FOUND)
    assert earlier_tuning(tmp_path / FILE, MINE) is not None

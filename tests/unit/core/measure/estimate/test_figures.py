"""Figures of a model, and what follows from them."""

from __future__ import annotations

from core.measure.estimate.figures import USUAL_GAPS, Baselines
from tests.unit.core.measure.estimate.made import FIGURES, MB, figures


def test_the_highest_line_is_the_peak() -> None:
    assert FIGURES.pass_bytes(1, adds=False) == 102 * MB  # all gradients, at the end of the backward pass
    assert FIGURES.pass_bytes(4, adds=False) == 160 * MB  # all activations, at its beginning
    assert FIGURES.pass_bytes(1, adds=True) == 40 * MB
    assert figures(step_lines=None).pass_bytes(4, adds=False) == 0
    assert not figures(step_lines=None).is_measured


def test_gaps_are_measured_and_bounded() -> None:
    assert FIGURES.gap_bytes(40 * MB, 900 * MB) == 0
    assert figures(pass_gap_bytes=15 * MB).gap_bytes(40 * MB, 900 * MB) == 6 * MB  # 15 of 100 MB of a pass
    assert figures(pass_gap_bytes=900 * MB).gap_bytes(40 * MB, 900 * MB) == 80 * MB
    assert figures(pass_peak_bytes=0).gap_bytes(40 * MB, 900 * MB) == USUAL_GAPS * 900 * MB


def test_whole_tensors_are_dealt_out_as_pytorch_does() -> None:
    assert FIGURES.optimizer_share(1) == 200 * MB
    assert FIGURES.optimizer_share(2) == 120 * MB  # 60 | 30 + 10
    assert FIGURES.optimizer_share(4) == 120 * MB


def test_an_engine_that_was_not_measured_counts_as_the_largest() -> None:
    assert Baselines({"single": 5, "ddp": 7}).of("single") == 5
    assert Baselines({"single": 5, "ddp": 7}).of("deepspeed") == 7
    assert Baselines().of("single") == 0

"""Predictions that a run keeps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from core.host.watches.predictions import Predictions
from core.measure.estimate.probe import baselines_name, keep
from core.measure.estimate.shape import model_shape
from tests.unit.core.measure.estimate.made import BASELINES, RUN, figures


@pytest.mark.parametrize(
    "note", ["", "The allocator's gaps are unknown, because the probe did not finish within 120 s."]
)
def test_figures_of_a_probe_that_was_cut_predict_nothing(tmp_path: Path, note: str) -> None:
    keep(model_shape(RUN), asdict(figures(note=note)))
    keep(baselines_name(RUN.platform), asdict(BASELINES))
    with ThreadPoolExecutor(1) as disk:
        found = Predictions(tmp_path, disk).predict(RUN)
    assert (found["predicted_bytes"] is None) == bool(note)

"""Time of a draft: nothing is timed while a run trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.draft.estimate_controller import WHILE_TRAINING, find_draft_time
from core.measure.ranks import CancelledError
from tests.unit.core.measure.estimate.made import FIGURES, RUN


def test_no_step_is_timed_while_a_run_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path))
    found = find_draft_time(RUN, FIGURES, is_training=True, cancelled=lambda: True)
    assert (found.note, dict(found.steps)) == (WHILE_TRAINING, {})
    with pytest.raises(CancelledError):
        find_draft_time(RUN, FIGURES, is_training=False, cancelled=lambda: True)

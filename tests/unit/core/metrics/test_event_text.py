"""Events as lines of the log."""

from __future__ import annotations

from typing import Any

import pytest

from core.machine.devices.names import RankNames
from core.metrics.event_text import event_level, event_text

pytestmark = pytest.mark.windows
NAMES = RankNames(("GPU-1", "cpu:0"), {"GPU-1": "GPU 0 · RTX 4090"})


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"event": "launch", "mode": "single", "devices": ["cpu:0"]}, "Starting on CPU 0."),
        (
            {"event": "launch", "mode": "ddp", "devices": ["GPU-1", "cpu:0"], "checkpoint": 2, "resumed_from": 610},
            "Resuming from checkpoint 2, step 610 on GPU 0 and CPU 0 (DDP).",
        ),
        ({"event": "data", "tokens": 4844, "rows": 98, "reused": False}, "Data: 4,844 tokens in 98 rows."),
        (
            {"event": "data", "text": "CSV: 2 documents, 9 tokens.", "tokens": 9, "reused": True},
            "Data: CSV: 2 documents, 9 tokens. The tokens were cached.",
        ),
        (
            {"event": "data", "tokens": 5, "rows": 2, "reused": True, "bad_rows": 3},
            "Data: 5 tokens in 2 rows (cached). 3 bad rows are left out.",
        ),
        ({"event": "model", "parameters": 238976, "trainable": 238976}, "The model has 238,976 parameters."),
        ({"event": "eval", "step": 20, "val_loss": 4.58884}, "Step 20: validation loss 4.589."),
        (
            {"event": "commit", "step": 25, "checkpoint": 1, "bytes": 2_905_291},
            "Step 25: checkpoint 1 saved (2.91 MB).",
        ),
        (
            {"event": "commit", "step": 25, "checkpoint": 1, "diverged": [0]},
            "Step 25: checkpoint 1 saved. Its weights are not finite.",
        ),
        ({"event": "stop_requested", "now": False, "by": "client"}, "Stop requested."),
        (
            {
                "event": "alert",
                "kind": "hang",
                "ranks": [1],
                "certain": True,
                "places": {"0": "A.", "1": "B."},
                "title": "CPU 1 holds up the other devices",
                "cause": "A. B.",
                "next_step": "Press Stop twice.",
            },
            "CPU 1 holds up the other devices. A. B. Press Stop twice.",
        ),
        (
            {"event": "alert", "kind": "straggler", "title": "CPU 1 is slow", "reason": "slower", "cause": "A."},
            "CPU 1 is slow. A.",
        ),
        ({"event": "finished", "state": "stopped", "step": 610}, "Stopped at step 610."),
        ({"event": "finished", "state": "finished", "step": 1000}, "Finished at step 1,000."),
        ({"event": "restart", "number": 1, "of": 3, "cause": "It died"}, "Restart 1 of 3. It died"),
        (
            {"event": "failed", "title": "CPU 0: out of memory", "cause": "It was killed", "next_step": "Use less."},
            "CPU 0: out of memory. It was killed. Use less.",
        ),
        (
            {"event": "sample_left_out", "step": 3, "text": "No text is sampled at step 3."},
            "No text is sampled at step 3.",
        ),
        ({"event": "retry", "reason": "Rank 1 died."}, "Rank 1 died. Retrying."),
        (
            {"event": "fallback", "reason": "Rank 1 died.", "mode": "independent", "was": "ddp"},
            "DDP could not start, so each device trains its own model, and the best one is kept. Rank 1 died.",
        ),
        ({"event": "balance", "step": 3, "text": "12 and 4 samples"}, "Step 3: 12 and 4 samples."),
        ({"event": "straggler", "step": 3, "ranks": [1], "text": "An alert says it."}, ""),
        ({"event": "straggler", "step": 3, "ranks": [], "text": "It is over."}, "Step 3: It is over."),
        ({"event": "sample", "step": 3, "text": "once upon"}, ""),
        ({"event": "chunk_complete", "step": 3}, ""),
    ],
)
def test_an_event_in_one_line(event: dict[str, Any], text: str) -> None:
    assert event_text(event, NAMES) == text


def test_failures_and_warnings_have_their_level() -> None:
    levels = [event_level({"event": kind}) for kind in ("failed", "alert", "restart", "commit")]
    assert levels == ["error", "warning", "warning", "info"]
    assert event_level({"event": "commit", "diverged": [1]}) == "warning"


def test_events_without_their_fields_do_not_break_the_log() -> None:
    for kind in ("launch", "resumed", "data", "model", "eval", "commit", "merge", "restart", "finished", "balance"):
        assert isinstance(event_text({"event": kind}, NAMES), str)

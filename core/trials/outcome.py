"""Outcomes of trials: measured, or why there are no figures."""

from __future__ import annotations

from typing import Final, Literal

Outcome = Literal["measured", "too_large", "out_of_memory", "killed", "timed_out", "failed"]

OUTCOMES: Final[dict[Outcome, str]] = {
    "measured": "measured",
    "too_large": "not tried",
    "out_of_memory": "out of memory",
    "killed": "process killed",
    "timed_out": "timed out",
    "failed": "failed",
}
"""What a person reads."""

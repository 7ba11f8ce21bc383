"""Texts of the page that checks this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.doctor.finding import DEVICES, FOLDERS, MACHINE, MODES, SELF_TESTS, SOFTWARE, Finding, Fix, Level

# In their order on the page: verdicts first, and what a person can start beside them.
GROUPS: Final = (MODES, SELF_TESTS, DEVICES, SOFTWARE, MACHINE, FOLDERS)
SELF_TESTS_IDLE: Final = (
    "Self-tests try what the checks below only look at: each device computes in fp32, bf16 and fp16, two processes "
    "exchange tensors over gloo, shared memory and NCCL, and the model of New run is measured. They take about half a "
    "minute and use the devices; a run that trains meanwhile gets slower."
)
CHECKING: Final = "Checking this machine…"
_WINDOWS: Final = "Open Windows settings"
# What the button of each fix says.
FIXES: Final[dict[Fix, str]] = {
    "install_cuda": "Install GPU build…",
    "install_deepspeed": "Install DeepSpeed…",
    "copy_command": "Copy command",
    "create_runs_folder": "Create folder",
    "choose_runs_folder": "Choose folder…",
    "end_leftovers": "End processes",
    "open_page_file": _WINDOWS,
    "open_long_paths": _WINDOWS,
    "open_sleep": _WINDOWS,
    "open_firewall": _WINDOWS,
    "open_storage": _WINDOWS,
}


@dataclass(frozen=True, slots=True)
class Shown:
    """How a level is shown.

    Attributes:
        word: For screen readers, and where there is no colour.
        sign: An icon's name.
        tone: Of the icon.
    """

    word: str
    sign: str
    tone: str


LEVELS: Final[dict[Level, Shown]] = {
    "ok": Shown("works", "state-finished", "success"),
    "warn": Shown("limited", "warning", "warning"),
    "fail": Shown("failed", "error", "error"),
    "not_tried": Shown("not tried", "state-idle", "muted"),
}


def spoken_text(finding: Finding) -> str:
    """All of a line, for screen readers."""
    parts = (f"{finding.name}: {LEVELS[finding.level].word}. {finding.text}", finding.topic.meaning, finding.next_step)
    return " ".join(part if part.endswith((".", "?", "…")) else f"{part}." for part in parts if part)


def worst(findings: Sequence[Finding]) -> str:
    """The tone of the worst finding of a group, for the edge of its card; empty where all is well."""
    levels = {finding.level for finding in findings}
    return "error" if "fail" in levels else "warning" if "warn" in levels else ""

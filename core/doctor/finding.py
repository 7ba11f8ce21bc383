"""`Finding`: the result of one check, with its meaning and next step; `Problem`: one cause of several findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from core.errors import RankdeckError
from core.formatting import listed

Level = Literal["ok", "warn", "fail", "not_tried"]
# What the window can do about a problem; empty: nothing.
Fix = Literal[
    "", "install_cuda", "install_deepspeed", "copy_command", "create_runs_folder", "choose_runs_folder",
    "end_leftovers",
]  # fmt: skip
MODES: Final = "Modes"
SOFTWARE: Final = "Software"
DEVICES: Final = "Devices"
MACHINE: Final = "This machine"
FOLDERS: Final = "Folders"
SELF_TESTS: Final = "Self-tests"
# In the order in which they are shown.
GROUPS: Final = (MODES, DEVICES, SOFTWARE, MACHINE, FOLDERS, SELF_TESTS)


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject of a check.

    Attributes:
        id: For programs.
        group: One of `GROUPS`.
        meaning: Why it matters, as a sentence.
    """

    id: str
    name: str
    group: str
    meaning: str

    def ok(self, text: str) -> Finding:
        return Finding(self, "ok", text)

    def warn(self, text: str, next_step: str, fix: Fix = "", command: str = "", *, cause: str = "") -> Finding:
        """It works, but less well than it could; or some runs cannot be started."""
        return Finding(self, "warn", text, next_step, fix, command, cause)

    def fail(self, text: str, next_step: str, fix: Fix = "", command: str = "", *, cause: str = "") -> Finding:
        return Finding(self, "fail", text, next_step, fix, command, cause)

    def not_tried(self, text: str, next_step: str = "", fix: Fix = "") -> Finding:
        return Finding(self, "not_tried", text, next_step, fix)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        level: ``ok``, ``warn`` (degraded), ``fail``, or ``not_tried``.
        next_step: Empty where there is no problem.
        fix: The window's remedy.
        command: For `fix` ``copy_command``.
        cause: The title of a problem that other findings share; empty: the finding is its own.
    """

    topic: Topic
    level: Level
    text: str
    next_step: str = ""
    fix: Fix = ""
    command: str = ""
    cause: str = ""

    @property
    def name(self) -> str:
        return self.topic.name

    @property
    def stops_runs(self) -> bool:
        """No run can start. One mode that does not work leaves the others."""
        return self.level == "fail" and self.topic.group != MODES

    def as_dict(self) -> dict[str, str]:
        topic = self.topic
        return {
            "id": topic.id,
            "name": topic.name,
            "group": topic.group,
            "level": self.level,
            "text": self.text,
            "meaning": topic.meaning,
            "next_step": self.next_step,
            "fix": self.fix,
            "command": self.command,
            "cause": self.cause,
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """One cause, and the findings that share it; the first one has the next step."""

    title: str
    findings: tuple[Finding, ...]

    @property
    def is_shared(self) -> bool:
        return len(self.findings) > 1

    @property
    def level(self) -> Level:
        """The level of the worst finding."""
        return "fail" if any(finding.level == "fail" for finding in self.findings) else "warn"

    @property
    def affects(self) -> str:
        """The affected checks besides its own: "DDP and ZeRO 1"."""
        return listed([finding.name for finding in self.findings[1:] or self.findings])


def find_problems(findings: Sequence[Finding]) -> tuple[Problem, ...]:
    """Group findings by their cause; those that stop runs come first."""
    by_cause: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.level in ("warn", "fail"):
            by_cause.setdefault(finding.cause or finding.name, []).append(finding)
    problems = [
        # A mode suffers; what is checked beside it is what has to be mended.
        Problem(title, tuple(sorted(found, key=lambda one: (one.topic.group == MODES, not one.next_step))))
        for title, found in by_cause.items()
    ]
    return tuple(sorted(problems, key=lambda problem: problem.level != "fail"))


def problems_text(findings: Sequence[Finding]) -> str:
    """Summarise all checks: "1 problem: PyTorch cannot use your GPUs"."""
    problems = find_problems(findings)
    if problems:
        count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        return f"{count}: {' · '.join(problem.title for problem in problems)}"
    good = sum(finding.level == "ok" for finding in findings)
    left = len(findings) - good
    return f"No problems: {good} checks passed" + (f", {left} not tried" if left else "")


def merged(findings: Sequence[Finding], newer: Sequence[Finding]) -> list[Finding]:
    """Replace findings by newer ones on the same topic, and append the others."""
    return list({finding.topic.id: finding for finding in (*findings, *newer)}.values())


def answered(topic: Topic, check: Callable[[], Finding]) -> Finding:
    """Run a check; an error of its own is a finding too, and the others continue."""
    try:
        return check()
    except RankdeckError as error:
        return topic.warn(error.cause, error.next_step)
    except (OSError, RuntimeError, ValueError) as error:
        return topic.warn(f"could not be checked ({error})", "The other checks are valid.")

"""Texts on updates: what the last check found, and why an update cannot be installed from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.formatting import byte_size, day_time
from core.updates.announcement import Announcement, is_newer

CHECK_EVERY_S: Final = 20 * 3600.0
"""About once a day, whenever the window is opened."""
NOT_INSTALLED: Final = "This Rankdeck was not installed by its setup. Update it as you installed it, with git or pip."
NO_SETUP: Final = "The announcement names no setup. Get it where you got this one."


@dataclass(frozen=True, slots=True)
class UpdateCheck:
    """The last check.

    Attributes:
        checked: Unix seconds; 0: there was none.
        release: The newest version; empty if the check failed.
        problem: Why it failed; empty if it did not.
    """

    checked: float = 0.0
    release: str = ""
    problem: str = ""

    def is_due(self, now: float) -> bool:
        """Whether to ask the server again; also where the clock has been set back."""
        return not 0 <= now - self.checked < CHECK_EVERY_S

    def as_kept(self) -> dict[str, Any]:
        """As settings keep it."""
        return asdict(self)


NO_CHECK: Final = UpdateCheck()


def check_from(kept: Mapping[str, Any]) -> UpdateCheck:
    """What `as_kept` gave; no check where that is damaged."""
    checked, release, problem = (kept.get(name) for name in ("checked", "release", "problem"))
    if isinstance(checked, int | float) and isinstance(release, str) and isinstance(problem, str):
        return UpdateCheck(float(checked), release, problem)
    return NO_CHECK


def check_text(check: UpdateCheck, version: str, now: float, has_address: bool) -> str:
    """A line for Settings: when it was checked, and with which result."""
    if not has_address:
        return "Nothing is checked while this is empty. A check sends one request for this address and nothing else."
    if not check.checked:
        return "Not checked yet. A check sends one request for this address and nothing else."
    when = day_time(check.checked, now)
    if check.problem:
        return f"Checked {when}. {check.problem}"
    if is_newer(check.release, version):
        return f"Checked {when}. Rankdeck {check.release} is available."
    return f"Checked {when}. Rankdeck {version} is the newest version."


def size_text(announcement: Announcement, version: str) -> str:
    """What is there and what will be downloaded: "You have 0.1.0. The setup has 68 MB."."""
    size = f" The setup has {byte_size(announcement.setup.bytes)}." if announcement.setup is not None else ""
    return f"You have {version}.{size}"


def why_not_here(announcement: Announcement, is_installed: bool) -> str:
    """Why it cannot be installed from here; empty where it can."""
    if not is_installed:
        return NOT_INSTALLED
    return NO_SETUP if announcement.setup is None else ""

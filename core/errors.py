"""Errors that a person can meet, each with a title, a sentence of cause and a next step.

The tree is shallow on purpose: errors differ in their exit code (``docs/errors-and-exit-codes.md``) and their text.
Code that can name a next step raises one of these; anything else that escapes is a defect.
"""

from __future__ import annotations

from typing import ClassVar, Final

_ENDS: Final = (".", "!", "?", ":", "…")
_CLOSING: Final = "”\"'’)»"


def full_stop(text: str) -> str:
    """End a sentence with its stop, which texts of libraries and scripts often lack."""
    text = text.strip()
    return text if not text or text.rstrip(_CLOSING).endswith(_ENDS) else f"{text}."


def sentences(*parts: str | None) -> str:
    """Join the parts of a message, such as cause and next step, with a stop between them; empty ones are left out.

    The last part ends as it was given: a next step may end in a command to copy.
    """
    given = [part.strip() for part in parts if part and part.strip()]
    return " ".join([*map(full_stop, given[:-1]), *given[-1:]])


class RankdeckError(Exception):
    """A failure that a person can act on.

    Args:
        cause: One sentence: what is wrong, with the values concerned.
        next_step: One sentence: what the person can do now.
        title: A few words; the class has a default.
        option: The command-line option that does the next step. The window has a field for it and leaves it out.

    Attributes:
        next_step: For the command line, `option` included: "Choose another folder: --run-dir PATH".
        window_step: For the window, without it.
    """

    title: str = "The run failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, cause: str, next_step: str, *, title: str | None = None, option: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.window_step = next_step
        self.next_step = f"{next_step.rstrip('.')}: {option}" if option else next_step
        if title is not None:
            self.title = title

    def as_dict(self) -> dict[str, str]:
        """The three parts, as `state.json` and the window carry them; `window_step` where it differs."""
        parts = {"title": self.title, "cause": self.cause, "next_step": self.next_step}
        return parts if self.window_step == self.next_step else {**parts, "window_step": self.window_step}

    def __str__(self) -> str:
        return f"{self.title}: {sentences(self.cause, self.next_step)}"


class UsageError(RankdeckError):
    """Bad arguments, config or state file: nothing was started, nothing was changed (exit code 2)."""

    title = "Invalid request"
    exit_code: ClassVar[int] = 2


class ConfigError(UsageError):
    """A config field holds a value that cannot be used.

    Args:
        field: The field's name, so that a form can mark the place. The others are those of `RankdeckError`.
        allows: A switch among the recipe's fields that lets it through, for a button that turns it on.
    """

    title = "Invalid setting"

    def __init__(
        self, field: str, cause: str, next_step: str, *, title: str | None = None, option: str = "", allows: str = ""
    ) -> None:
        super().__init__(cause, next_step, title=title, option=option)
        self.field = field
        self.allows = allows


class PeerLostError(RankdeckError):
    """A rank cannot continue because another one exited: a secondary failure, never the root cause."""

    title = "Another process ended"


class DatasetError(UsageError):
    """The dataset cannot be read, is empty, too small, or is not the one this run was started with."""

    title = "The dataset cannot be used"


class NonFiniteError(RankdeckError):
    """A loss or gradient is not finite, and its batch may not be skipped."""

    title = "The loss is not finite"


class MemoryShortError(RankdeckError):
    """A rank ran out of memory in a step that it cannot do again by itself."""

    title = "The device ran out of memory"


class StateFileError(UsageError):
    """A `chunk_tracker_state.json`, `run.toml`, `state.json` or manifest cannot be understood."""

    title = "The state file cannot be used"


class FileInUseError(StateFileError):
    """Another program holds the file open for too long; nothing is known of its contents."""

    title = "A file is in use"


class ChunkSizeError(StateFileError):
    """A state file doesn't fit the dataset's chunks: another chunk size may have been used when it was written."""


class NewerVersionError(StateFileError):
    """A file was written by a newer Rankdeck: guessing at its meaning could lose work."""

    title = "The file is from a newer Rankdeck"


class RunNotFoundError(UsageError):
    """No run goes by that name, id or path."""

    title = "There is no such run"


class RunBusyError(UsageError):
    """The run is live already: a second host must not touch its folder."""

    title = "The run is already running"


class PreflightError(RankdeckError):
    """The machine is not ready: disk, permission, torch build, device (exit code 3)."""

    title = "This machine cannot start the run"
    exit_code: ClassVar[int] = 3


class ConnectionRefusedByHostError(RankdeckError):
    """The run host refused the connection: wrong token, wrong protocol, or not a host."""

    title = "The run's host is not responding"


class ProtocolError(RankdeckError):
    """A line on the socket is not a message: not JSON, unknown type, wrong field, too long."""

    title = "Invalid message"

    def __init__(self, cause: str) -> None:
        super().__init__(cause, "Use the same version of Rankdeck on both ends.")

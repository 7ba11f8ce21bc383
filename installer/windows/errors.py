"""`BuildError`: why the installer could not be built."""

from __future__ import annotations


class BuildError(Exception):
    """The installer cannot be built.

    Args:
        cause: One sentence.
        next_step: One sentence.
    """

    def __init__(self, cause: str, next_step: str) -> None:
        super().__init__(f"{cause}\n{next_step}")
        self.cause = cause
        self.next_step = next_step

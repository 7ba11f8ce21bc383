"""What cannot be trained as asked, in words. Known without torch, so that it can be said before a rank is started."""

from __future__ import annotations

PRICES: str = "The price file cannot be used"


class RefusalError(Exception):
    """A setting, an environment or a price file that cannot be used.

    Args:
        field: The setting's name.
        cause: One sentence: what is wrong.
        next_step: One sentence: what the person can do.
        title: A few words; empty: the usual ones.
    """

    def __init__(self, field: str, cause: str, next_step: str, *, title: str = "") -> None:
        super().__init__(cause)
        self.field = field
        self.cause = cause
        self.next_step = next_step
        self.title = title

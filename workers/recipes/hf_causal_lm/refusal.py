"""What cannot be trained as asked, in words. Known without torch, so that it can be said before a rank is started."""

from __future__ import annotations


class RefusalError(Exception):
    """A setting, a model or a tokenizer that cannot be used.

    Args:
        field: The setting's name.
        cause: One sentence: what is wrong.
        next_step: One sentence: what the person can do.
        title: A few words; empty: the usual ones.
        missing: Packages that would have to be installed, by the names they are imported by.
    """

    def __init__(
        self, field: str, cause: str, next_step: str, *, title: str = "", missing: tuple[str, ...] = ()
    ) -> None:
        super().__init__(cause)
        self.field = field
        self.cause = cause
        self.next_step = next_step
        self.title = title
        self.missing = missing

"""Newest answer: asks questions in the background; only the answer to the newest one counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from PySide6.QtCore import QObject, QTimer

from app.threads.background import Operation, OperationRunner
from core.errors import RankdeckError

T = TypeVar("T")
# After the last key: even the quickest answer is a process of a few tenths of a second.
ASK_AFTER_MS: Final = 300
KEPT: Final = 32


class NewestAnswer(QObject, Generic[T]):
    """One question at a time, asked after the last edit and while its answer is in sight; going back costs nothing.

    Args:
        runner: Carries the questions out.
        on_answer: Gets the answer about the newest question, as soon as there is one.
        on_error: The answer that an error is.
        is_kept: Whether an answer counts; it is asked for again otherwise.
        kept: How many answers are kept: one where they change by themselves.
        after_ms: How long a question stays the newest before it is asked.
        is_watched: Whether it is in sight from the beginning (`set_watched`).
    """

    def __init__(
        self,
        runner: OperationRunner,
        on_answer: Callable[[T], None],
        on_error: Callable[[RankdeckError], T],
        parent: QObject | None = None,
        *,
        is_kept: Callable[[T], bool] = lambda _answer: True,
        kept: int = KEPT,
        after_ms: int = ASK_AFTER_MS,
        is_watched: bool = False,
    ) -> None:
        super().__init__(parent)
        self._runner, self._on_answer, self._on_error, self._is_kept = runner, on_answer, on_error, is_kept
        self._kept = kept
        self._answers: dict[str, T] = {}
        self._key = self._asked = ""
        self._work: Callable[[], T] | None = None
        self._later = QTimer(self, singleShot=True, interval=after_ms)
        self._later.timeout.connect(self._ask)
        self.is_watched = is_watched

    @property
    def is_asking(self) -> bool:
        return bool(self._asked) or self._later.isActive()

    @property
    def answer(self) -> T | None:
        return self._answers.get(self._key)

    def is_newest(self, key: str) -> bool:
        """True while the answer to a question is waited for; any thread may ask."""
        return self.is_watched and self._key == key

    def close(self) -> None:
        self._later.stop()
        self.is_watched = False

    def set_watched(self, watched: bool) -> None:
        """Tells whether the answer is in sight: if not, no process is started for it."""
        self.is_watched = watched
        if watched:
            self._show()

    def forget(self) -> None:
        self._answers.clear()

    def ask_again(self) -> None:
        """Drops all answers, and asks the newest question once more."""
        self.forget()
        self._show()

    def ask(self, key: str, work: Callable[[], T] | None) -> None:
        """Takes over the newest question.

        Args:
            key: Everything that its answer depends on.
            work: Finds the answer, in a worker thread; None: there is nothing to ask.
        """
        self._key, self._work = key, work
        self._show()

    def _show(self) -> None:
        if self._key in self._answers:
            self._on_answer(self._answers[self._key])
        elif self._work is not None and self.is_watched:
            self._later.start()

    def _ask(self) -> None:
        """Begins, unless a question is under way: the newest is asked after that."""
        key, work = self._key, self._work
        if work is None or self._asked or key in self._answers or not self.is_watched:
            return
        self._asked = key

        def answered(answer: T) -> None:
            self._asked = ""
            while len(self._answers) >= self._kept:
                del self._answers[next(iter(self._answers))]
            if self._is_kept(answer):
                self._answers[key] = answer
            self._show()

        self._runner.run(Operation(work, answered, lambda error: answered(self._on_error(error))))

"""Answers that a process of its own gives while a draft is edited: for the newest draft, one at a time, each kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from PySide6.QtCore import QObject, QTimer

from app.controllers.background import Operation, OperationRunner
from core.errors import RankdeckError

T = TypeVar("T")
ASK_AFTER_MS: Final = 300
"""After the last key: even the quickest answer is a process of a few tenths of a second."""
_KEPT: Final = 32


class NewestAnswer(QObject, Generic[T]):
    """Asks about what is in sight, after the last edit; going back to a value costs nothing.

    Args:
        runner: Carries the questions out.
        on_answer: Gets the answer about the newest question, as soon as there is one.
        on_error: The answer that an error is.
        is_kept: Whether an answer counts; it is asked for again otherwise.
    """

    def __init__(
        self,
        runner: OperationRunner,
        on_answer: Callable[[T], None],
        on_error: Callable[[RankdeckError], T],
        parent: QObject | None = None,
        is_kept: Callable[[T], bool] = lambda _answer: True,
    ) -> None:
        super().__init__(parent)
        self._runner, self._on_answer, self._on_error, self._is_kept = runner, on_answer, on_error, is_kept
        self._answers: dict[str, T] = {}
        self._key = self._asked = ""
        self._work: Callable[[], T] | None = None
        self._later = QTimer(self, singleShot=True, interval=ASK_AFTER_MS)
        self._later.timeout.connect(self._ask)
        self.is_watched = False

    @property
    def is_asking(self) -> bool:
        """A question is under way, or about to be."""
        return bool(self._asked) or self._later.isActive()

    @property
    def answer(self) -> T | None:
        """About the newest question; None while it is not known."""
        return self._answers.get(self._key)

    def close(self) -> None:
        """Asks nothing any more."""
        self._later.stop()
        self.is_watched = False

    def set_watched(self, watched: bool) -> None:
        """Whether the answer is in sight: if not, no process is started for it."""
        self.is_watched = watched
        if watched:
            self._show()

    def forget(self) -> None:
        """Asks again whatever was answered: packages were installed."""
        self._answers.clear()

    def ask(self, key: str, work: Callable[[], T] | None) -> None:
        """Takes over the newest question.

        Args:
            key: What its answer depends on.
            work: Finds the answer, in a worker thread; None: there is nothing to ask.
        """
        self._key, self._work = key, work
        self._show()

    def ask_again(self) -> None:
        """Asks the newest question once more, where its answer was forgotten."""
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
            while len(self._answers) >= _KEPT:
                del self._answers[next(iter(self._answers))]
            if self._is_kept(answer):
                self._answers[key] = answer
            self._show()

        self._runner.run(Operation(work, answered, lambda error: answered(self._on_error(error))))

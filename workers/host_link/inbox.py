"""Inbox of the host's messages, sorted: wishes become flags, answers are waited for, orders are queued.

Only the training thread reads the inbox, at step boundaries and while it waits for an answer.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from core.errors import RankdeckError
from core.protocol.messages import CommitPlease, Committed, DataReady, Finish, Merge, Message, Stop

_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")

ANSWER_TIMEOUT_S: Final = 600.0


class HostSilentError(RankdeckError):
    title = "The run's host is not responding"


class Inbox:
    """The training thread's view of the host's messages, which the connection's reading thread puts in.

    Attributes:
        stop_asked: The host wants this rank to commit and stop.
        commit_asked: The host wants a commit at the next boundary.
        finish: The host has nothing more to ask.
        data: The dataset as rank 0 prepared it, once the host has passed it on.
        committed: Checkpoints that are whole on disk and not yet noted.
        orders: Merges that wait to be carried out.
    """

    def __init__(self, messages: queue.SimpleQueue[Message]) -> None:
        self._messages = messages
        self._answers: deque[Message] = deque()
        self.stop_asked = False
        self.commit_asked = False
        self.finish = False
        self.data: DataReady | None = None
        self.committed: list[int] = []
        self.orders: deque[Merge] = deque()

    def poll(self) -> None:
        """Note all messages that have come, without waiting."""
        while not self._messages.empty():  # this thread alone takes out
            self._note(self._messages.get())

    def wait(self, timeout_s: float) -> None:
        """Wait for a message, or until the time is over, and note it."""
        try:
            self._note(self._messages.get(timeout=timeout_s))
        except queue.Empty:
            return
        self.poll()

    def wait_for(self, kind: type[_M], timeout_s: float = ANSWER_TIMEOUT_S) -> _M:
        """The next message of this kind; others are noted meanwhile. Raises `HostSilentError` after `timeout_s`."""
        answer = self._wait_until(lambda: self._take_answer(kind), timeout_s)
        if answer is None:
            raise HostSilentError(
                f"No {kind.__name__} came from the run's host within {timeout_s:.0f} s.",
                "Check host.log in the run's folder, then resume the run.",
            )
        return answer

    def wait_for_data(self, timeout_s: float) -> DataReady:
        data = self._wait_until(lambda: self.data, timeout_s)
        if data is None:
            raise HostSilentError(
                f"Rank 0 did not finish preparing the data within {timeout_s:.0f} s.",
                "Check rank 0's log in the run's folder.",
            )
        return data

    def _wait_until(self, look: Callable[[], _T | None], timeout_s: float) -> _T | None:
        deadline = time.monotonic() + timeout_s
        while (found := look()) is None and (left := deadline - time.monotonic()) > 0:
            self.wait(min(left, 1.0))
        return found

    def _take_answer(self, kind: type[_M]) -> _M | None:
        found = next((message for message in self._answers if isinstance(message, kind)), None)
        if found is not None:
            self._answers.remove(found)
        return found

    def _note(self, message: Message) -> None:
        if isinstance(message, Stop):
            self.stop_asked = True
        elif isinstance(message, CommitPlease):
            self.commit_asked = True
        elif isinstance(message, Finish):
            self.finish = True
        elif isinstance(message, DataReady):
            self.data = message
        elif isinstance(message, Committed):
            self.committed.append(message.checkpoint)
        elif isinstance(message, Merge):
            self.orders.append(message)
        else:
            self._answers.append(message)

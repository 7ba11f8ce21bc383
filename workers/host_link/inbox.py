"""What the host says, sorted: wishes are remembered as flags, answers are waited for, orders are queued.

Only the training thread reads the inbox, at step boundaries and while it waits for an answer.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from typing import Final, TypeVar

from core.errors import RankdeckError
from core.protocol.messages import CommitPlease, Committed, DataReady, Finish, Merge, Merged, Message, Stop

_M = TypeVar("_M", bound=Message)

ANSWER_TIMEOUT_S: Final = 600.0


class HostSilentError(RankdeckError):
    """The host did not answer in time."""

    title = "The run's host is not responding"


class Inbox:
    """The training thread's view of the host's messages.

    Args:
        messages: Filled by the connection's reading thread.

    Attributes:
        stop_asked: The host wants this rank to commit and stop.
        commit_asked: The host wants a commit at the next boundary.
        finish: The host has nothing more to ask.
        data: What rank 0 prepared, once the host has passed it on.
        committed: Generations that are whole on disk and not yet taken note of.
        orders: `Merge` and `Merged` that wait to be carried out.
    """

    def __init__(self, messages: queue.SimpleQueue[Message]) -> None:
        self._messages = messages
        self._answers: deque[Message] = deque()
        self.stop_asked = False
        self.commit_asked = False
        self.finish = False
        self.data: DataReady | None = None
        self.committed: list[int] = []
        self.orders: deque[Merge | Merged] = deque()

    def poll(self) -> None:
        """Takes note of what has come, without waiting."""
        while True:
            try:
                self._note(self._messages.get_nowait())
            except queue.Empty:
                return

    def wait(self, timeout_s: float) -> None:
        """Waits until something comes, or the time is over, and takes note of it."""
        try:
            self._note(self._messages.get(timeout=timeout_s))
        except queue.Empty:
            return
        self.poll()

    def wait_for(self, kind: type[_M], timeout_s: float = ANSWER_TIMEOUT_S) -> _M:
        """The next message of this kind; everything else that comes meanwhile is noted.

        Raises:
            HostSilentError: Nothing of that kind came in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            for message in self._answers:
                if isinstance(message, kind):
                    self._answers.remove(message)
                    return message
            left = deadline - time.monotonic()
            if left <= 0:
                raise HostSilentError(
                    f"No {kind.__name__} came from the run's host within {timeout_s:.0f} s.",
                    "Check host.log in the run's folder, then resume the run.",
                )
            self.wait(min(left, 1.0))

    def wait_for_data(self, timeout_s: float) -> DataReady:
        """What rank 0 prepared.

        Raises:
            HostSilentError: It did not come in time.
        """
        deadline = time.monotonic() + timeout_s
        while self.data is None:
            if time.monotonic() > deadline:
                raise HostSilentError(
                    f"Rank 0 did not finish preparing the data within {timeout_s:.0f} s.",
                    "Check rank 0's log in the run's folder.",
                )
            self.wait(1.0)
        return self.data

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
            self.committed.append(message.generation)
        elif isinstance(message, Merge | Merged):
            self.orders.append(message)
        else:
            self._answers.append(message)

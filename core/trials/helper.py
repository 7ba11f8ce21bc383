"""A machine that makes trials for another one: starts and ends ranks as it is told (`core.trials.nodes`)."""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.launch.nodes.channel import Channel
from core.launch.plan import rank_environment
from core.processes import Child, ProcessTree
from core.processes.ask import read_answer
from core.processes.exit_codes import ended_by_force
from core.protocol.rank_context import RankContext
from core.trials.machines import TrialMachine
from core.trials.set_files import SetFiles

END_S: Final = 5.0
_POLL_S: Final = 0.1
"""Between two looks. Ranks train meanwhile, and each look takes a moment of a core."""
_MOST_CHARACTERS: Final = 1 << 19


class TrialHelper:
    """Serves the other machine until that is done.

    Args:
        channel: To it.
        machine: This one.

    Raises:
        RankdeckError: It goes without this machine.
    """

    def __init__(self, channel: Channel, machine: TrialMachine) -> None:
        self._channel = channel
        self._sets: dict[int, _LocalSet] = {}
        self._news: deque[dict[str, Any]] = deque()
        refused = channel.ask({"machine": machine.to_dict()}).get("refused")
        if refused is not None:
            raise RankdeckError(str(refused), "Start the benchmark again on all machines.", title="It takes no part")

    def serve(self, cancelled: Callable[[], bool]) -> int | None:
        """Returns the other machine's exit code; None after `cancelled`. No process that was started is left.

        Raises:
            ChannelError: The other machine is gone.
        """
        try:
            while not cancelled():
                for number, ranks in self._sets.items():
                    self._news.extend({"set": number, **message} for message in ranks.news())
                answer = self._channel.ask({"news": self._next_news()})
                if "over" in answer:
                    return int(answer["over"])
                for order in answer.get("orders", ()):
                    self._follow(order)
                time.sleep(0.0 if self._news else _POLL_S)
            return None
        finally:
            for ranks in self._sets.values():
                ranks.close()
            self._channel.close()

    def _next_news(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        characters = 0
        while self._news and characters < _MOST_CHARACTERS:
            found.append(self._news.popleft())
            characters += len(str(found[-1].get("text", "")))
        return found

    def _follow(self, order: Mapping[str, Any]) -> None:
        number = int(order["set"])
        if "start" in order:
            ranks = self._sets.setdefault(number, _LocalSet())
            ranks.start(order["start"])
        elif number in self._sets and "file" in order:
            self._sets[number].files.take(order)
        elif number in self._sets and "close" in order:
            self._sets.pop(number).close()
            self._news.append({"set": number, "closed": True})


class _LocalSet:
    """This machine's ranks of a set."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="rankdeck-trials-", ignore_cleanup_errors=True)
        folder = Path(self._temporary.name)
        self._children: dict[int, Child] = {}
        self._ended: set[int] = set()
        self._failed: list[dict[str, Any]] = []
        self._tree = ProcessTree()
        self.files = SetFiles(folder, lambda rank: rank in self._children, lambda rank: rank not in self._children)

    def start(self, what: Mapping[str, Any]) -> None:
        """Starts a rank; that it could not be started is news."""
        rank, folder = int(what["rank"]), self.files.folder
        context = replace(RankContext.from_env(what["env"]), run_dir=folder)
        env = rank_environment(
            os.environ, {**what["env"], **context.to_env()}, what["default_env"], what["removed_env"]
        )
        try:
            self._children[rank] = self._tree.spawn(what["argv"], env, folder, folder / "logs" / f"rank{rank}.log")
        except RankdeckError as error:
            self._failed.append({"ended": rank, "text": f"could not be started: {error.cause}"})

    def news(self) -> list[dict[str, Any]]:
        """What ranks have written, and which have ended."""
        found = [*self.files.news(), *self._failed]
        self._failed.clear()
        for rank, child in self._children.items():
            code = child.poll()
            if code is not None and rank not in self._ended:
                self._ended.add(rank)
                found.append({"ended": rank, "text": read_answer(child).failure, "by_force": ended_by_force(code)})
        return found

    def close(self) -> None:
        """Ends the ranks."""
        self._tree.kill(time.monotonic() + END_S)
        self._tree.close()
        self._temporary.cleanup()

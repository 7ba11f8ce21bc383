"""An event loop that serves ranks last and a few at a time, so that a thousand of them keep no client waiting.

asyncio serves all connections that are ready before it looks for others. What a client asks for takes about five such
rounds (accept, challenge, hello, answer), each as long as all ranks that were ready take. Here everything else comes
before ranks in every round, and the system's own list of ready ranks (epoll puts those that were reported at its end)
sees to it that each gets its turn.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from collections import ChainMap
from collections.abc import Mapping
from typing import Any, Final

RANKS_A_ROUND: Final = 16
"""A rank's lines or claim take 0.3 to 1 ms of a core."""

if sys.platform == "linux":
    import select

    class _FairSelector(selectors.BaseSelector):
        """Two sets of files, of which one is in the other: it is looked at last, and some of it at a time."""

        def __init__(self) -> None:
            self._first = selectors.EpollSelector()
            self._last = select.epoll()
            self._last_keys: dict[int, selectors.SelectorKey] = {}
            self._is_last: set[int] = set()
            self._first.register(self._last.fileno(), selectors.EVENT_READ)

        def serve_last(self, fd: int, is_last: bool) -> None:
            """From now on this file is one of those that are served last, or is not."""
            key = self.get_map().get(fd)
            if key is not None:
                self.unregister(fd)
            if is_last:
                self._is_last.add(fd)
            else:
                self._is_last.discard(fd)
            if key is not None:
                self.register(key.fileobj, key.events, key.data)

        def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            fd = _fd(fileobj)
            if fd not in self._is_last:
                return self._first.register(fileobj, events, data)
            self._last.register(fd, _mask(events))
            key = self._last_keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
            return key

        def unregister(self, fileobj: Any) -> selectors.SelectorKey:
            key = self._last_keys.pop(_fd(fileobj), None)
            if key is None:
                return self._first.unregister(fileobj)
            self._last.unregister(key.fd)
            return key

        def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
            fd = _fd(fileobj)
            if fd not in self._last_keys:
                return self._first.modify(fileobj, events, data)
            self._last.modify(fd, _mask(events))
            key = self._last_keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
            return key

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            ready = self._first.select(timeout)
            others = [(key, events) for key, events in ready if key.fd != self._last.fileno()]
            if len(others) == len(ready):
                return ready
            for fd, mask in self._last.poll(0, RANKS_A_ROUND):
                if (key := self._last_keys.get(fd)) is not None:
                    others.append((key, _events(mask) & key.events))
            return others

        def close(self) -> None:
            self._first.close()
            self._last.close()
            self._last_keys.clear()

        def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
            return ChainMap(self._last_keys, self._first.get_map())  # type: ignore[arg-type]

    def _fd(fileobj: Any) -> int:
        return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())

    def _mask(events: int) -> int:
        read = select.EPOLLIN if events & selectors.EVENT_READ else 0
        return read | (select.EPOLLOUT if events & selectors.EVENT_WRITE else 0)

    def _events(mask: int) -> int:
        write = selectors.EVENT_WRITE if mask & ~select.EPOLLIN else 0  # an error is for both to find
        return write | (selectors.EVENT_READ if mask & ~select.EPOLLOUT else 0)

    class _FairLoop(asyncio.SelectorEventLoop):
        def __init__(self) -> None:
            self.fair = _FairSelector()
            super().__init__(self.fair)

    def fair_loop() -> asyncio.AbstractEventLoop:
        """A new loop for a run's host."""
        return _FairLoop()

    def serve_last(transport: asyncio.BaseTransport, is_last: bool = True) -> None:
        """Puts a connection with those that are served last; takes it away before it is closed, as its number returns.

        Does nothing on any other loop.
        """
        loop = asyncio.get_running_loop()
        if isinstance(loop, _FairLoop):
            loop.fair.serve_last(transport.get_extra_info("socket").fileno(), is_last)

else:

    def fair_loop() -> asyncio.AbstractEventLoop:
        """A new loop for a run's host; Windows', whose hosts have the ranks of one machine."""
        return asyncio.new_event_loop()

    def serve_last(_transport: asyncio.BaseTransport, _is_last: bool = True) -> None:
        """Does nothing."""

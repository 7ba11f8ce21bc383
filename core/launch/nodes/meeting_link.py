"""A meeting of processes on several machines: workers elsewhere read and write its files through the first process.

The folder stays where the run's host is (`core.launch.meeting`). A worker elsewhere is as present there as its
connection: while it asks, its `arrived` file names the first process; once the connection is gone, so is the file.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from core.errors import RankdeckError
from core.launch.meeting import POLL_S, Meeting
from core.launch.nodes.channel import Channel, ChannelError, Server
from core.processes.identity import ProcessId, own

_READABLE: Final = re.compile(r"(leader|open|host|over|again)\.json|(ask|rank)-\d{1,5}\.json")
_WRITABLE: Final = re.compile(r"(?P<what>arrived|rank)-(?P<rank>\d{1,5})\.json")


class MeetingServer:
    """Lets workers of other machines take part in a meeting.

    Args:
        meeting: Its folder is on this machine.
        address, port: Where to listen.
        key: What workers must know.
    """

    def __init__(self, meeting: Meeting, address: str, port: int, key: str) -> None:
        self._server = Server(address, port, key, lambda _: _Guest(meeting))

    def close(self) -> None:
        self._server.close()


class _Guest:
    """One worker of another machine."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self._rank: str | None = None

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if "write" in request:
            self._write(str(request["write"]), request.get("value"))
            return {}
        name = str(request.get("read"))
        found = self._meeting.read(name) if _READABLE.fullmatch(name) else None
        if found is not None and name == "leader.json":
            found.pop("secret", None)
        return {"value": found}

    def closed(self) -> None:
        if self._rank is not None:
            with contextlib.suppress(OSError):
                (self._meeting.folder / f"arrived-{self._rank}.json").unlink(missing_ok=True)

    def _write(self, name: str, value: Any) -> None:
        found = _WRITABLE.fullmatch(name)
        if found is None or not isinstance(value, dict):
            return
        if found["what"] == "arrived" and self._rank is None:
            self._rank = found["rank"]
            opened = self._meeting.read("leader.json") or {}
            value = {**value, "pid": own().pid, "started": own().started, "secret": opened.get("secret")}
        if found["rank"] == self._rank:
            with contextlib.suppress(RankdeckError):
                self._meeting.write(name, value)


class RemoteMeeting(Meeting):
    """The meeting, as a worker of another machine sees it. Once the connection is lost it is empty for good."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._where = host, port, key
        self._channel: Channel | None = None
        self._lost = False

    def connect(self, limit_s: float) -> None:
        """Waits for the meeting to begin.

        Raises:
            ChannelError: It does not; says why.
        """
        deadline = time.monotonic() + limit_s
        while self._channel is None:
            try:
                self._channel = Channel(*self._where)
            except ChannelError as error:
                if error.why == "key" or time.monotonic() > deadline:
                    raise
                time.sleep(POLL_S * 4)

    def leader(self) -> tuple[ProcessId, str] | None:
        value = self.read("leader.json")
        leader = None if value is None else ProcessId.from_json(value)
        return None if leader is None else (leader, "")

    def read(self, name: str) -> dict[str, Any] | None:
        value = self._ask({"read": name}).get("value")
        return value if isinstance(value, dict) else None

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        self._ask({"write": name, "value": dict(value)})

    def lives(self, _process: ProcessId) -> bool:
        return not self._lost

    def close(self) -> None:
        self._lost = True
        if self._channel is not None:
            self._channel.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._lost or self._channel is None:
            return {}
        try:
            return self._channel.ask(request)
        except ChannelError:
            self._lost = True
            return {}

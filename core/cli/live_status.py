"""The state that a run's host sends over its socket while its files do not change, for example on a full disk."""

from __future__ import annotations

import time
from typing import Final

from core.client import HostConnection
from core.errors import RankdeckError
from core.protocol.messages import RunStatus
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

QUIET_S: Final = 4.0
"""A host writes its progress every 3 s (`core.host.metrics.status`), if there is any."""
RETRY_S: Final = 5.0
CONNECT_LIMIT_S: Final = 1.0
_LOOK_S: Final = 0.001


class LiveStatus:
    """Asks a run's host once its `state.json` has not changed for a while, and listens until it changes again.

    As long as the files tell everything there is no connection: each one makes the host wake up more often.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._connection: HostConnection | None = None
        self._reported: RunState | None = None
        self._updated = 0.0
        self._connect_at = time.monotonic() + QUIET_S

    def newest(self, stored: RunState) -> RunState:
        """The newer one of `stored`, the state that the file holds, and the one that the host sent."""
        if stored.updated != self._updated or not stored.is_live:
            self._updated = stored.updated
            if self._reported is None or stored.updated >= self._reported.updated or not stored.is_live:
                self.close()
        if not stored.is_live:
            return stored
        if self._connection is None and time.monotonic() >= self._connect_at:
            self._connect()
        self._listen()
        reported = self._reported
        return reported if reported is not None and reported.updated > stored.updated else stored

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._reported = None, None
        self._connect_at = time.monotonic() + QUIET_S

    def _connect(self) -> None:
        self._connect_at = time.monotonic() + RETRY_S
        try:
            info = self._store.read_host_json()
            if info is not None:
                self._connection = HostConnection(self._store, info, CONNECT_LIMIT_S)
        except RankdeckError:  # it has just ended, or does not answer: the files are all there is
            return

    def _listen(self) -> None:
        if self._connection is None:
            return
        try:
            for message in self._connection.messages(_LOOK_S):
                if isinstance(message, RunStatus):
                    self._reported = RunState.from_dict(message.state)
        except RankdeckError:
            self.close()

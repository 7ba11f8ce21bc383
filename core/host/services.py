"""Host services: the parts that a run host composes once and all of its attempts share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

from core.checkpoints.store import CheckpointStore
from core.config.config_file import to_toml
from core.errors import RankdeckError
from core.files.atomic import write_atomic
from core.host.metrics.status import StatusPublisher
from core.host.metrics.stream import MetricsStream
from core.host.rank_processes import Launcher, RankProcesses
from core.launch.seats import NodeSeats
from core.protocol.server import Listener
from core.run_folder.store import RunStore

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HostServices:
    """Shared parts of a host; `disk` is the single thread that writes the run's small files, in order."""

    store: RunStore
    checkpoints: CheckpointStore
    disk: Executor
    listener: Listener
    status: StatusPublisher
    stream: MetricsStream
    rank_processes: Callable[[str], RankProcesses]
    launcher: Launcher | None = None

    @property
    def seats(self) -> NodeSeats | None:
        """On which machine each rank is, where there are several; None where all are on this one."""
        return None if self.launcher is None else self.launcher.seats

    def on_disk(self, call: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self.disk, call, *arguments)

    async def enter_settings(self, **changes: Any) -> None:
        """Enter settings that the run changed by itself in its `run.toml`, for a later resume.

        Where that fails, as with a full disk, the run continues and its log says so.
        """
        await self.on_disk(_enter, self.store, changes)


def _enter(store: RunStore, changes: Mapping[str, Any]) -> None:
    try:
        write_atomic(store.run_toml, to_toml(store.config().replace(**changes)))
    except (OSError, RankdeckError) as error:
        log.warning("%s could not be entered in run.toml: %s", ", ".join(changes), error)


def logging_failure(message: str) -> Callable[[asyncio.Task[None]], None]:
    """A done callback for a task that nothing awaits."""

    def done(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error(message, exc_info=task.exception())

    return done

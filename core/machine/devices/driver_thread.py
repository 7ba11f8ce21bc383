"""`GpuDriver`: the calls of a `DeviceMonitor` to a maker's driver; `DriverThread`: a thread for calls that may hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from core.machine.devices.device import Device, DeviceSample

T = TypeVar("T")


class DriverThread(Generic[T]):
    """Makes one call after another in a daemon thread of its own, so that a driver that hangs blocks no other thread.

    A caller asks for a value (`ask`) and waits up to a deadline (`wait`); the answer of a call that took longer is kept
    for the next caller. While a call is under way no second one is started.

    Attributes:
        took_s: Seconds that the last finished call took; 0 before the first.
        latest: The result of the last call that did not fail.
        failure: The error of the last finished call.
    """

    def __init__(self, name: str, call: Callable[[], T]) -> None:
        self._call = call
        self._changed = threading.Condition()
        self._wanted = False
        self._closed = False
        self._asked_at: float | None = None
        self._answers = 0
        self.took_s = 0.0
        self.latest: T | None = None
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self) -> int:
        """Start a call, unless one is under way; return a ticket for `wait`."""
        with self._changed:
            if self._asked_at is None:
                self._asked_at = time.monotonic()
                self._wanted = True
                self._changed.notify_all()
            return self._answers + 1

    def wait(self, ticket: int, deadline: float) -> bool:
        """Wait for the call until `deadline` (on `time.monotonic`); True: `latest` or `failure` is fresh."""
        with self._changed:
            while self._answers < ticket and not self._closed:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            return self._answers >= ticket

    @property
    def silent_for_s(self) -> float:
        """Seconds that the call under way has taken so far; 0 when none is."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else time.monotonic() - asked_at

    def end(self) -> None:
        """Tell the thread to end, without waiting for it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self, deadline: float) -> bool:
        """Wait for the thread's end until `deadline`; one that hangs is left behind, and ends with the process."""
        self.end()
        self._thread.join(max(0.0, deadline - time.monotonic()))
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._wanted and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                self._wanted = False
            value, failure = self.latest, None
            try:
                value = self._call()
            except Exception as error:  # kept and shown: a driver's fault must not end the thread that reports it
                failure = error
            with self._changed:
                self.latest, self.failure = value, failure
                self.took_s = self.silent_for_s
                self._asked_at = None
                self._answers += 1
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Found:
    """The GPUs of one driver.

    Attributes:
        devices: In the driver's order, or as a variable that shows only some orders them, hidden ones last.
        problems: GPUs that are there and cannot be used, as text.
        driver: The driver's version; None when it does not say.
    """

    devices: tuple[Device, ...]
    problems: tuple[str, ...]
    driver: str | None


# Reads all figures of one GPU; None for those that it does not support. Used by one thread, which may hang in it.
ReadGpu = Callable[[], DeviceSample]


@dataclass(frozen=True, slots=True)
class GpuDriver:
    """One maker's driver, called in threads of their own.

    Attributes:
        maker: "NVIDIA", "AMD".
        find: Starts the driver's library and lists its GPUs; raises where it cannot be used.
        reader: Makes the reader of one of them; `True`: also of the processes that compute on it.
        why_none: Explains an error of `find` in a sentence; empty where that needs no words.
        is_absent: True for an error of `find` that means that there is no such driver.
    """

    maker: str
    find: Callable[[], Found]
    reader: Callable[[Device, bool], ReadGpu]
    why_none: Callable[[BaseException], str]
    is_absent: Callable[[BaseException], bool]

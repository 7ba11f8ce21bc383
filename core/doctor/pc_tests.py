"""Tests of a person's own PC: Windows' counters of GPUs while devices compute, and staying awake."""

from __future__ import annotations

import os
import threading
from typing import Final

from core.doctor.finding import SELF_TESTS, Finding, Topic
from core.formatting import memory_size
from core.machine.devices.gpu_counters import Readings, parse_use, use_on_main_adapter
from core.machine.devices.pdh import open_counters
from core.machine.keep_awake import is_kept_awake, kept_awake
from core.machine.process_reading import descendants

COUNTERS: Final = Topic("pc_counters", "GPU memory by Windows", SELF_TESTS, "NVML does not know it under WDDM.")
AWAKE: Final = Topic("pc_awake", "Staying awake", SELF_TESTS, "A computer that sleeps trains nothing.")
_SAMPLE_S: Final = 0.5


class CounterWatch:
    """Reads Windows' GPU counters while other tests compute, and keeps what our own processes held at most.

    Attributes:
        last: The newest readings, for the file.
    """

    def __init__(self) -> None:
        self.last: Readings = {}
        self._problem = ""
        self._dedicated = self._shared = 0
        self._readings = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counter-watch", daemon=True)
        self._thread.start()

    def close(self) -> Finding:
        """What was seen."""
        self._ending.set()
        self._thread.join(5.0)
        if self._thread.is_alive():
            return COUNTERS.warn("Windows' GPU counters do not answer", "GPU memory of ranks is not shown.")
        if self._problem:
            return COUNTERS.not_tried(self._problem)
        instances = sum(map(len, self.last.values()))
        seen = f"{self._readings} readings, {instances} instances in the last"
        if not self._dedicated:
            return COUNTERS.not_tried(f"{seen}; none of them was of a self-test (no test computed on a GPU?)")
        own = f"self-tests held up to {memory_size(self._dedicated)} dedicated, {memory_size(self._shared)} shared"
        return COUNTERS.ok(f"{own} ({seen})")

    def _run(self) -> None:
        try:
            counters = open_counters()
        except (OSError, AttributeError) as error:
            self._problem = str(error)
            return
        while not self._ending.wait(_SAMPLE_S):
            try:
                self.last = counters.read() or self.last
            except OSError as error:
                self._problem = str(error)
                return
            self._readings += 1
            use = use_on_main_adapter(parse_use(self.last), [child.pid for child in descendants(os.getpid())])
            if use is not None:
                self._dedicated = max(self._dedicated, use.dedicated_bytes)
                self._shared = max(self._shared, use.shared_bytes)


def check_awake() -> Finding:
    """Whether the system lists the wish to stay awake while it is kept so."""
    before = is_kept_awake()
    if before is None:
        return AWAKE.not_tried("the system does not say whether it is kept awake")
    with kept_awake():
        during = is_kept_awake()
    if not during:
        return AWAKE.warn("the system does not list the wish to stay awake", "Turn off sleep in its settings.")
    return AWAKE.ok("the system stays awake while a run trains" + (" (another program keeps it so too)" * before))

"""DDP communication hook: averages each bucket of gradients through a function that sums in place, on a thread.

DDP calls the hook for each bucket once all its gradients are there, in the same order on every rank. The thread sums
them while the backward pass computes the next ones. With the last bucket the training thread waits, and gets what went
wrong as the very exception.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with types, not with their names.

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import Tensor

JOIN_S = 10.0
# One copy: long enough for the bus, short enough for copies and sums to overlap.
STAGE_BYTES: Final = 2 << 20
Stream: Final[Any] = torch.cuda.Stream  # torch's own are not typed
Event: Final[Any] = torch.cuda.Event


# Sums a CPU tensor in place over all ranks: the tensor, a factor for each rank's part, which of a step's tensors.
Reduce = Callable[[Tensor, float, int], None]


class CudaStaging:
    """Sums a CUDA tensor through an all-reduce on the CPU: pinned memory and a stream, used by one thread at a time.

    The card copies slice 2 out while the CPU sums slice 1; what is summed goes back while the next is being summed. All
    copies are on a stream of their own, so kernels of the backward pass run on.

    `reduce` sums a CPU tensor in place over all ranks: the tensor, the factor, the slice's number.
    """

    def __init__(self, device: torch.device, reduce: Callable[[Tensor, float, int], None]) -> None:
        self._device, self._reduce = device, reduce
        self.stream = Stream(device)
        self._pinned = torch.empty(0, dtype=torch.uint8)

    def sum(self, tensor: Tensor, factor: float, ready: torch.cuda.Event) -> None:
        """Replace the tensor by the sum over all ranks of `factor` times theirs.

        The last copies back may still be under way on `stream` at return; record an event there, or wait for it.

        Args:
            tensor: Contiguous, on the device.
            factor: As in `SharedAllReduce.sum`.
            ready: Recorded behind what computes the tensor.
        """
        flat = tensor.detach().view(-1)
        pinned = self._room(flat)
        per = STAGE_BYTES // flat.element_size()
        places = [slice(start, min(flat.numel(), start + per)) for start in range(0, flat.numel(), per)]
        arrived = []
        with torch.cuda.device(self._device), torch.cuda.stream(self.stream):
            self.stream.wait_event(ready)
            for place in places:
                pinned[place].copy_(flat[place], non_blocking=True)
                event = Event()
                event.record(self.stream)
                arrived.append(event)
            for number, (place, event) in enumerate(zip(places, arrived, strict=True)):
                event.synchronize()
                self._reduce(pinned[place], factor, number)
                flat[place].copy_(pinned[place], non_blocking=True)

    def _room(self, flat: Tensor) -> Tensor:
        size = flat.numel() * flat.element_size()
        if self._pinned.numel() < size:
            self.stream.synchronize()  # the old room may still be read
            self._pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        return self._pinned[:size].view(flat.dtype)


@dataclass(slots=True)
class _Job:
    tensor: Tensor
    place: int
    future: torch.futures.Future[Tensor]
    ready: torch.cuda.Event | None


class BucketAllReduce:
    """Averages DDP's buckets over the ranks, one after another.

    `factor` scales every rank's part; 1 / ranks makes the mean. `sync_wait_s`: seconds of the last step's all-reduce
    after this rank's last gradient.
    """

    def __init__(self, reduce: Reduce, device: torch.device, factor: float) -> None:
        self._reduce, self._device, self._factor = reduce, device, factor
        self._staging = CudaStaging(device, reduce) if device.type == "cuda" else None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._waiting = self._place = 0
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._ready_at = 0.0
        self.sync_wait_s: float | None = None

    def all_reduce(self, tensor: Tensor, last: bool) -> torch.futures.Future[Tensor]:
        """Average one contiguous bucket in place; with the `last` of a step it waits for all of them.

        Raises `PeerLostError` or `PeerSilentError` where another rank is gone.
        """
        if self._failure is not None:
            raise self._failure
        job = self._job(tensor, self._place)
        self._place = 0 if last else self._place + 1
        # Nothing to overlap with, so no other thread has to wake up.
        if last and self._waiting == 0:
            self._note_ready(job)
            self._work(job)
        else:
            self._hand_over(job)
            if last:
                self._note_ready(job)
                self._await_all()
        if self._failure is not None:
            raise self._failure
        if last:
            self.sync_wait_s = time.perf_counter() - self._ready_at
        return job.future

    def close(self) -> None:
        """End the thread; a wait for other ranks has to be ended before (`PeerWatch.close`)."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(JOIN_S)
            self._thread = None

    def _job(self, tensor: Tensor, place: int) -> _Job:
        if self._staging is None:
            return _Job(tensor, place, torch.futures.Future(), None)
        ready = Event()
        ready.record(torch.cuda.current_stream(self._device))
        return _Job(tensor, place, torch.futures.Future(devices=[self._device]), ready)

    def _hand_over(self, job: _Job) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gradient all-reduce", daemon=True)
            self._thread.start()
        with self._changed:
            self._waiting += 1
        self._jobs.put(job)

    def _note_ready(self, job: _Job) -> None:
        """Note that this rank has all its gradients: from here on it waits, for other ranks or for the transfer."""
        if job.ready is not None:
            job.ready.synchronize()
        self._ready_at = time.perf_counter()

    def _await_all(self) -> None:
        """Wait for the thread; bounded, because every wait for another rank is."""
        with self._changed:
            while self._waiting:
                self._changed.wait(1.0)
                if self._thread is None or not self._thread.is_alive():
                    raise RuntimeError("the thread that exchanges gradients has ended")

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._work(job)
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def _work(self, job: _Job) -> None:
        """Average one bucket. An error is kept for the training thread; the future is fulfilled in any case."""
        try:
            if self._failure is None:
                self._average(job)
                return
        except BaseException as error:
            self._failure = error
        # Of no use, but DDP does not wait for it for ever.
        job.future.set_result(job.tensor)

    def _average(self, job: _Job) -> None:
        if self._staging is None or job.ready is None:
            self._reduce(job.tensor, self._factor, job.place)
            job.future.set_result(job.tensor)
            return
        job.ready.synchronize()
        self._staging.sum(job.tensor, self._factor, job.ready)
        with torch.cuda.device(self._device), torch.cuda.stream(self._staging.stream):
            # A stream that waits for it waits for this one.
            job.future.set_result(job.tensor)


def all_reduce_bucket(
    state: BucketAllReduce,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    """The hook; DDP wants these two names."""
    return state.all_reduce(bucket.buffer(), bucket.is_last())

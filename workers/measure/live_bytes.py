"""Live bytes: the memory of tensors after each operation of a forward and backward pass."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Bytes at no sample, and bytes for each sample of the micro-batch.
Line = tuple[int, int]
# Micro-batches for which the highest line is kept.
_TRIED: Final = [1 << power for power in range(17)]


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own has no annotations
    """While it is entered, follows every tensor that an operation makes until its memory is given back.

    Attributes:
        timeline: Live bytes after each operation; what was there before does not count.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.timeline: list[int] = []
        self._live = 0
        self._known: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        # An operation may return its own argument, which is not new memory.
        for tensor in tree_leaves(args):
            if isinstance(tensor, torch.Tensor):
                self._follow(tensor, new=False)
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._follow(tensor, new=True)
        self.timeline.append(self._live)
        return result

    def _follow(self, tensor: torch.Tensor, *, new: bool) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        size = storage.nbytes() if new else 0
        self._live += size

        def gone(_: object) -> None:
            self._live -= size
            self._known.pop(key, None)

        self._known[key] = weakref.ref(storage, gone)


def lines_through(sizes: tuple[int, int], timelines: Sequence[Sequence[int]]) -> list[Line]:
    """Fit lines, the highest of which is the peak for any micro-batch, to the timelines of two small ones.

    Each moment grows linearly with the samples, and another moment may be the peak of a larger micro-batch: of few
    samples the end of the backward pass with all gradients, of many its beginning with all activations.
    """
    few, more = timelines
    # Passes that depend on the data: only their peaks can be compared.
    if len(few) != len(more):
        few, more = [max(few, default=0)], [max(more, default=0)]
    lines = {_line(sizes, *moments) for moments in zip(few, more, strict=True)}
    chosen = {max(lines, key=lambda line: line[0] + line[1] * samples) for samples in _TRIED} if lines else set()
    return sorted(chosen, key=lambda line: line[1])


def _line(sizes: tuple[int, int], few: int, more: int) -> Line:
    slope = max(0, more - few) // (sizes[1] - sizes[0])
    return few - slope * sizes[0], slope


def peak_of(lines: Sequence[Line], samples: int) -> int:
    return max((constant + slope * samples for constant, slope in lines), default=0)

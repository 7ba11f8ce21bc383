"""torch.compile: kernels made for the recipe's model at its first pass, for micro-batches of one size.

Only what `forward` computes is compiled, not the hooks around it: DDP, FSDP and the timing of waits work there
(`nn.Module.compile` would take them into the graph).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import nn

from workers.strategies import Strategy


class SwitchedForward:
    """A model that is compiled or not from pass to pass.

    Args:
        model: The recipe's, not replicated yet; its weights keep their names.
        strategy: Names the parts that are compiled one by one.
        samples: The micro-batch size that is compiled.
    """

    def __init__(self, model: nn.Module, strategy: Strategy, samples: int = 0) -> None:
        self._parts = strategy.compiled_parts(model)
        self._samples = samples
        self._is_compiled = self._is_ready = False

    def use(self, *, compiled: bool) -> None:
        # Now: it imports the compiler, which takes seconds and memory.
        if compiled and not self._is_ready:
            for part in self._parts:
                part.forward = self._switched(part.forward)
            self._is_ready = True
        self._is_compiled = compiled

    @contextmanager
    def of(self, samples: int) -> Iterator[None]:
        """The context of a training pass, compiled for whole micro-batches only; all other passes are plain.

        Kernels are made again for every other number of samples: 26 s on an H200 for an epoch's shorter last batch.
        """
        self.use(compiled=samples == self._samples)
        try:
            yield
        finally:
            self._is_compiled = False

    def _switched(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        compiled = torch.compile(plain)

        @wraps(plain)
        def forward(*args: Any, **kwargs: Any) -> Any:
            return (compiled if self._is_compiled else plain)(*args, **kwargs)

        return forward

"""torch.compile: kernels made for the recipe's model at its first pass.

Only what `forward` computes is compiled, not the hooks around it: DDP, FSDP and the timing of waits work there
(`nn.Module.compile` would take them into the graph).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from workers.strategies import Strategy


def compile_model(model: nn.Module, strategy: Strategy) -> None:
    """Compiles a model's passes from the next one on; its weights keep their names.

    Args:
        model: The recipe's, not replicated yet.
        strategy: Says which parts are compiled by themselves.
    """
    SwitchedForward(model, strategy).use(compiled=True)


class SwitchedForward:
    """A model that is compiled or not from pass to pass; what was compiled is kept.

    Args:
        model: As in `compile_model`.
        strategy: As there.
    """

    def __init__(self, model: nn.Module, strategy: Strategy) -> None:
        self._plain = [(part, part.forward) for part in strategy.compiled_parts(model)]
        self._compiled: list[Callable[..., Any]] = []

    def use(self, *, compiled: bool) -> None:
        """What the next passes take."""
        if compiled and not self._compiled:  # now: it imports the compiler, which takes seconds and memory
            self._compiled = [torch.compile(forward) for _, forward in self._plain]
        for number, (part, plain) in enumerate(self._plain):
            part.forward = self._compiled[number] if compiled else plain

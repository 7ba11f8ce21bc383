"""Training mode: switches a model's modules between training and evaluation (`nn.Module.training`).

A recipe hands its model over as it is to be trained. `from_pretrained` returns evaluation mode, in which dropout and
gradient checkpointing do nothing, so that alone is switched here, once, before anything is built on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


def begin_training(model: nn.Module) -> None:
    """Call `train()` on a model that is in evaluation mode, and on each trained part that `from_pretrained` has made.

    All other flags stay: a layer that the recipe has put into evaluation mode is frozen on purpose.
    """
    if not model.training:
        model.train()
        return
    for part in model.modules():
        if not part.training and hasattr(type(part), "from_pretrained") and _is_trained(part):
            part.train()


def evaluating_parts(model: nn.Module) -> list[str]:
    """Names of the outermost parts in evaluation mode that have trained weights and parts of their own."""
    found: list[str] = []
    for name, part in model.named_modules():
        is_inside = any(name.startswith(f"{outer}.") for outer in found)
        if not (part.training or is_inside) and any(True for _ in part.children()) and _is_trained(part):
            found.append(name)
    return found


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put all of a model into evaluation mode, and restore each module's flag afterwards."""
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in flags:
            module.training = training


def _is_trained(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())

"""The state of every random generator a rank uses, as tensors and plain values."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def capture(device: torch.device) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    version, numbers, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)
    tensors = {
        "rng.python": torch.tensor(numbers, dtype=torch.int64),
        "rng.numpy": torch.from_numpy(numpy_state["state"]["key"].astype(np.int64)),
        "rng.torch": torch.get_rng_state().clone(),
    }
    if device.type == "cuda":
        tensors["rng.cuda"] = torch.cuda.get_rng_state(device).clone()
    values = {
        "python": [version, gauss],
        "numpy": [numpy_state["state"]["pos"], numpy_state["has_gauss"], numpy_state["gauss"]],
    }
    return tensors, values


def restore(tensors: Mapping[str, torch.Tensor], values: Mapping[str, Any], device: torch.device) -> None:
    """Restore what `capture` gave; the device's generator only where the kind of device is the same."""
    version, gauss = values["python"]
    random.setstate((version, tuple(tensors["rng.python"].tolist()), gauss))
    position, has_gauss, cached = values["numpy"]
    key = tensors["rng.numpy"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", key, position, has_gauss, cached))
    torch.set_rng_state(tensors["rng.torch"])
    if device.type == "cuda" and "rng.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["rng.cuda"], device)


@contextmanager
def untouched(device: torch.device) -> Iterator[None]:
    """Restore all generators behind the block."""
    before = Generators(device)
    try:
        yield
    finally:
        before.restore()


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


class Generators:
    """The state of every generator, kept in this process; quicker than `capture`, whose result is fit for a file."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.keep()

    def keep(self) -> None:
        self._python, self._numpy, self._torch = random.getstate(), np.random.get_state(), torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state(self._device) if self._device.type == "cuda" else None

    def restore(self) -> None:
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        torch.set_rng_state(self._torch)
        if self._cuda is not None:
            torch.cuda.set_rng_state(self._cuda, self._device)

"""A dataset's bytes as samples, for the recipes of tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from rankdeck.recipe import Indices, PreparedData, Run

# The last samples are for evaluations.
HELD_OUT: Final = 40


def byte_windows(run: Run) -> Callable[[Indices], Tensor]:
    """Prepares the dataset, a byte a token; gives samples by their numbers, each with the token that follows it."""
    length = run.config.seq_len

    def prepare(folder: Path) -> PreparedData:
        data = b"".join(path.read_bytes() for path in run.dataset_files())
        (folder / "tokens.bin").write_bytes(data)
        samples = (len(data) - 1) // length
        return PreparedData(samples - HELD_OUT, HELD_OUT, {})

    run.prepare(prepare)
    tokens = np.memmap(run.data_dir / "tokens.bin", np.uint8, mode="r")

    def windows(samples: Indices) -> Tensor:
        places = samples[:, None] * length + np.arange(length + 1)
        return torch.from_numpy(tokens[places].astype(np.int64))

    return windows

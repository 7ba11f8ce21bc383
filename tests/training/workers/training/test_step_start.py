"""What a step begins with, and can be made so again."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("torch", reason="keeps tensors")

import torch

from workers.training.step_start import StepStart


def test_buffers_and_generators_are_kept_as_they_are_before_a_step() -> None:
    norm, cpu = torch.nn.BatchNorm1d(2), torch.device("cpu")
    start = StepStart(norm, cpu)
    norm(torch.ones(3, 2))
    start.keep()
    assert norm.running_mean is not None and norm.num_batches_tracked is not None
    before, drawn = norm.running_mean.clone(), (torch.rand(2).tolist(), random.random(), float(np.random.rand()))
    norm(torch.full((3, 2), torch.nan))
    start.restore_buffers()
    assert torch.equal(norm.running_mean, before), "its kernel doesn't bump the buffer's version"
    assert int(norm.num_batches_tracked) == 1
    norm(torch.ones(3, 2))
    start.restore()
    assert torch.equal(norm.running_mean, before)
    assert (torch.rand(2).tolist(), random.random(), float(np.random.rand())) == drawn

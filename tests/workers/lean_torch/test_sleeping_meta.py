"""A rank without tensors on "meta" does not import the rules for them, and one that makes such a tensor has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="they are PyTorch's rules")

ROOT = Path(__file__).resolve().parents[3]

ASLEEP = """
import sys, warnings
warnings.simplefilter("error")
from workers.lean_torch import import_torch
import_torch()
import torch
from torch.nn import functional
def awake():
    return "torch._decomp.decompositions" in sys.modules
def shape_of_pooled():
    "By a rule for tensors without data that is written in Python only."
    images, places = torch.empty(1, 1, 3, 3, device="meta"), torch.empty(1, 2, 2, 2, device="meta")
    return functional.grid_sample(images, places, align_corners=False).shape
"""


def run(code: str, before: str = "") -> None:
    """In a Python of its own: what is imported stays imported."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", before + ASLEEP + code], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.windows
def test_training_leaves_them_asleep_and_a_tensor_without_data_wakes_them() -> None:
    run(
        """
import importlib.util, inspect
import_torch()
assert importlib.util.find_spec("torch._meta_registrations").origin.endswith(".py")
assert inspect.getmodule(awake) is sys.modules["__main__"], "it asks every module for its file"
model = torch.nn.Sequential(torch.nn.Embedding(8, 4), torch.nn.TransformerEncoderLayer(4, 2, batch_first=True))
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
model(torch.zeros(2, 3, dtype=torch.int64)).sum().backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
assert not awake()
made = torch.empty_strided((2, 3), (1, 2), device="meta")
assert made.stride() == (1, 2) and awake()
assert shape_of_pooled() == (1, 1, 2, 2)
assert torch._meta_registrations.register_meta and sys.modules["torch._meta_registrations"].__file__
assert torch._refs.abs(torch.tensor(-1.0)) == 1
"""
    )


@pytest.mark.parametrize(
    "wanted",
    [
        "assert torch._decomp.get_decompositions",
        "from torch._prims.rng_prims import run_dtensor_rng_op\nimport torch.utils._content_store",
        "from torch._subclasses import FakeTensorMode\nwith FakeTensorMode(): torch.ones(2) + 1",
        "torch.compile(lambda x: x.sin() + 1, backend='aot_eager')(torch.ones(3))",
    ],
)
def test_who_wants_them_gets_them(wanted: str) -> None:
    run(f"assert not awake()\n{wanted}\nassert awake()\nassert shape_of_pooled() == (1, 1, 2, 2)\n")


def test_two_threads_may_want_them_at_once() -> None:
    run(
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as threads:
    shapes = [future.result() for future in [threads.submit(shape_of_pooled) for _ in range(8)]]
assert shapes == [(1, 1, 2, 2)] * 8
"""
    )


def test_a_torch_that_cannot_be_asked_for_parts_later_has_them_at_once() -> None:
    """As one would be that keeps its lazy modules in another way."""
    run(
        "assert awake()\nassert shape_of_pooled() == (1, 1, 2, 2)\n",
        """
import sys
from importlib import machinery
class Without(machinery.SourceFileLoader):
    def get_code(self, name):
        source = self.get_data(self.path).decode().replace("_lazy_modules", "_modules_that_wait")
        return compile(source, self.path, "exec")
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        spec = machinery.PathFinder.find_spec(name, path)
        spec.loader = Without(name, spec.origin)
        return spec
sys.meta_path.insert(0, Finder)
""",
    )

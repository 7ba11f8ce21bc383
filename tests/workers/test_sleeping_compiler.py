"""A rank that compiles nothing does not import PyTorch's compiler, and one that does gets the real one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="it is PyTorch's compiler")

ROOT = Path(__file__).resolve().parents[2]

ASLEEP = """
import gc, os, sys
gc.disable()
import torch
from workers.sleeping_compiler import let_compiler_sleep
let_compiler_sleep()
let_compiler_sleep()
def awake():
    return "torch._dynamo.convert_frame" in sys.modules
def train(kind, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = kind(model.parameters(), lr=0.1, **options)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    return model.weight.detach().tolist()
trained = [train(torch.optim.AdamW, fused=True), train(torch.optim.AdamW), train(torch.optim.SGD, momentum=0.9)]
"""


def run(code: str) -> None:
    """In a Python of its own: what is imported stays imported."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "" if sys.platform == "win32" else "lo"}
    if sys.platform == "win32":
        environment.pop("GLOO_SOCKET_IFNAME")
    found = subprocess.run(
        [sys.executable, "-c", f"{ASLEEP}{code}os._exit(0)"], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.windows
def test_optimizers_leave_it_asleep_and_train_the_same() -> None:
    run(
        "import inspect\n"
        "assert inspect.getmodule(train) is sys.modules['__main__'], 'it asks every module for its file'\n"
        "assert not awake()\n"
        "import importlib.util\n"
        "assert importlib.util.find_spec('torch._dynamo').origin.endswith('__init__.py') and not awake()\n"
        "from torch._dynamo.eval_frame import OptimizedModule\n"
        "assert awake() and torch._dynamo.OptimizedModule is OptimizedModule, 'it is executed once'\n"
        "again = [train(torch.optim.AdamW, fused=True), train(torch.optim.AdamW),"
        " train(torch.optim.SGD, momentum=0.9)]\n"
        "assert again == trained\n"
        "assert torch._dynamo.__file__ and type(sys.modules['torch._dynamo']).__name__ == 'module'\n"
    )


@pytest.mark.windows
def test_ddp_leaves_it_asleep(tmp_path: Path) -> None:
    meeting = (tmp_path / "meeting").as_uri()
    run(
        "import torch.distributed as dist\n"
        f"dist.init_process_group('gloo', init_method={meeting!r}, rank=0, world_size=1)\n"
        "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))\n"
        "model(torch.ones(2, 3)).sum().backward()\n"
        "dist.destroy_process_group()\n"
        "assert not awake()\n"
    )


def test_a_function_is_compiled_by_its_first_call() -> None:
    """As DeepSpeed does with functions of an optimizer that hardly anybody uses."""
    run(
        "import inspect\n"
        "@torch.compile\n"
        "def double(x):\n    'Twice.'\n    return x * 2\n"
        "@torch.compile(backend='eager', fullgraph=True)\n"
        "def triple(x):\n    return x * 3 if torch.compiler.is_compiling() else x\n"
        "assert not awake() and double.__doc__ == 'Twice.'\n"
        "assert 'backend' in inspect.signature(torch.compile).parameters\n"
        "@torch.compile(backend='eager', fullgraph=True)\n"
        "def both(x):\n    return triple(x) + (1 if torch.compiler.is_compiling() else 0)\n"
        "assert both(torch.ones(2)).tolist() == [4.0, 4.0] and awake(), 'both are compiled, not just called'\n"
        "assert triple(torch.ones(2)).tolist() == [3.0, 3.0]\n"
        "assert torch.compile.__module__ == 'torch' and not hasattr(torch.compile, '__wrapped__')\n"
        "late = torch.compile(lambda x: x + 1, backend='eager')\n"
        "assert late._torchdynamo_orig_callable and late(torch.ones(1)).item() == 2.0\n"
    )


# These two are not run under Wine, where importing FSDP takes minutes.
SHARD = """
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo", init_method=MEETING, rank=0, world_size=1)
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
model(torch.ones(2, 3)).sum().backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
dist.destroy_process_group()
assert not awake()
import torch._dynamo.config as settings
assert not awake()
settings.recompile_limit = 5
"""


def test_fsdp_leaves_it_asleep_and_what_is_set_meanwhile_holds(tmp_path: Path) -> None:
    run(
        f"MEETING = {(tmp_path / 'meeting').as_uri()!r}\n{SHARD}"
        "torch._dynamo.explain\n"
        "assert awake() and torch._dynamo.config is settings and settings.recompile_limit == 5\n"
    )


def test_sharding_an_optimizer_brings_no_sharded_model_along() -> None:
    run(
        "from workers.strategies.zero import zero_redundancy_optimizer\n"
        "kind = zero_redundancy_optimizer()\n"
        "assert 'torch.distributed.fsdp' not in sys.modules and not awake()\n"
        "import torch.distributed.optim\n"
        "from torch.distributed.optim.named_optimizer import _NamedOptimizer\n"
        "assert kind is torch.distributed.optim.ZeroRedundancyOptimizer and issubclass(kind, torch.optim.Optimizer)\n"
        "assert issubclass(_NamedOptimizer, torch.optim.Optimizer)\n"
    )


@pytest.mark.windows
def test_a_part_that_is_imported_wakes_it_and_what_was_said_of_functions_holds() -> None:
    run(
        "@torch.compiler.disable(recursive=True)\n"
        "def alone(x):\n"
        "    return x * (2 if torch.compiler.is_compiling() else 3)\n"
        "assert alone.__name__ == 'alone' and alone(1) == 3 and not awake()\n"
        "@torch._dynamo.assume_constant_result\n"
        "@torch._dynamo.allow_in_graph\n"
        "def marked(x):\n"
        "    return x\n"
        "assert marked(1) == 1 and not awake()\n"
        "import torch._dynamo.eval_frame\n"
        "assert marked._dynamo_marked_constant\n"
        "assert id(marked) in torch._dynamo.trace_rules._allowed_callable_ids\n"
        "assert awake() and torch._dynamo.eval_frame.__spec__.origin.endswith('eval_frame.py')\n"
        "assert sys.modules['torch._dynamo.eval_frame'] is torch._dynamo.eval_frame\n"
        "assert torch.compile(lambda x: alone(x) + torch.ones(1), backend='eager')(torch.ones(1)).tolist() == [4]\n"
    )


@pytest.mark.windows
def test_compiling_works_after_training_and_functions_left_alone_still_are() -> None:
    run(
        "step = torch.compile(lambda x: train(torch.optim.AdamW) and x * 2, backend='eager')\n"
        "assert step(torch.ones(2)).tolist() == [2, 2]\n"
        "assert train(torch.optim.AdamW) == trained[1]\n"
        "kept = torch.optim.Optimizer.add_param_group.__wrapped__.__dynamo_disable\n"
        "assert kept is not torch.optim.Optimizer.add_param_group.__wrapped__\n"
    )

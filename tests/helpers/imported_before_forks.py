"""Imports what ranks that train need, and their hosts, once, in the process that they are forked from."""

from __future__ import annotations

import contextlib
import os
import weakref

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # as the recipe says, before it imports transformers
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch.distributed.optim

import tests.helpers.imported_before_plain_forks  # noqa: F401
import workers.host_link.failures
import workers.host_link.inbox
import workers.host_link.reporter
import workers.recipe_api.run
import workers.strategies.fsdp
import workers.strategies.zero  # noqa: F401

torch.set_num_threads(1)
torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # the first optimizer of a process imports torch's compiler
torch.compile(lambda value: value)  # imports the rest of it, as DeepSpeed does

with contextlib.suppress(ImportError):
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # noqa: F401
    from transformers.models.llama import modeling_llama  # noqa: F401

    import peft  # noqa: F401  isort: skip

# PyTorch takes each of its 190 operator libraries apart when a process ends: a tenth of a second in every rank.
for finalizer, info in weakref.finalize._registry.items():  # type: ignore[attr-defined]
    if info.func.__module__ == "torch.library":
        finalizer.atexit = False

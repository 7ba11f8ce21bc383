"""Imports what many ranks and hosts need, once, in the process that they are forked from."""

from __future__ import annotations

import contextlib
import gc
import os

import tests.helpers.torch_imported

gc.disable()
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # as the recipe says, before it imports transformers
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy.random  # noqa: E402, F401
import pytest  # noqa: E402, F401
import torch.distributed.optim  # noqa: E402

import core.host.__main__  # noqa: E402, F401
import tests.helpers.fake_rank  # noqa: E402, F401
import workers.host_link.failures  # noqa: E402
import workers.host_link.inbox  # noqa: E402
import workers.host_link.reporter  # noqa: E402
import workers.recipe_api.run  # noqa: E402
import workers.strategies.fsdp  # noqa: E402
import workers.strategies.zero  # noqa: E402, F401

torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # the first optimizer of a process imports torch's compiler
torch.compile(lambda value: value)  # imports the rest of it, as DeepSpeed does

with contextlib.suppress(ImportError):
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # noqa: F401
    from transformers.models.llama import modeling_llama  # noqa: F401

    import peft  # noqa: F401  isort: skip

gc.freeze()
gc.enable()

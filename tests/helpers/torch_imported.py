"""Imports torch as a rank does: quickly, and with its compiler left asleep. Importing this module does all of it."""

from __future__ import annotations

import gc

gc.disable()
import torch  # noqa: E402

from workers.sleeping_compiler import let_compiler_sleep  # noqa: E402

let_compiler_sleep()
torch.set_num_threads(1)
gc.freeze()
gc.enable()

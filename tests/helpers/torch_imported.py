"""Imports torch as a rank does: quickly, and with its compiler left asleep. Importing this module does all of it."""

from __future__ import annotations

import gc

gc.disable()
from workers.lean_torch import import_torch  # noqa: E402

import_torch()
import torch  # noqa: E402

torch.set_num_threads(1)
gc.freeze()
gc.enable()

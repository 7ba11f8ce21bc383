"""Imports torch as a rank does: without looking for garbage meanwhile. Importing this module does all of it."""

from __future__ import annotations

import gc

gc.disable()
import torch  # noqa: E402

torch.set_num_threads(1)
gc.freeze()
gc.enable()

"""Kinds of export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "csv": "CSV tables",
    "tensorboard": "TensorBoard event files",
    "safetensors": "weights (safetensors)",
    "hf": "Hugging Face folder",
}
"""Each kind, and what people call it."""

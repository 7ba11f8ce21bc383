"""Plain values in the heads of files that ranks write into a checkpoint, read without torch.

The format is safetensors (https://github.com/huggingface/safetensors#format): eight bytes with the length of the head,
then the head as JSON. Values other than tensors are JSON in a string of its metadata.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.held_files import open_binary
from core.parsing import parse_json

VALUES_KEY: Final = "rankdeck"
# The limit of the safetensors package itself.
MAX_HEAD_BYTES: Final = 100_000_000


def read_head(path: Path) -> tuple[Any, int]:
    """Return the head of a file and the offset of its tensors; raises OSError, ValueError or struct.error."""
    with open_binary(path) as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > MAX_HEAD_BYTES:
            raise ValueError(f"a head of {length} bytes")
        return parse_json(file.read(length)), 8 + length


def read_values(path: Path) -> Mapping[str, Any]:
    """The plain values of a file; empty where the file is missing or holds none, as with programs of a user's own."""
    try:
        values = parse_json(read_head(path)[0]["__metadata__"][VALUES_KEY])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return {}
    return values if isinstance(values, dict) else {}

"""Plain values in the files that ranks write into a checkpoint, read without torch: they stand in the file's head.

The format is safetensors (https://github.com/huggingface/safetensors#format): eight bytes that say how long the head
is, then the head as JSON. `workers.state_files.safetensors_files` keeps values other than tensors in the
head's metadata, as JSON in a string.
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
    """The head of a file, and where its tensors' bytes begin.

    Raises:
        OSError, ValueError, struct.error: It cannot be read, or is not such a file.
    """
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

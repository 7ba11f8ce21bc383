"""A process that turns parts into tokens: jobs come as JSON lines, and so do the answers. Its owner's end is its end.

``python -m workers.data.tokens.part_worker``, started by `workers.data.tokens.pool`. A job is
``{"part": {…}, "tokenizer": {…}, "out": "…"}``; answers are ``{"read": bytes}`` now and then, and at last
``{"done": {…}}`` or ``{"error": {…}}``.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.fault_points import reach
from workers.data.reading.pieces import Part
from workers.data.tokens.part_tokens import write_part
from workers.data.tokens.tokenizer_spec import Encoder, TokenizerSpec

_TELL_EVERY_S: Final = 0.25


def main() -> int:
    """Does jobs until there are no more; the exit code."""
    encoder: Encoder | None = None
    opened: dict[str, Any] = {}
    for line in sys.stdin.buffer:
        job = json.loads(line)
        try:
            if encoder is None or job["tokenizer"] != opened:
                encoder, opened = TokenizerSpec(**job["tokenizer"]).open(), job["tokenizer"]
            _tell({"done": write_part(Part(**job["part"]), encoder, Path(job["out"]), _Progress())})
            reach("part_written")
        except RankdeckError as error:
            _tell({"error": {"kind": type(error).__name__, **error.as_dict()}})
        except Exception as error:
            traceback.print_exc()
            _tell({"error": {"kind": "", "cause": f"{type(error).__name__}: {error}"}})
    return 0


class _Progress:
    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, read: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _TELL_EVERY_S
            _tell({"read": read})


def _tell(answer: dict[str, Any]) -> None:
    try:
        sys.stdout.buffer.write(json.dumps(answer).encode("utf-8") + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        os._exit(1)  # the process that wanted the tokens is gone


if __name__ == "__main__":
    sys.exit(main())

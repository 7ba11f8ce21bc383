"""Observations of a rank: the bits of a tensor, and the error that a dead peer causes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from core.errors import RankdeckError
from workers.host_link.failures import explain


def digest(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def error_of(collective: Callable[[], object]) -> dict[str, Any]:
    """The error of a collective that a dead rank takes no part in, and the seconds until it came."""
    began = time.monotonic()
    try:
        collective()
    except RankdeckError as error:
        seconds = time.monotonic() - began
        report = asdict(explain(error, "cpu:0"))
        return {
            "title": error.title,
            "cause": error.cause,
            "type": type(error).__name__,
            "s": seconds,
            "report": report,
        }
    return {}

"""A rank's failure report: title, cause and next step for whatever was raised.

torch is not imported here: it may be what is missing.
"""

from __future__ import annotations

import errno
import re
import traceback
from typing import Final

from core.errors import MemoryShortError, NonFiniteError, PeerLostError, RankdeckError, UsageError
from core.protocol.messages import RankFailed

_PEER_GONE: Final = re.compile(
    r"closed by peer|reset by peer|Broken pipe|Connection refused|remote process exited"
    r"|ncclRemoteError|ncclSystemError|Socket closed",
    re.IGNORECASE,
)
_HOST_MEMORY: Final = re.compile(r"DefaultCPUAllocator|can't allocate memory|not enough memory", re.IGNORECASE)
_WAITED_TOO_LONG: Final = re.compile(r"Timed out waiting \d+ ?ms|Application timeout|Watchdog caught collective", re.I)
_KINDS: Final = {NonFiniteError: "non_finite", MemoryShortError: "out_of_memory"}
_UNUSED: Final = "find_unused_parameters=True"
_NOT_GATHERED: Final = "mixed torch.Tensor and DTensor"


def explain(error: BaseException, device: str) -> RankFailed:
    """The report of a rank's failure."""
    parts = explain_as_error(error, device)
    trace = "".join(traceback.format_exception(error))[-50_000:]
    usage = isinstance(parts, UsageError)
    kind = next((kind for types, kind in _KINDS.items() if isinstance(error, types)), "")
    return RankFailed(usage=usage, traceback=trace, peer_lost=_has_lost_peer(error), kind=kind, **parts.as_dict())


def is_out_of_memory(error: BaseException) -> bool:
    short_of_device = type(error).__name__ == "OutOfMemoryError"
    return short_of_device or isinstance(error, MemoryError) or _HOST_MEMORY.search(str(error)) is not None


def _has_lost_peer(error: BaseException | None) -> bool:
    """Whether the error, or one that it was raised from, says that another rank has exited."""
    while error is not None:
        if isinstance(error, PeerLostError) or (isinstance(error, RuntimeError) and _PEER_GONE.search(str(error))):
            return True
        error = error.__cause__ or error.__context__
    return False


def explain_as_error(error: BaseException, device: str) -> RankdeckError:
    """`error` with title, cause and next step; itself if it has them."""
    text = " ".join(str(error).split())
    if isinstance(error, RankdeckError):
        return error
    if type(error).__name__ == "OutOfMemoryError":
        return RankdeckError(
            f"The model and one micro-batch don't fit into the memory of {device} ({_short(text)}).",
            "Halve the micro-batch (accumulation keeps the global batch), shorten the sequence, "
            "or turn gradient checkpointing on.",
            title="The device ran out of memory",
        )
    if isinstance(error, MemoryError) or _HOST_MEMORY.search(text):
        return RankdeckError(
            f"A process requested more main memory than is available ({_short(text)}).",
            "Close other programs, use fewer CPU devices, or a smaller micro-batch.",
            title="The computer ran out of memory",
        )
    if isinstance(error, ModuleNotFoundError):
        return UsageError(
            f"The recipe needs the Python package {error.name!r}, which is not installed here.",
            f"Install it into the environment that Rankdeck runs in: pip install {error.name}",
            title="A package is missing",
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return RankdeckError(
            f"{error.filename or 'A file'} could not be written.",
            "Free some space, then resume the run.",
            title="The disk is full",
        )
    known = _explained_by_torch(text) if isinstance(error, RuntimeError) else None
    return known or RankdeckError(
        f"{type(error).__name__}: {_short(text)}",
        "See its log in the run's folder for the traceback.",
        title="The training code failed",
    )


def _explained_by_torch(text: str) -> RankdeckError | None:
    """The error behind torch's message; None where the recipe's own code may have raised it."""
    if _NOT_GATHERED in text:
        return RankdeckError(
            "In ZeRO stages 2 and 3 and in mode fsdp a model's weights are gathered from all devices when the model is "
            f"called; the recipe used some of them without calling the model ({_short(text)}).",
            "In the recipe, call the model that loss and sample are given, not a part of it; "
            "or choose ZeRO stage 1 or DDP.",
            title="A part of the model was called directly",
        )
    if _UNUSED in text:
        return RankdeckError(
            "In DDP every parameter must take part in every step, but the loss did not depend on some of them.",
            "Leave those parameters out of the model, or turn on Unused parameters.",
            option="--find-unused-parameters",
            title="Some parameters got no gradient",
        )
    if _WAITED_TOO_LONG.search(text):
        return RankdeckError(
            f"It waited for the others longer than the collective timeout ({_short(text)}).",
            "Check the other devices' logs. If their work may take that long, raise the collective timeout.",
            option="--collective-timeout-s",
            title="Another device does not answer",
        )
    if _PEER_GONE.search(text):
        return RankdeckError(
            f"The gradient all-reduce failed because the process on another device exited ({_short(text)}).",
            "Look at the device that failed first; this is only a secondary failure.",
            title="Another process ended",
        )
    return None


def _short(text: str) -> str:
    return text if len(text) <= 400 else text[:397] + "..."

"""Stacks of a rank's threads, for the host to tell which rank of a run that hangs holds up the others.

A rank answers by a thread beside the training thread (`own_stacks`); one in which something holds the interpreter lock
cannot answer.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Final

from core.protocol.messages import Stacks, Waits

MAX_TEXT: Final = 60_000
MAX_FRAMES: Final = 60
# What calls, or waits for, something on behalf of the frame outside of it.
_PASSES_ON: Final = ("/threading.py", "/queue.py", "/contextlib.py", "/torch/_ops.py", "/torch/utils/_contextlib.py")
_COLLECTIVE: Final = (
    "/torch/distributed/",
    "/torch/nn/parallel/",
    "/deepspeed/",
    "/workers/all_reduce/",
    "/workers/strategies/",
)
# The backward pass. In it gradients are computed, and all-reduced by C++.
_ENGINE: Final = "/torch/autograd/graph.py"

# File, line and function of a frame.
Place = tuple[str, int, str]


def own_stacks() -> Stacks:
    """Stacks of this process's threads but the calling one."""
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    # Autograd's own threads run Python only in hooks; Python did not start them.
    started = {t.ident for t in threading.enumerate() if not isinstance(t, threading._DummyThread)}
    main = threading.main_thread().ident or 0
    order = sorted(frames, key=lambda ident: (ident != main, ident in started, ident))
    text = "\n".join(_text(names.get(ident, "of a library"), frames[ident]) for ident in order)
    places = [_places(frames[ident]) for ident in order if ident == main or ident not in started]
    place, waits = judge(places)
    return Stacks(text[:MAX_TEXT], place, waits)


def judge(stacks: Sequence[Sequence[Place]]) -> tuple[str, Waits]:
    """The innermost place of a rank's own, and whether it waits for others there.

    `stacks`: the training thread's frames and those of autograd's threads that run Python, outermost frame first.
    """
    place, waits = _judge_one(())
    for stack in stacks:
        place, waits = _judge_one(stack)
        if waits != "perhaps":
            # A thread of autograd counts if all that is known is that the training thread waits for it.
            break
    return place, waits


def _judge_one(stack: Sequence[Place]) -> tuple[str, Waits]:
    for file, line, function in reversed(stack):
        path = file.replace("\\", "/")
        if path.endswith(_PASSES_ON):
            continue
        place = f"{'/'.join(path.split('/')[-2:])}:{line} in {function}"
        if path.endswith(_ENGINE):
            return place, "perhaps"
        return place, "yes" if any(part in path for part in _COLLECTIVE) else "no"
    return "", "no"


def _places(frame: FrameType) -> list[Place]:
    return [(entry.filename, entry.lineno or 0, entry.name) for entry in _summary(frame)]


def _text(name: str, frame: FrameType) -> str:
    return f"Thread “{name}” (innermost call last):\n{''.join(_summary(frame).format())}"


def _summary(frame: FrameType) -> traceback.StackSummary:
    walked = list(traceback.walk_stack(frame))[:MAX_FRAMES]
    return traceback.StackSummary.extract(iter(reversed(walked)))

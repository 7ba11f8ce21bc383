"""Where a rank's threads are, and whether it waits for others."""

from __future__ import annotations

import threading

import pytest

from core.protocol.codec import encode
from workers.host_link.stacks import MAX_TEXT, Place, judge, own_stacks

OPS: Place = ("/x/torch/_ops.py", 1, "__call__")
TRAINER: Place = ("/x/workers/training/trainer.py", 112, "_forward_backward")
ENGINE: Place = ("/x/torch/autograd/graph.py", 869, "_engine_run_backward")
LOSS: Place = ("/home/a/mine/train.py", 57, "loss")
THREADING: Place = ("/usr/lib/python3.11/threading.py", 331, "wait")


@pytest.mark.parametrize(
    ("stacks", "place", "waits"),
    [
        ([[TRAINER, LOSS]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, LOSS, THREADING]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, ENGINE]], "autograd/graph.py:869 in _engine_run_backward", "perhaps"),
        # a hook that sleeps in the backward pass, on the training thread, or on one of autograd's
        ([[TRAINER, ENGINE, LOSS]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, ENGINE], [LOSS]], "mine/train.py:57 in loss", "no"),
        ([[TRAINER, LOSS], [ENGINE]], "mine/train.py:57 in loss", "no"),
        ([[("D:\\x\\torch\\distributed\\c10d.py", 9, "all_reduce")]], "distributed/c10d.py:9 in all_reduce", "yes"),
        (
            [[TRAINER, ("/x/torch/distributed/_functional_collectives.py", 3, "wait_tensor"), OPS]],
            "distributed/_functional_collectives.py:3 in wait_tensor",
            "yes",
        ),
        ([[TRAINER, ENGINE, ("/x/workers/all_reduce/peer_watch.py", 116, "_wait_long")]],
         "all_reduce/peer_watch.py:116 in _wait_long", "yes"),
        ([[TRAINER, ("/x/workers/strategies/ddp.py", 99, "settle")]], "strategies/ddp.py:99 in settle", "yes"),
        ([], "", "no"),
    ],
)  # fmt: skip
def test_whether_a_rank_waits_for_others(stacks: list[list[Place]], place: str, waits: str) -> None:
    assert judge(stacks) == (place, waits)


def test_the_stacks_of_this_very_process() -> None:
    """Asked by another thread, as the host's request is; the training thread is the main thread."""
    found = []

    def wait_for_answer() -> None:
        thread = threading.Thread(target=lambda: found.append(own_stacks()))
        thread.start()
        thread.join()

    wait_for_answer()
    (stacks,) = found
    assert stacks.text.startswith("Thread “MainThread”") and "in wait_for_answer" in stacks.text
    assert "test_stacks.py" in stacks.place and stacks.waits == "no"


def test_stacks_without_an_end_fit_a_message() -> None:
    found = []

    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        else:
            thread = threading.Thread(target=lambda: found.append(own_stacks()))
            thread.start()
            thread.join()

    deeper(600)
    assert len(found[0].text) <= MAX_TEXT and encode(found[0])
    assert "in deeper" in found[0].place

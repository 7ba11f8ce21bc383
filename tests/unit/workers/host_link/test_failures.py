"""A rank's last words, for a person."""

from __future__ import annotations

import errno

import pytest

from core.errors import DatasetError, PeerLostError, RankdeckError
from workers.host_link.failures import explain


class OutOfMemoryError(RuntimeError):
    pass


@pytest.mark.parametrize(
    ("error", "title", "in_cause", "usage"),
    [
        (DatasetError("Empty.", "Choose another."), "The dataset cannot be used", "Empty.", True),
        (RankdeckError("c", "n", title="t"), "t", "c", False),
        (OutOfMemoryError("CUDA out of memory. Tried 2 GiB"), "The device ran out of memory", "cuda:0", False),
        (MemoryError(), "The computer ran out of memory", "main memory", False),
        (RuntimeError("DefaultCPUAllocator: can't allocate"), "The computer ran out of memory", "Default", False),
        (ModuleNotFoundError("No module named 'tokenizers'", name="tokenizers"), "A package is missing", "token", True),
        (OSError(errno.ENOSPC, "No space", "/x/y"), "The disk is full", "/x/y", False),
        (RuntimeError("[gloo/pair.cc] Connection closed by peer [127.0.0.1]"), "Another process ended", "gloo", False),
        (RuntimeError("gloo: Timed out waiting 300000ms for recv"), "Another device does not answer", "timeout", False),
        (RuntimeError("… `find_unused_parameters=True` …"), "Some parameters got no gradient", "every step", False),
        (ZeroDivisionError("division by zero"), "The training code failed", "ZeroDivisionError: division", False),
    ],
)
def test_words(error: BaseException, title: str, in_cause: str, usage: bool) -> None:
    words = explain(error, "cuda:0")
    assert words.title == title and in_cause in words.cause and words.usage is usage and words.next_step


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (PeerLostError("A peer is gone.", "Look at it."), True),
        (RuntimeError("[gloo/pair.cc] Connection closed by peer [127.0.0.1]"), True),
        (RankdeckError("The script said: a peer is gone.", "n"), False),
        (ValueError("bad input"), False),
    ],
)
def test_a_lost_peer_is_a_field_of_the_report(error: Exception, lost: bool) -> None:
    assert explain(error, "cpu").peer_lost is lost
    try:
        raise error
    except Exception as first:
        second = KeyError("while cleaning up")
        second.__context__ = first
    assert explain(second, "cpu").peer_lost is lost


def test_the_traceback_goes_with_it() -> None:
    try:
        raise ValueError("inner\nlines")
    except ValueError as error:
        words = explain(error, "cpu")
    assert "test_failures.py" in words.traceback and "\n" not in words.cause

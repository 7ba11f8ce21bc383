"""Whose fault a failed attempt is, and how it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.host.failures import RankFailure, describe, last_lines, root_cause, settle_limit_s
from core.protocol.messages import RankFailed


def reported(cause: str, usage: bool = False) -> RankFailed:
    return RankFailed("Title", cause, "Next.", usage)


def test_the_first_failure_by_time_is_the_root_cause() -> None:
    failures = [
        RankFailure(0, 5.0, returncode=1),
        RankFailure(1, 4.0, returncode=-9),
        RankFailure(2, 6.0, returncode=1),
    ]
    assert root_cause(failures).rank == 1


@pytest.mark.parametrize(
    "words",
    [
        "[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:39017",
        "Connection reset by peer",
        "[WinError 10054] An existing connection was forcibly closed by the remote host",
        "NCCL communicator was aborted on rank 1",
    ],
)
def test_a_broken_collective_is_an_echo_even_if_it_was_heard_first(words: str) -> None:
    failures = [RankFailure(0, 4.0, report=reported(words)), RankFailure(1, 4.1, returncode=-9)]
    assert root_cause(failures).rank == 1
    assert root_cause(failures[:1]).rank == 0  # alone it is all that is known
    assert settle_limit_s(failures[:1]) > settle_limit_s(failures)  # so its cause is waited for


def test_a_rank_that_reports_a_lost_peer_is_not_the_root_cause_whatever_its_text_says() -> None:
    lost = RankFailed("Another rank ended", "Rank 1 exited.", "Next.", peer_lost=True)
    failures = [RankFailure(0, 4.0, report=lost), RankFailure(1, 4.1, returncode=1)]
    assert root_cause(failures).rank == 1
    told_in_text = RankFailure(0, 4.0, report=reported("The peer is gone."))
    assert root_cause([told_in_text, failures[1]]).rank == 0


@pytest.mark.parametrize("code", [-11, 0xC0000005])
def test_a_rank_that_crashed_is_no_echo_whatever_its_log_says(code: int) -> None:
    failures = [
        RankFailure(0, 4.0, returncode=code, tail=("Connection closed by peer",)),
        RankFailure(1, 4.5, returncode=-9),
    ]
    assert root_cause(failures).rank == 0


@pytest.mark.parametrize(
    ("code", "cause", "step"),
    [
        (0xC0000142, "page file", "page file"),
        (0xC00000FD, "stack", "Look at logs/rank1.log"),
    ],
)
def test_a_native_death_has_a_cause_and_a_next_step(code: int, cause: str, step: str) -> None:
    root = RankFailure(1, 1.0, device="GPU 1", returncode=code, log=Path("run") / "logs" / "rank1.log")
    error = describe(root, [root], "Resuming continues from step 5.")
    assert cause in error["cause"]
    assert step in error["next_step"]
    assert "Look at logs/rank1.log." in error["next_step"]


def test_the_words_name_root_echo_log_and_what_resuming_gives() -> None:
    log = Path("run") / "logs" / "rank1.log"
    root = RankFailure(1, 4.0, "CPU 1", step=12, returncode=-9, log=log, tail=("first", "CUDA error: out of memory"))
    words = describe(root, [root, RankFailure(0, 4.1, "CPU 0", report=reported("x"))], "Resume the run.")
    assert words["cause"] == (
        "The process on CPU 1, after step 12: killed (often by the system's out-of-memory killer) (SIGKILL). "
        "Its last output: “CUDA error: out of memory”. The process on CPU 0 ended because of it."
    )
    assert words["title"] == "The process on CPU 1 exited unexpectedly" and words["log"] == "logs/rank1.log"
    assert words["next_step"] == "Look at logs/rank1.log. Resume the run."


def test_a_ranks_own_words_are_passed_on() -> None:
    log = Path("run") / "logs" / "rank0.log"
    root = RankFailure(0, 1.0, "GPU 0", log=log, report=reported("The dataset is too small."))
    words = describe(root, [root], "")
    assert words == {
        "title": "GPU 0: Title",
        "cause": "The dataset is too small.",
        "next_step": "Next.",
        "log": "logs/rank0.log",
    }


def test_the_last_lines_of_a_log_leave_out_what_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    assert last_lines(log) == ()
    log.write_bytes(
        b"x\n" * 9000 + "Fehler: Käse \xff".encode("latin-1") + b"\n\nrankdeck: the run's host is gone (x)\n"
    )
    assert last_lines(log)[-1] == "Fehler: K\ufffdse \ufffd" and len(last_lines(log)) == 8

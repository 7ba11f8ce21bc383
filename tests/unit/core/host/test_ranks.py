"""What the host knows of its ranks when their processes end before their last words are read."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from core.processes import Child
from core.protocol.messages import RankFailed
from core.protocol.server import Connection
from tests.helpers.resolved_run import made_ranks


class Ended:
    """A process that has ended."""

    def poll(self) -> int:
        return 1


def test_a_process_that_ended_is_heard_out_once_its_connection_is_read_to_the_end(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    log.write_text("the log's last line\n")
    ranks = made_ranks("single", 1, log=log)
    rank = ranks[0]
    rank.child, rank.connection = cast(Child, Ended()), cast(Connection, object())
    rank.note_step({"step": 1})
    ranks.poll(10.0, finishing=False)
    assert ranks.all_exited and not ranks.heard_out
    assert (ranks.failures[0].returncode, ranks.failures[0].step) == (1, 1)

    rank.note_step({"step": 3})
    ranks.note_failure(rank, RankFailed("Out of memory", "The card is full.", "Take less.", ""), 10.1)
    rank.connection = None  # its end was reached
    assert ranks.heard_out
    assert (ranks.failures[0].report, ranks.failures[0].step) == (
        RankFailed("Out of memory", "The card is full.", "Take less.", ""),
        3,
    )


def test_a_checkpoint_is_a_long_activity_until_the_part_is_written_or_the_next_step_made() -> None:
    rank = made_ranks("single", 1)[0]
    rank.phase = "running"
    rank.saves()
    assert rank.phase == "running"  # a script's wrapper saves for it, and hears it meanwhile
    for ends in (rank.has_saved, lambda: rank.note_step({"step": 2})):
        rank.phase = "training"
        rank.saves()
        assert rank.takes_its_time
        ends()
        assert not rank.takes_its_time


def test_ranks_that_share_the_work_are_connected() -> None:
    assert made_ranks("ddp", 2).connected
    assert not made_ranks("independent", 2).connected and not made_ranks("single", 1).connected

"""Every process of a run is killed at each named moment, and the run resumed: the weights end up bit by bit the same.

Each mode has one run that is killed again and again, at another moment each time, and one that is never disturbed.
Killing the same run over and over is harder on it than killing a fresh one each time, and much quicker.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run, newest, processes, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

STEPS = 80

# What each moment is numbered by stands in core.fault_points; a moment without a number is the first of its kind in
# that attempt. "{next}" becomes the number of the next checkpoint.
MOMENTS = {
    "before a claim": "before_claim@8",
    "mid-chunk": "mid_chunk@14",
    "during the writing of weights": "weights_write",
    "before a part is named": "before_staged",
    "between weights and manifest": "before_manifest@{next}",
    "between manifest and ledger": "manifest_written@{next}",
    "during the replacing of the ledger": "replace:killed/chunk_tracker_state.json@3",
    "after the replacing of the ledger": "ledger_replaced@{next}",
}
# What is at work there is the same in every mode.
IN_DDP_ONLY = ("before a part is named", "after the replacing of the ledger")


def assert_all_dead(store: RunStore) -> None:
    """No process of the run is left within the five seconds that ranks have, and the host did not end by itself."""
    deadline = time.monotonic() + 5.0
    while (left := processes(store)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, left


@pytest.mark.parametrize("mode", ["ddp", pytest.param("independent", marks=pytest.mark.second_tier)])
def test_killed_at_every_moment_and_resumed(mode: str, tmp_path: Path) -> None:
    text = write_text(tmp_path / "tëxt.txt")
    settings = {"steps": STEPS, "epochs": 3, "checkpoint_every_steps": 4, "options": {"dropout": 0.1}}
    undisturbed = make_run(tmp_path / "never killed", text, mode, 2, **settings)
    assert host(undisturbed) == 0

    store = make_run(tmp_path / "killed", text, mode, 2, **settings)
    kept = 0
    moments = {name: fault for name, fault in MOMENTS.items() if mode == "ddp" or name not in IN_DDP_ONLY}
    for moment, fault in moments.items():
        assert host(store, fault.format(next=kept + 1)) != 0, f"{moment}: nothing was killed"
        assert_all_dead(store)
        assert newest(store) >= kept, f"{moment}: a checkpoint was lost"
        kept = newest(store)
    assert host(store) == 0

    assert store.model.read_bytes() == undisturbed.model.read_bytes()
    assert curve(store) == curve(undisturbed)
    assert len(lines(store, "launch")) == len(moments) + 1
    assert store.state().step == STEPS

"""Independent ranks that synchronise, killed and stopped around a round: the weights end up bit by bit alike.

As in `test_kill_phases` one run is disturbed again and again and one never is. Replica groups are uneven: one rank
is out of data long before the other and goes on voting, and the outer optimizer's state has to come back too.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from core.checkpoints.state_header import read_values
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run, newest, processes, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

EVERY = 10
SETTINGS = {
    "epochs": 1,
    "dataset_chunk_size": 150,  # five chunks: one rank gets three of them, the other two
    "samples_per_block": 750,
    "checkpoint_every_steps": 7,
    "sync_every": EVERY,
    "sync_method": "diloco",
    "options": {"dropout": 0.1},
}
MOMENTS = {
    "before a ballot": "before_ballot@2",
    "between ballot and synchronisation": "after_ballot@3",
    "in the middle of the synchronisation": "mid_synchronisation",
    "after the synchronisation": "after_synchronisation@5",
    "between weights and manifest": "before_manifest@{next}",
    "when one rank is out of data": "after_ballot@9",
    "just before the last round": "before_ballot@11",
}


def rounds_of(store: RunStore) -> list[int]:
    """The round that each rank's part of the newest checkpoint is of."""
    folder = store.checkpoints / str(newest(store))
    return [read_values(folder / f"rank{rank}.safetensors")["counters"]["dial"]["round"] for rank in range(2)]


def kill_rank(store: RunStore, rank: int, at_step: int) -> None:
    """Ends one rank's process, hard, once it has reported a step."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(line["rank"] == rank and line["step"] >= at_step for line in lines(store, "step")):
            break
        time.sleep(0.02)
    psutil.Process(processes(store)[rank].pid).kill()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    folder = tmp_path_factory.mktemp("undisturbed")
    store = make_run(folder / "run", write_text(folder / "tëxt.txt", 12_000), "independent", 2, **SETTINGS)
    assert host(store) == 0
    return store


def test_all_ranks_end_alike_though_one_had_less_data(undisturbed: RunStore) -> None:
    last = {rank: max(li["step"] for li in lines(undisturbed, "step") if li["rank"] == rank) for rank in (0, 1)}
    assert max(last.values()) - min(last.values()) > 2 * EVERY, "the replica groups are to be uneven"
    losses = lines(undisturbed, "merge")[-1]["val_losses"]
    assert losses["rank 0"] == losses["rank 1"]
    sent = sum(line["sync_bytes"] for line in lines(undisturbed, "step") if line["rank"] == 0)
    rounds = max(line["sync_round"] for line in lines(undisturbed, "step"))
    weights = sum(path.stat().st_size for path in undisturbed.dir.glob("model.safetensors"))
    assert rounds == (max(last.values()) - 1) // EVERY, "the last one comes after the last step"
    assert 0.5 * weights * rounds < sent < 1.1 * weights * rounds


def test_killed_and_stopped_around_rounds(undisturbed: RunStore, tmp_path: Path) -> None:
    text = Path(undisturbed.config().dataset_file)
    store = make_run(tmp_path / "disturbed", text, "independent", 2, **SETTINGS)
    kept = 0
    for moment, fault in MOMENTS.items():
        assert host(store, fault.format(next=kept + 1)) != 0, f"{moment}: nothing was killed"
        assert newest(store) >= kept, f"{moment}: a checkpoint was lost"
        kept = newest(store)
        if kept:
            first, second = rounds_of(store)
            assert first == second, f"{moment}: a checkpoint is mixed of two rounds"
    assert host(store) == 0
    assert store.model.read_bytes() == undisturbed.model.read_bytes()
    assert curve(store) == curve(undisturbed)


def test_stopped_in_a_round_and_left_by_a_rank(undisturbed: RunStore, tmp_path: Path) -> None:
    text = Path(undisturbed.config().dataset_file)
    store = make_run(tmp_path / "stopped", text, "independent", 2, **SETTINGS)
    for step in (13, 24):  # after the first round, when both have begun for sure
        assert host(store, stop_at=step) == 0
        assert store.state().state == "stopped"
        first, second = rounds_of(store)
        assert first == second
    killer = threading.Thread(target=kill_rank, args=(store, 1, 62))
    killer.start()
    assert host(store) != 0, "a rank was killed"
    killer.join(70)
    assert store.state().state == "failed"
    assert store.state().error is not None
    assert host(store) == 0
    assert store.model.read_bytes() == undisturbed.model.read_bytes()
    assert curve(store) == curve(undisturbed)

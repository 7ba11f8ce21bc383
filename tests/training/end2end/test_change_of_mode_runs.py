"""One run that goes on in mode after mode through the command line: the ledger, the curves and the loss carry on."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from core.cli import main
from core.client import stop_run, wait_for_end
from core.ledger.ledger import Ledger
from core.ledger.state_file import read_state_file
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import all_lines, kept, lines, write_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.windows,
    pytest.mark.timeout(290),
    pytest.mark.usefixtures("quick_hosts"),
]

EPOCHS = 2
WARMUP = 5
SMALL = shlex.split(
    "--seq-len 16 --batch-size 4 --dataset-chunk-size 32 --samples-per-block 320 --eval-every 40 --lr 5e-3 --epochs 2 "
    "--checkpoint-every-steps 20 --set n_layer=1 --set n_head=2 --set n_embd=16 --set sample_tokens=0 "
    f"--set warmup_steps={WARMUP} --val-samples 8 --strict"
)


class Leg(NamedTuple):
    """One attempt: how it goes on, how it ends, and what is said of the weights before it starts."""

    flags: str
    end: str
    words: str = ""


CHAINS = {
    "by the best copy": (
        Leg("--mode ddp --devices cpu:2", "stop"),
        Leg("--mode single --devices cpu:1", "stop"),
        Leg("--mode zero --zero-stage 1 --zero-engine torch --devices cpu:2", "kill"),
        Leg("--mode independent", "stop"),
        Leg("--mode ddp", "finish", "is missing from these weights, though its samples count as trained"),
    ),
    "by the average": (
        Leg("--mode independent --devices cpu:3", "stop"),
        Leg(
            "--mode fsdp --devices cpu:2 --merge-policy average",
            "stop",
            "the average of the copies of CPU 0, CPU 1 and CPU 2",
        ),
        Leg("--mode independent --sync-every 5", "kill"),
        Leg("--mode single --devices cpu:1", "finish", "the average of the copies of CPU 0 and CPU 1"),
    ),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a text, where commands are given; what still trains there at the end is ended."""
    write_text(tmp_path / "text.txt", 24_000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "runs"))
    yield tmp_path
    for store in _runs(tmp_path):
        host = store.stored_state().host
        if host is not None and store.is_locked():
            psutil.Process(host.pid).kill()


def _runs(place: Path) -> list[RunStore]:
    return [RunStore.open(path.parent) for path in (place / "runs").glob("*/run.toml")]


def rankdeck(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """A command to its end, and what it said to the person."""
    code = main(words)
    said = capsys.readouterr().err
    assert code == 0, said
    return said


def end(store: RunStore, how: str, attempt: int) -> None:
    """Ends the attempt that is going, once it has trained for a while."""
    deadline = time.monotonic() + 120
    if how == "finish":
        assert wait_for_end(store, 200).state == "finished", store.state()
        return
    while not _has_trained(store, attempt):
        assert time.monotonic() < deadline and store.state().is_live, store.state()
        time.sleep(0.02)
    if how == "kill":
        host = store.state().host
        assert host is not None
        ranks = psutil.Process(host.pid).children(recursive=True)
        psutil.Process(host.pid).kill()
        psutil.wait_procs(ranks, timeout=20)
        assert store.state().state == "interrupted"
    else:
        stop_run(store)
        assert wait_for_end(store, 60).state == "stopped"


def _has_trained(store: RunStore, attempt: int) -> bool:
    """A checkpoint was made, and each rank that trains alone has warmed up; one may start much later than another."""
    own = [line for line in all_lines(store) if line["attempt"] == attempt]
    steps = Counter(line["rank"] for line in own if line["event"] == "step")
    state = store.state()
    alone = range(len(state.devices)) if state.mode == "independent" else ()
    return any(line["event"] == "commit" for line in own) and all(steps[rank] > WARMUP for rank in alone)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_run_goes_on_in_mode_after_mode(chain: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    legs = CHAINS[chain]
    rankdeck(capsys, "train", "--dataset-file", "text.txt", *SMALL, *legs[0].flags.split(), "--detach")
    (store,) = _runs(place)
    end(store, legs[0].end, 1)
    for attempt, leg in enumerate(legs[1:], start=2):
        said = rankdeck(capsys, "resume", store.dir.name, *leg.flags.split(), "--detach")
        assert leg.words in said and "(checkpoint " in said, said
        end(store, leg.end, attempt)
    check_ledger(store)
    check_curves(store, len(legs))


def check_ledger(store: RunStore) -> None:
    """Every chunk of every epoch stands there, and was trained, once."""
    ledger = json.loads(store.ledger.read_text(encoding="utf-8"))
    samples = ledger["samples"]
    assert ledger["samples_trained"] == EPOCHS * samples
    assert ledger["in_progress_chunks"] == [] and Ledger.from_file(read_state_file(store.ledger)).progress().finished
    chunks = -(-samples // 32)
    trained = Counter(
        (line["epoch"], line["block_id"], line["chunk_id"]) for line in kept(store) if line["event"] == "chunk_complete"
    )
    assert len(trained) == EPOCHS * chunks
    assert set(trained.values()) == {1}


def check_curves(store: RunStore, attempts: int) -> None:
    """Steps only rise; loss and learning rate of each attempt begin where those of the one before ended."""
    steps = [line for line in kept(store) if line["event"] == "step"]
    for rank in {line["rank"] for line in steps}:
        own = [line["step"] for line in steps if line["rank"] == rank]
        assert own == sorted(set(own))
    first_loss = steps[0]["loss"]
    for attempt in range(2, attempts + 1):
        before = [line for line in steps if line["attempt"] == attempt - 1][-10:]
        after = [line for line in steps if line["attempt"] == attempt][:10]
        losses = [sum(line["loss"] for line in part) / len(part) for part in (before, after)]
        assert losses[1] < min(losses[0] + 0.3, first_loss - 0.5), (attempt, losses, first_loss)
        newest = max(before, key=lambda line: line["step"])  # ranks that train alone stop at steps of their own
        # Independent ranks on a busy machine are some steps apart; a new warm-up would be at a fifth of the rate.
        assert after[0]["lr"] == pytest.approx(newest["lr"], rel=0.25), (attempt, newest, after[0])
        tokens = [max(line["tokens_seen"] for line in before), min(line["tokens_seen"] for line in after)]
        assert tokens[0] < tokens[1] or len({line["rank"] for line in before}) > 1
    assert store.state().step == store.state().total_steps == max(line["step"] for line in steps)
    assert {alert["kind"] for alert in lines(store, "alert")} <= {"unequal_shares"}
    launches = lines(store, "launch")
    assert [launch["attempt"] for launch in launches] == list(range(1, attempts + 1))
    assert store.model.is_file()

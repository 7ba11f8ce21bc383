"""Training on another machine over SSH: followed through two cuts, resumed here, then there again."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.checkpoints.store import CheckpointStore
from core.cli import main
from core.run_folder.store import RunStore, find_run
from tests.helpers.ssh_server import SshServer
from tests.training.workers.recipes.hf_causal_lm.made import make_folder, needs_transformers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SMALL = shlex.split(
    "--seq-len 32 --batch-size 4 --eval-every 1000 --checkpoint-every-steps 40 --lr 1e-3 "
    "--set n_layer=1 --set n_head=2 --set n_embd=32"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    made = SshServer(tmp_path / "drüben")
    yield made
    made.close()


def run(*words: str) -> None:
    assert main([str(word) for word in words]) == 0


def wait_for(what: Callable[[], object], limit_s: float = 120.0) -> None:
    deadline = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def steps(path: Path, attempt: int) -> list[int]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line["step"] for line in lines if (line["event"], line["rank"], line["attempt"]) == ("step", 0, attempt)]


def test_a_run_goes_there_and_back(
    server: SshServer, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "Eigenes"))
    corpus = tmp_path / "korpus ü.txt"
    corpus.write_text("alpha beta gamma delta epsilon zeta. " * 4000, encoding="utf-8")
    run("machines", "add", "box", *server.add)
    train = ["train", "--machine", "box", "--detach", "--dataset-file", str(corpus), "--steps", "160", *SMALL]
    run(*train, "--mode", "ddp", "--devices", "cpux2")
    (copy,) = [RunStore(path.parent) for path in runs_dir.glob("*/remote.json")]
    origin = RunStore(server.runs / copy.dir.name)

    wait_for(lambda: copy.state().step > 5)
    server.cut()
    server.stop()
    step = origin.state().step
    wait_for(lambda: origin.state().step > step)  # it does not notice
    server.start()
    run("attach", copy.dir.name)
    assert copy.metrics.read_bytes() == origin.metrics.read_bytes()
    assert steps(copy.metrics, 1) == list(range(1, 161))
    assert not copy.checkpoints.exists()

    name = copy.dir.name
    run("resume", name, "--steps", "180", "--dry-run")
    assert not copy.checkpoints.exists(), "nothing is fetched to say what would happen"
    run("resume", name, "--steps", "180", "--mode", "single", "--devices", "cpu:0")  # here
    assert steps(copy.metrics, 2) == list(range(161, 181))
    assert copy.config().dataset_file == str(corpus)
    assert CheckpointStore(copy.checkpoints).newest_valid()[0] is not None
    assert origin.state().step == 160

    there = ["--machine", "box", "--steps", "190", "--mode", "independent", "--devices", "cpux2"]
    files = server.data / "rankdeck" / "machine" / "files"
    before = {path.name for path in files.iterdir()}
    run("resume", name, *there, "--dry-run")
    assert {path.name for path in files.iterdir()} == before, "nothing is sent to say what would happen"
    run("resume", name, *there)
    assert copy.metrics.read_bytes() == origin.metrics.read_bytes()
    assert steps(copy.metrics, 3) == list(range(181, 191))
    assert origin.stored_state().attempt == 3 and find_run(runs_dir, name).state().step == 190

    # continued there by other hands, and here: neither may overwrite the other
    copy.dir.joinpath("remote.json").unlink()
    with origin.metrics.open("ab") as file:
        file.write(b'{"event":"alert"}\n')
    assert main(["resume", name, "--machine", "box", "--steps", "200"]) == 2


@needs_transformers
def test_a_fine_tune_moves_without_its_base_model(
    server: SshServer, runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)  # saving a model would leave a thread behind
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "Eigenes"))
    corpus, base = tmp_path / "corpus.txt", make_folder(tmp_path / "base")
    corpus.write_text("alpha beta gamma delta epsilon zeta. " * 400, encoding="utf-8")
    run("machines", "add", "box", *server.add)
    train = ["train", "--machine", "box", "--recipe", "hf_causal_lm", "--model", str(base), "--mode", "single"]
    run(*train, "--dataset-file", str(corpus), "--steps", "3", "--devices", "cpu:0", "--seq-len", "32")
    (copy,) = [RunStore(path.parent) for path in runs_dir.glob("*/remote.json")]
    origin = RunStore(server.runs / copy.dir.name)
    shutil.rmtree(base)
    shutil.rmtree(server.data)  # and its copy there

    run("resume", copy.dir.name, "--steps", "5")  # here
    kept = {path.name for path in (origin.data / "model").iterdir()}
    assert {path.name for path in (copy.data / "model").iterdir()} == kept >= {"config.json", "tokenizer.json"}
    shutil.rmtree(origin.data)
    run("resume", copy.dir.name, "--machine", "box", "--steps", "7")
    assert steps(copy.metrics, 2) == [4, 5] and steps(origin.metrics, 3) == [6, 7]
    wait_for(lambda: not copy.is_locked())

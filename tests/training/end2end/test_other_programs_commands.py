"""Command lines of AI-OS and of torchrun's users, as they are written in guides: accepted, and doing what they say."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from core.cli import main
from core.machine.devices.monitor import DeviceMonitor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.usefixtures("quick_hosts")]
TINY = "--seq-len 32 --set n_head=2 --set n_embd=32 --set h_layers=1 --set l_layers=1 --eval-every 1000"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the guide's dataset; no GPU."""
    with DeviceMonitor() as monitor:
        if any(device.kind == "cuda" for device in monitor.devices()):
            pytest.skip("the notes are those of a machine without GPUs")
    text = tmp_path / "training_data" / "curated_datasets" / "test_sample.txt"
    text.parent.mkdir(parents=True)
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 2000, encoding="utf-8", newline="\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "runs"))
    return tmp_path


def rankdeck(capsys: pytest.CaptureFixture[str], words: str, code: int = 0) -> str:
    """Runs a command to its end, which comes with this exit code; its stderr."""
    ended = main(shlex.split(words))
    said = capsys.readouterr()
    assert ended == code, said.out + said.err
    return said.err


def lines(path: Path, event: str) -> list[dict[str, Any]]:
    """The metrics of one kind."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in found if line["event"] == event]


def test_train_actv1_by_ddp(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOS_DDP_SPAWN", "1")
    said = rankdeck(
        capsys,
        'hrm-hf train-actv1 --ddp --cuda-ids "0,1" --world-size 2 --model gpt2 '
        "--dataset-file training_data/curated_datasets/test_sample.txt --steps 10 --batch-size 4 --halt-max-steps 1 "
        f"--log-file artifacts/brains/actv1/metrics.jsonl {TINY}",
    )
    assert "--cuda-ids 0,1 requests GPUs" in said and "2 CPU devices" in said
    log = folder / "artifacts" / "brains" / "actv1" / "metrics.jsonl"
    steps = lines(log, "step")
    assert [line["step"] for line in steps if line["rank"] == 0] == list(range(1, 11))
    assert {line["rank"] for line in steps} == {0, 1}
    (launch,) = lines(log, "launch")
    assert launch["mode"] == "ddp"


def test_train_actv1_in_parallel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rankdeck(
        capsys,
        'train-actv1 --parallel-independent --cuda-ids "0,1" --model gpt2 '
        "--dataset-file training_data/curated_datasets/test_sample.txt --steps 10 --batch-size 4 "
        "--dataset-chunk-size 40 --halt-max-steps 1 --log-file artifacts/brains/actv1/metrics.jsonl "
        f"--samples-per-block 4000 {TINY}",
    )
    log = folder / "artifacts" / "brains" / "actv1" / "metrics.jsonl"
    (launch,) = lines(log, "launch")
    assert launch["mode"] == "independent"
    steps = lines(log, "step")
    by_rank = [{(line["block_id"], line["chunk_id"]) for line in steps if line["rank"] == rank} for rank in (0, 1)]
    assert by_rank[0] and by_rank[1] and not by_rank[0] & by_rank[1]


def test_a_script_on_all_gpus(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "run_hf_standalone.py").write_text(
        "import os\nprint('step: 1, loss: 2.5, world:', os.environ['WORLD_SIZE'])\n", encoding="utf-8"
    )
    said = rankdeck(capsys, "run --num-gpus -1 run_hf_standalone.py")
    with DeviceMonitor() as monitor:
        count = len(monitor.cpu_slots())
    assert f"--num-gpus -1 requests GPUs, but this machine has no usable GPU: the run trains on {count}" in said
    (log,) = folder.glob("runs/*/logs/rank0.log")
    assert f"world: {count}" in log.read_text(encoding="utf-8")


def test_episodes_on_all_gpus(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium", reason="the recipe's environments are made of it")
    rankdeck(
        capsys,
        "train --recipe clstm_ppo --num_gpus 2 --num_episodes 10 --batch_size 4 --mode ddp --log-file rl.jsonl "
        "--seq-len 8 --dataset-chunk-size 64 --samples-per-block 640 --eval-every 100000 "
        "--set hidden=8 --set passes=2 --set eval_episodes=2",
    )
    (launch,) = lines(folder / "rl.jsonl", "launch")
    assert launch["world_size"] == 2
    counted = [line["episodes"] for line in lines(folder / "rl.jsonl", "step") if "episodes" in line]
    assert counted[-1] >= 10 and len({count for count in counted if count >= 10}) == 1


def test_a_large_batch_with_sizes_left_at_their_defaults(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The chunk and the block are fitted before the start, and only where nobody chose them."""
    pytest.importorskip("gymnasium", reason="the recipe's environments are made of it")
    command = (
        "train --recipe clstm_ppo --num_gpus 2 --batch_size 256 --steps 1 --log-file rl.jsonl --set passes=4 "
        "--set hidden=8 --set eval_episodes=2 --mode ddp "
    )
    said = rankdeck(capsys, command + "--dataset-chunk-size 3000", code=2)
    assert "3000 samples are not a multiple of 2048" in said and "--dataset-chunk-size 2048" in said
    assert not list(folder.glob("runs/*/run.toml")), "refused before the start"
    said = rankdeck(capsys, command)
    assert "The chunk has 4,096 samples instead of 3,072 (block: 49,152): 4 passes over a global batch of 512." in said
    (config,) = folder.glob("runs/*/run.toml")
    assert "dataset_chunk_size = 4096" in config.read_text(encoding="utf-8")
    rankdeck(capsys, f"resume {config.parent.name} --steps 9")
    assert max(line["step"] for line in lines(folder / "rl.jsonl", "step")) == 9
    assert "dataset_chunk_size = 4096" in config.read_text(encoding="utf-8"), "the run's own"

"""Runs with torch.compile: kernels are really made, and the curve is that of the plain model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.machine.platform import this_platform
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import write_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        this_platform().name != "linux" or this_platform().cxx is None,
        reason="torch.compile is offered under Linux with a C++ compiler",
    ),
]

SMALL = "--seq-len 16 --batch-size 4 --eval-every 3 --steps 7 --precision fp32 --set sample_tokens=3 --set dropout=0"
MODEL = "--set n_layer=1 --set n_head=2 --set n_embd=32"
# Bytes of text, 41 samples: of the sixth step's batch, the epoch's last, one rank has a sample and the other none.
SHORT = 700


@pytest.mark.usefixtures("quick_hosts")
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_a_compiled_model_trains_as_the_plain_one_and_resumes(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is compiled twice: not for an epoch's end, an evaluation, or a sampled text."""
    write_text(tmp_path / "text.txt", SHORT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "runs"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kernels"))
    words = ["--dataset-file", "text.txt", "--devices", "cpux2", "--mode", mode, *SMALL.split(), *MODEL.split()]

    assert main(["train", *words]) == 0
    (plain,) = stores(tmp_path)
    assert not list((tmp_path / "kernels").rglob("*.so"))

    monkeypatch.setenv("TORCH_LOGS", "recompiles")
    assert main(["train", "--torch-compile", *words]) == 0
    (compiled,) = [store for store in stores(tmp_path) if store.dir != plain.dir]
    assert list((tmp_path / "kernels").rglob("*.so")), "no kernel was made"
    assert losses(compiled) == pytest.approx(losses(plain), abs=1e-4)

    assert main(["resume", str(compiled.dir), "--steps", "8"]) == 0
    assert [step for step, _ in steps(compiled)] == list(range(1, 9))
    logs = "".join(log.read_text(encoding="utf-8") for log in compiled.logs.glob("rank*.log"))
    assert "Recompiling function" not in logs


def stores(place: Path) -> list[RunStore]:
    return [RunStore.open(path.parent) for path in (place / "runs").glob("*/run.toml")]


def losses(store: RunStore) -> list[float]:
    return [loss for _, loss in steps(store)]


def steps(store: RunStore) -> list[tuple[int, float]]:
    """Step by step, the loss of the first rank that had samples."""
    lines = store.metrics.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    made = sorted((one["step"], one["rank"], one["loss"]) for one in events if one["event"] == "step" and "loss" in one)
    return list({step: loss for step, _, loss in reversed(made)}.items())[::-1]

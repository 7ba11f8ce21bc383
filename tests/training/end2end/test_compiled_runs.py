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

SMALL = "--seq-len 16 --batch-size 4 --eval-every 1000 --steps 6 --precision fp32 --set sample_tokens=0 --set dropout=0"
MODEL = "--set n_layer=1 --set n_head=2 --set n_embd=32"


@pytest.mark.usefixtures("quick_hosts")
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_a_compiled_model_trains_as_the_plain_one_and_resumes(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "text.txt", 24_000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "runs"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kernels"))
    words = ["--dataset-file", "text.txt", "--devices", "cpux2", "--mode", mode, *SMALL.split(), *MODEL.split()]

    assert main(["train", *words]) == 0
    (plain,) = stores(tmp_path)
    assert not list((tmp_path / "kernels").rglob("*.so"))

    assert main(["train", "--torch-compile", *words]) == 0
    (compiled,) = [store for store in stores(tmp_path) if store.dir != plain.dir]
    assert list((tmp_path / "kernels").rglob("*.so")), "no kernel was made"
    assert losses(compiled) == pytest.approx(losses(plain), abs=1e-4)

    assert main(["resume", str(compiled.dir), "--steps", "8"]) == 0
    assert [step for step, _ in steps(compiled)] == list(range(1, 9))


def stores(place: Path) -> list[RunStore]:
    return [RunStore.open(path.parent) for path in (place / "runs").glob("*/run.toml")]


def losses(store: RunStore) -> list[float]:
    return [loss for _, loss in steps(store)]


def steps(store: RunStore) -> list[tuple[int, float]]:
    """The step lines of rank 0."""
    lines = store.metrics.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [(one["step"], one["loss"]) for one in events if one["event"] == "step" and one.get("rank", 0) == 0]

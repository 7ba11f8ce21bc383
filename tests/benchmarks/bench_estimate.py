"""How true `rankdeck estimate` is: predicted and measured peak memory of real runs, every recipe in every mode.

    pytest -m benchmark -s tests/benchmarks/bench_estimate.py                      all of them: about half an hour
    python -m tests.benchmarks.bench_estimate minigpt actv1 --modes ddp fsdp      some of them

Each run is estimated first, by the command line, then trained for a few steps on two CPU devices; one run at a time.
The models are small and have peaks of 0.6 to 1.6 GiB a rank, so two ranks need up to 3.2 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from core.estimate.history import history
from core.machine.platform import this_platform

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(7200)]

LEAST_BYTES: Final = 1 << 29
WITHIN: Final = 0.10
MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "single": ("--devices", "cpux1"),
    "ddp": ("--devices", "cpux2", "--mode", "ddp"),
    "zero1": ("--devices", "cpux2", "--mode", "zero", "--zero-stage", "1", "--zero-engine", "torch"),
    "zero2": ("--devices", "cpux2", "--mode", "zero", "--zero-stage", "2", "--zero-engine", "torch"),
    "fsdp": ("--devices", "cpux2", "--mode", "fsdp"),
    "independent": ("--devices", "cpux2", "--mode", "independent"),
    "zero1 deepspeed": ("--devices", "cpux2", "--mode", "zero", "--zero-stage", "1", "--zero-engine", "deepspeed"),
    "zero2 deepspeed": ("--devices", "cpux2", "--mode", "zero", "--zero-stage", "2", "--zero-engine", "deepspeed"),
    "zero3 deepspeed": ("--devices", "cpux2", "--mode", "zero", "--zero-stage", "3", "--zero-engine", "deepspeed"),
}
_TEXT: Final = (
    "--batch-size",
    "4",
    "--seq-len",
    "128",
    "--steps",
    "3",
    "--val-samples",
    "4",
    "--set",
    "sample_tokens=0",
)
CASES: Final[Mapping[str, tuple[str, ...]]] = {
    "minigpt": (*_TEXT, "--set", "n_layer=8", "--set", "n_embd=512", "--set", "n_head=8"),
    "actv1": (*_TEXT, "--set", "n_embd=512", "--set", "n_head=8", "--set", "h_layers=4", "--set", "l_layers=4"),
    "hf full": (*_TEXT, "--model", "llama", "--set", "n_layer=8", "--set", "n_embd=512", "--set", "n_head=8"),
    "hf lora": (*_TEXT, "--model", "MODEL", "--set", "training=lora"),
    "clstm_ppo": (
        "--set", "hidden=1024", "--batch-size", "8", "--seq-len", "16", "--steps", "3",
        "--samples-per-block", "192", "--dataset-chunk-size", "96", "--set", "eval_episodes=2",
    ),
}  # fmt: skip
RECIPES: Final = {"hf full": "hf_causal_lm", "hf lora": "hf_causal_lm"}


@dataclass(frozen=True)
class Bench:
    """A folder for runs, with the text and the model that they train on."""

    folder: Path

    @property
    def text(self) -> Path:
        """Words of random letters; what they are does not matter."""
        path = self.folder / "text.txt"
        if not path.exists():
            letters = random.Random(1)
            words = ["".join(letters.choices("abcdefghijklmnop", k=letters.randint(2, 9))) for _ in range(3000)]
            path.write_text(" ".join(letters.choices(words, k=200_000)), encoding="utf-8")
        return path

    @property
    def model(self) -> Path:
        """A model with random weights for LoRA."""
        from tests.training.workers.recipes.hf_causal_lm.made import make_folder

        path = self.folder / "model"
        if not path.exists():
            make_folder(path, length=128, n_layer=8, n_embd=768, n_head=8)
        return path

    def measure(self, case: str, mode: str) -> dict[str, Any]:
        """One row of the table."""
        arguments = ["--recipe", RECIPES.get(case, case), *CASES[case], *MODES[mode]]
        if case != "clstm_ppo":
            arguments += ["--dataset-file", str(self.text)]
        arguments = [str(self.model) if argument == "MODEL" else argument for argument in arguments]
        runs = self.folder / case.replace(" ", "-") / mode.replace(" ", "-")
        self.rankdeck("estimate", *arguments, "--json")
        self.rankdeck("train", *arguments, "--runs-dir", str(runs))
        (row,) = history(runs)
        return {**row, "case": case, "mode": mode}

    def rankdeck(self, *arguments: str) -> str:
        """What the command prints."""
        env = {**os.environ, "RANKDECK_HOME": str(self.folder / "home")}
        done = subprocess.run([sys.executable, "-m", "core", *arguments], env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout


def line(row: Mapping[str, Any]) -> str:
    """A row of docs/estimate.md's table."""
    sizes = [f"{row[name] / 2**20:,.0f}" if row[name] else "–" for name in ("predicted_bytes", "measured_bytes")]
    error = "–" if row["error"] is None else f"{100 * row['error']:+.1f} %"
    return f"| {row['case']} | {row['mode']} | {' | '.join(sizes)} | {error} |"


def modes_here() -> list[str]:
    """Without DeepSpeed's where it is not installed."""
    has = this_platform().deepspeed_version is not None
    return [mode for mode in MODES if has or not mode.endswith("deepspeed")]


@pytest.mark.parametrize("case", CASES)
def test_predicted_and_measured_memory(case: str, tmp_path: Path) -> None:
    rows = [Bench(tmp_path).measure(case, mode) for mode in modes_here()]
    print("\n| recipe | mode | predicted, MiB | measured, MiB | error |\n|---|---|---|---|---|")
    print("\n".join(map(line, rows)))
    for row in rows:
        assert row["predicted_bytes"] is not None, row
        assert row["measured_bytes"] is not None, row


def main(argv: Sequence[str] | None = None) -> None:
    """Prints rows as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--modes", nargs="*", default=modes_here())
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(asked.folder or Path(made))
        bench.folder.mkdir(parents=True, exist_ok=True)
        for case in asked.cases:
            for mode in asked.modes:
                row = bench.measure(case, mode)
                print(line(row), flush=True)
                print(json.dumps(row), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

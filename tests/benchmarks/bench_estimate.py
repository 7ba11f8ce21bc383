"""How true `rankdeck estimate` is: predicted and measured peak memory of runs as people start them.

    pytest -m benchmark -s tests/benchmarks/bench_estimate.py                     all of them: about half an hour
    python -m tests.benchmarks.bench_estimate "actv1" --modes ddp fsdp           some of them

Each run is estimated first, by the command line, then trained with the recipe's defaults but for the model's size and
the number of steps: with evaluations, sampled texts and checkpoints. One run at a time, on CPU devices.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from core.machine.platform import this_platform
from core.measure.estimate.history import history

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(7200)]

TWO: Final = ("--devices", "cpux2", "--mode")
DEEPSPEED: Final = (*TWO, "zero", "--zero-engine", "deepspeed", "--zero-stage")
MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "single": ("--devices", "cpux1"),
    "ddp": (*TWO, "ddp"),
    "zero1": (*TWO, "zero", "--zero-engine", "torch", "--zero-stage", "1"),
    "zero2": (*TWO, "zero", "--zero-engine", "torch", "--zero-stage", "2"),
    "fsdp": (*TWO, "fsdp"),
    "independent": (*TWO, "independent"),
    "local SGD": (*TWO, "independent", "--sync-every", "20"),
    "zero1 deepspeed": (*DEEPSPEED, "1"),
    "zero2 deepspeed": (*DEEPSPEED, "2"),
    "zero3 deepspeed": (*DEEPSPEED, "3"),
}
# An evaluation every 100 steps, and one at the end.
STEPS: Final = 110
_LARGER: Final = ("--set", "n_layer=6", "--set", "n_head=6", "--set", "n_embd=384")


@dataclass(frozen=True)
class Case:
    """A recipe with its size, and the modes that it is tried in."""

    recipe: str
    arguments: tuple[str, ...]
    modes: tuple[str, ...]
    steps: int = STEPS


CASES: Final[Mapping[str, Case]] = {
    "minigpt": Case("minigpt", (), ("single",)),
    "minigpt 4 × 256": Case("minigpt", ("--set", "n_embd=256"), tuple(MODES)),
    "minigpt 6 × 384": Case("minigpt", _LARGER, ("single", "ddp", "zero1")),
    "actv1": Case("actv1", (), ("single", "ddp")),
    "hf full": Case("hf_causal_lm", ("--model", "llama", "--set", "n_embd=256"), ("single", "ddp", "zero1")),
    "hf lora": Case("hf_causal_lm", ("--model", "MODEL", "--set", "training=lora"), ("single", "ddp", "fsdp")),
    "clstm_ppo": Case("clstm_ppo", (), ("single", "ddp", "independent"), 2 * STEPS),
}


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
            path.write_text(" ".join(letters.choices(words, k=500_000)), encoding="utf-8")
        return path

    @property
    def model(self) -> Path:
        from tests.training.workers.recipes.hf_causal_lm.made import make_folder

        path = self.folder / "model"
        if not path.exists():
            make_folder(path, length=128, n_layer=8, n_embd=768, n_head=8)
        return path

    def measure(self, name: str, mode: str, steps: int | None = None) -> dict[str, Any]:
        case = CASES[name]
        arguments = ["--recipe", case.recipe, "--steps", str(steps or case.steps), *case.arguments, *MODES[mode]]
        if case.recipe != "clstm_ppo":
            arguments += ["--dataset-file", str(self.text)]
        arguments = [str(self.model) if argument == "MODEL" else argument for argument in arguments]
        runs = Path(tempfile.mkdtemp(dir=self.folder))
        self.rankdeck("estimate", *arguments, "--json")
        self.rankdeck("train", *arguments, "--runs-dir", str(runs))
        (row,) = history(runs)
        return {**row, "case": name, "mode": mode}

    def rankdeck(self, *arguments: str) -> str:
        env = {**os.environ, "RANKDECK_HOME": str(self.folder / "home")}
        done = subprocess.run([sys.executable, "-m", "core", *arguments], env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout


HEAD: Final = "| run | mode | predicted, MiB | measured, MiB | error |\n|---|---|---|---|---|"


def line(row: Mapping[str, Any]) -> str:
    sizes = [f"{row[name] / 2**20:,.0f}" if row[name] else "–" for name in ("predicted_bytes", "measured_bytes")]
    error = "–" if row["error"] is None else f"{100 * row['error']:+.1f} %"
    return f"| {row['case']} | {row['mode']} | {' | '.join(sizes)} | {error} |"


def rows_of(
    bench: Bench, cases: Sequence[str], modes: Sequence[str], steps: int | None = None
) -> Iterator[dict[str, Any]]:
    """Rows as they come; without DeepSpeed's where it is not installed."""
    has = this_platform().deepspeed_version is not None
    for case in cases:
        for mode in CASES[case].modes:
            if (not modes or mode in modes) and (has or not mode.endswith("deepspeed")):
                yield bench.measure(case, mode, steps)


@pytest.mark.parametrize("case", CASES)
def test_predicted_and_measured_memory(case: str, tmp_path: Path) -> None:
    print(f"\n{HEAD}")
    for row in rows_of(Bench(tmp_path), [case], ()):
        print(line(row))
        assert row["predicted_bytes"] is not None and row["measured_bytes"] is not None, row


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--modes", nargs="*", default=())
    parser.add_argument("--steps", type=int, help="fewer, where memory stops growing early")
    parser.add_argument("--folder", type=Path, help="keeps runs and figures for the next call")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(asked.folder or Path(made))
        bench.folder.mkdir(parents=True, exist_ok=True)
        print(HEAD)
        for row in rows_of(bench, asked.cases, asked.modes, asked.steps):
            print(line(row), flush=True)
            print(json.dumps(row), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

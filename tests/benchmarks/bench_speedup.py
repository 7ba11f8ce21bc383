"""How true predicted time is: predicted and achieved seconds a step and speed-up of real runs on two CPU devices.

    pytest -m benchmark -s tests/benchmarks/bench_speedup.py               both recipes: about ten minutes
    python -m tests.benchmarks.bench_speedup minigpt --modes ddp fsdp     some of them

All modes are predicted first, from timed steps and a measured link; then each is trained for some steps, one run at a
time. Speed-up is in samples a second, over one device with all processor threads.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from core.estimate.time_history import read_time
from tests.benchmarks.bench_estimate import Bench

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

TWO: Final = ("--devices", "cpux2", "--mode")
ZERO: Final = ("--zero-stage", "2", "--zero-engine", "torch")
MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "single": ("--devices", "cpux1"),
    "ddp": (*TWO, "ddp"),
    "zero2": (*TWO, "zero", *ZERO),
    "fsdp": (*TWO, "fsdp"),
    "independent": (*TWO, "independent"),
    "sync interval 8": (*TWO, "independent", "--sync-every", "8"),
}
_TEXT: Final = ("--batch-size", "8", "--seq-len", "128", "--steps", "20", "--set", "val_batches=1")
_SIZE: Final = ("--set", "sample_tokens=0", "--set", "n_embd=256", "--set", "n_head=4")
CASES: Final[Mapping[str, tuple[str, ...]]] = {
    "minigpt": (*_TEXT, *_SIZE, "--set", "n_layer=4"),
    "actv1": (*_TEXT, *_SIZE, "--set", "h_layers=2", "--set", "l_layers=2"),
}


@dataclass(frozen=True)
class Row:
    """One run; `predicted` and `achieved` are (seconds a step, samples a second)."""

    case: str
    mode: str
    predicted: tuple[float, float]
    achieved: tuple[float, float]

    def line(self, one: Row) -> str:
        """A row of docs/estimate.md's table; `one` is the run on one device."""
        predicted, achieved = self.predicted[1] / one.predicted[1], self.achieved[1] / one.achieved[1]
        cells = [f"{self.predicted[0]:.3f}", f"{self.achieved[0]:.3f}", _error(self.predicted[0], self.achieved[0])]
        cells += [f"{predicted:.2f}", f"{achieved:.2f}", _error(predicted, achieved)]
        return f"| {self.case} | {self.mode} | {' | '.join(cells)} |"


def _error(predicted: float, achieved: float) -> str:
    return f"{100 * (predicted / achieved - 1):+.0f} %"


def predict(bench: Bench, case: str) -> dict[str, tuple[float, float]]:
    """Every mode's, before anything was trained."""
    runs = ["--runs-dir", str(bench.folder / case)]
    found = {}
    for mode in ("sync interval 8", "ddp"):
        arguments = ["--recipe", case, *CASES[case], *MODES[mode], *ZERO, "--dataset-file", str(bench.text), *runs]
        values = json.loads(bench.rankdeck("estimate", *arguments, "--json"))
        times = {one["mode"]: one["time"] for one in values["modes"] if "reason" not in one}
        if mode == "sync interval 8":
            times = {mode: times["independent"]}
        found |= {name: (time["step_s"], time["samples_per_s"]) for name, time in times.items()}
    return found


def achieve(bench: Bench, case: str, mode: str) -> tuple[float, float]:
    """One run's."""
    runs = bench.folder / case / mode.replace(" ", "-")
    bench.rankdeck(
        "train",
        "--recipe",
        case,
        *CASES[case],
        *MODES[mode],
        "--dataset-file",
        str(bench.text),
        "--runs-dir",
        str(runs),
    )
    (folder,) = (path for path in runs.iterdir() if (path / "time.json").exists())
    time = read_time(folder)
    assert time is not None and time.step_s is not None and time.samples_per_s is not None
    return time.step_s, time.samples_per_s


HEAD: Final = (
    "| recipe | mode | predicted, s a step | achieved | error | predicted speed-up | achieved | error |\n"
    "|---|---|---|---|---|---|---|---|"
)


@pytest.mark.parametrize("case", CASES)
def test_predicted_and_achieved_speedup(case: str, tmp_path: Path) -> None:
    print(f"\n{HEAD}")
    for row in measure(Bench(tmp_path), case, list(MODES)):
        assert row.predicted[0] > 0 and row.achieved[0] > 0


def measure(bench: Bench, case: str, modes: Sequence[str]) -> list[Row]:
    """Prints rows as they come; the first is one device."""
    predicted, rows = predict(bench, case), list[Row]()
    for mode in modes:
        rows.append(Row(case, mode, predicted[mode], achieve(bench, case, mode)))
        print(rows[-1].line(rows[0]), flush=True)
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--modes", nargs="*", default=list(MODES)[1:])
    asked: Any = parser.parse_args(argv)
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for case in asked.cases:
            measure(Bench(Path(folder)), case, ["single", *asked.modes])


if __name__ == "__main__":
    main()

"""How true predicted time is: predicted and achieved seconds a step and speed-up of real runs on two CPU devices.

    pytest -m benchmark -s tests/benchmarks/bench_speedup.py               all of them: about twenty minutes
    python -m tests.benchmarks.bench_speedup minigpt --modes ddp fsdp     some of them

A turn for each mode: it is predicted again, from timed steps and a measured link; then one device and all devices are
trained for some steps, one run at a time. So the machine is about as fast for all figures of a row. Speed-up is in
samples a second, over one device with all processor threads.
"""

from __future__ import annotations

import argparse
import json
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import pytest

from core.run_folder.store import RunStore
from tests.benchmarks import bench_estimate
from tests.benchmarks.bench_estimate import Bench
from tests.helpers.hosted_run import lines

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

MODES: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: bench_estimate.MODES[name] for name in ("single", "ddp", "zero1", "zero2", "fsdp", "independent")},
    "zero3": (*bench_estimate.TWO, "zero", "--zero-engine", "torch", "--zero-stage", "3"),
    "sync interval 8": (*bench_estimate.TWO, "independent", "--sync-every", "8"),
}
# A rank's first steps, in which buffers are made and caches fill, do not count.
SETTLING: Final = 3
_TEXT: Final = ("--batch-size", "8", "--seq-len", "128", "--steps", "20", "--val-samples", "8")
_SIZE: Final = ("--set", "sample_tokens=0", "--set", "n_embd=256", "--set", "n_head=4")
CASES: Final[Mapping[str, tuple[str, ...]]] = {
    "minigpt": (*_TEXT, *_SIZE, "--set", "n_layer=4"),
    "actv1": (*_TEXT, *_SIZE, "--set", "h_layers=2", "--set", "l_layers=2"),
    "clstm_ppo": (
        "--set", "hidden=512", "--batch-size", "8", "--seq-len", "16", "--steps", "24",
        "--samples-per-block", "192", "--dataset-chunk-size", "96", "--set", "eval_episodes=2",
    ),
}  # fmt: skip
# Seconds a step, and samples a second of all devices.
Speed = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One turn: all devices in a mode, and `one` device."""

    case: str
    mode: str
    predicted: Speed
    achieved: Speed
    one_predicted: Speed
    one_achieved: Speed

    def lines(self) -> str:
        """Its rows of docs/estimate.md's table: one device, and all devices."""
        one = Row(self.case, f"single, beside {self.mode}", *(self.one_predicted, self.one_achieved) * 2)
        return f"{one.line()}\n{self.line()}"

    def line(self) -> str:
        predicted = self.predicted[1] / self.one_predicted[1]
        achieved = self.achieved[1] / self.one_achieved[1]
        cells = [f"{self.predicted[0]:.3f}", f"{self.achieved[0]:.3f}", _error(self.predicted[0], self.achieved[0])]
        cells += [f"{predicted:.2f}", f"{achieved:.2f}", _error(predicted, achieved)]
        return f"| {self.case} | {self.mode} | {' | '.join(cells)} |"


def _error(predicted: float, achieved: float) -> str:
    return f"{100 * (predicted / achieved - 1):+.0f} %"


def take_turn(bench: Bench, case: str, mode: str) -> Row:
    """Predicts and trains a mode and one device."""
    runs = bench.folder / case / f"{mode.replace(' ', '-')}-{secrets.token_hex(2)}"
    for pattern in ("steps-*.json", "link-*.json"):
        for kept in (bench.folder / "home").rglob(pattern):
            kept.unlink()
    arguments = ["--recipe", case, *CASES[case], "--runs-dir", str(runs)]
    if case != "clstm_ppo":
        arguments += ["--dataset-file", str(bench.text)]
    values = json.loads(bench.rankdeck("estimate", *arguments, *MODES[mode], "--json"))
    times = {one["mode"]: one["time"] for one in values["modes"] if "reason" not in one}
    predicted, one = (_speed(times[name]) for name in (values["mode"], "single"))
    one_achieved = _trained(bench, [*arguments, *MODES["single"]], runs)
    return Row(case, mode, predicted, _trained(bench, [*arguments, *MODES[mode]], runs), one, one_achieved)


def _speed(time: Mapping[str, Any]) -> Speed:
    return time["step_s"], time["samples_per_s"]


def _trained(bench: Bench, arguments: Sequence[str], runs: Path) -> Speed:
    before = set(runs.glob("*/run.toml"))
    bench.rankdeck("train", *arguments)
    (kept,) = set(runs.glob("*/run.toml")) - before
    by_rank: dict[int, list[tuple[float, float]]] = {}
    for line in lines(RunStore(kept.parent), "step"):
        by_rank.setdefault(line["rank"], []).append((line["step_time_s"], line["step_time_s"] * line["samples_per_s"]))
    sums = [[sum(values) for values in zip(*steps[SETTLING:], strict=True)] for steps in by_rank.values()]
    mean_s = fmean(seconds / len(steps[SETTLING:]) for (seconds, _), steps in zip(sums, by_rank.values(), strict=True))
    return mean_s, sum(samples / seconds for seconds, samples in sums)


HEAD: Final = (
    "| recipe | mode | predicted, s a step | achieved | error | predicted speed-up | achieved | error |\n"
    "|---|---|---|---|---|---|---|---|"
)


@pytest.mark.parametrize("case", CASES)
def test_predicted_and_achieved_speedup(case: str, tmp_path: Path) -> None:
    print(f"\n{HEAD}")
    for row in measure(Bench(tmp_path), case, list(MODES)[1:]):
        assert row.predicted[0] > 0 and row.achieved[0] > 0


def measure(bench: Bench, case: str, modes: Sequence[str]) -> list[Row]:
    rows = list[Row]()
    for mode in modes:
        rows.append(take_turn(bench, case, mode))
        print(rows[-1].lines(), flush=True)
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--modes", nargs="*", default=None)
    parser.add_argument("--folder", type=Path, help="keeps the models' sizes for the next call")
    asked: Any = parser.parse_args(argv)
    print(HEAD)
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(asked.folder or Path(made))
        bench.folder.mkdir(parents=True, exist_ok=True)
        for case in asked.cases:
            measure(bench, case, asked.modes or list(MODES)[1:])


if __name__ == "__main__":
    main()

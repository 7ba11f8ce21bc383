"""What tuning brings: the speed-up that `rankdeck tune` predicts, and the one that real runs achieve.

    pytest -m benchmark -s tests/benchmarks/bench_tune.py        both recipes: about ten minutes
    python -m tests.benchmarks.bench_tune actv1                   one of them

Each recipe is tuned for a minute on two CPU devices. Then runs with the settings as they were and with those found
are trained in turns, and their mean seconds of a step compared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Final

import pytest

from core.formatting import number
from core.measure.estimate.history import read_time
from tests.benchmarks.bench_estimate import Bench
from tests.benchmarks.bench_speedup import CASES

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

# With the micro-batch of `CASES` replaced by 2: eight micro-batches of each rank in a step.
WANTED: Final = ("--devices", "cpux2", "--mode", "ddp", "--global-batch-size", "32")
MICRO: Final = ("--batch-size", "2")
PAIRS: Final = 2
STEPS: Final = ("--steps", "12")


@dataclass(frozen=True)
class Found:
    """One recipe's: what tuning said, and what runs achieved.

    Attributes:
        tuned: As `rankdeck tune --json` prints it.
        pairs: Seconds of a step (as it was, as it was found) of runs after one another.
    """

    case: str
    tuned: Mapping[str, Any]
    pairs: Sequence[tuple[float, float]]

    def line(self) -> str:
        ratios = [before / after for before, after in self.pairs]
        cells = [self.case, f"`{' '.join(self.tuned['flags'])}`" if self.tuned["flags"] else "the settings as they are"]
        tuned = self.tuned
        cells += [f"{tuned['gain']:.2f} (at least {tuned['certain_gain']:.2f})" if tuned["flags"] else "–"]
        cells += [f"{geometric_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "–"]
        return f"| {' | '.join(cells)} |"

    def trials(self) -> str:
        rows = ["| micro-batch | accumulation | step, s | samples/s | result |"]
        rows.append("|---|---|---|---|---|")
        for trial in self.tuned["trials"]:
            values = [trial["batch_size"], trial["grad_accum_steps"]]
            values += ["–" if trial[name] is None else number(trial[name]) for name in ("step_s", "samples_per_s")]
            rows.append(f"| {' | '.join(map(str, (*values, trial['outcome'])))} |")
        return "\n".join(rows)


HEAD: Final = "| recipe | found | predicted speed-up | achieved |\n|---|---|---|---|"


def measure(bench: Bench, case: str) -> Found:
    tuned = json.loads(bench.rankdeck("tune", *_arguments(bench, case, MICRO), "--json"))
    pairs = []
    for pair in range(PAIRS if tuned["flags"] else 0):
        turns = [(0, MICRO), (1, (*MICRO, *tuned["flags"]))]
        in_turn = turns if pair % 2 == 0 else turns[::-1]
        times = {which: _step_s(bench, case, f"{pair}-{which}", flags) for which, flags in in_turn}
        pairs.append((times[0], times[1]))
    return Found(case, tuned, pairs)


def _arguments(bench: Bench, case: str, flags: Sequence[str]) -> list[str]:
    own = CASES[case]
    place = own.index("--batch-size")
    rest = (*own[:place], *own[place + 2 :])
    return ["--recipe", case, *rest, *STEPS, *WANTED, *flags, "--dataset-file", str(bench.text)]


def _step_s(bench: Bench, case: str, name: str, flags: Sequence[str]) -> float:
    runs = bench.folder / f"{case}-{name}"
    bench.rankdeck("train", *_arguments(bench, case, flags), "--runs-dir", str(runs))
    (folder,) = (path for path in runs.iterdir() if (path / "time.json").exists())
    time = read_time(folder)
    assert time is not None and time.step_s is not None
    return time.step_s


@pytest.mark.parametrize("case", CASES)
def test_predicted_and_achieved_speedup(case: str, tmp_path: Path) -> None:
    found = measure(Bench(tmp_path), case)
    print(f"\n{found.trials()}\n\n{HEAD}\n{found.line()}")
    assert found.tuned["trials"]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    asked: Any = parser.parse_args(argv)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in asked.cases:
            found = measure(Bench(Path(folder)), case)
            print(f"{case}: {found.tuned['sentence']}\n{found.trials()}\n", flush=True)
            rows.append(found.line())
    print("\n".join((HEAD, *rows)))


if __name__ == "__main__":
    main()

"""`rankdeck bench --nodes` on two machines, which are network namespaces."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from core.bench.folder import ENVIRONMENT, PAGE, RESULTS
from tests.helpers.launched import Job, wait
from tests.helpers.net_nodes import NO_NODES, NetNodes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES),
]
FAILING = str(Path(__file__).parents[3] / "helpers" / "recipes" / "failing_trial")
SMALL = ["--recipe", FAILING, "--batch-size", "2", "--devices", "cpu:0"]
BOTH = "machine 1 (1), machine 2 (1)"


def start(nodes: NetNodes, tmp_path: Path, *arguments: str) -> tuple[Path, list[Job]]:
    """The same command on both machines; where the results go."""
    out = tmp_path / "results"
    command = ["-m", "core", "bench", *arguments, *SMALL, "--runs-dir", str(tmp_path / "runs"), "--out", str(out)]
    return out, [nodes.start(number, command) for number in range(2)]


def rows(out: Path) -> list[dict[str, str]]:
    """Of the table."""
    with (out / RESULTS).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ranks(nodes: NetNodes, number: int) -> list[int]:
    """Processes of ranks on a machine."""
    return [process.pid for process in nodes.processes(number, "workers.programs.trial_main")]


def test_sums_over_two_machines_say_which(nodes: NetNodes, tmp_path: Path) -> None:
    out, jobs = start(nodes, tmp_path, "comm", "--mode", "ddp", "--turns", "2", "--seconds", "0.2")
    assert [job.end() for job in jobs] == [0, 0], jobs[0].output + jobs[1].output
    found = rows(out)
    assert {row["machines"] for row in found} == {BOTH} and {row["devices"] for row in found} == {"2"}
    assert "gloo" in {row["transport"] for row in found}
    assert not any(row["transport"].startswith("shared") for row in found), "no memory is shared between machines"
    assert all(float(row["time_s"]) > 0 for row in found)
    environment = json.loads((out / ENVIRONMENT).read_text(encoding="utf-8"))
    assert [machine["name"] for machine in environment["machines"]] == ["machine 1", "machine 2"]
    assert all(machine["cores"] >= 1 and len(machine["devices"]) == 1 for machine in environment["machines"])
    page = (out / PAGE).read_text(encoding="utf-8")
    assert BOTH in page and "Machine 2:" in page
    assert "Machine 2 is " in jobs[0].output and "--nodes 2 --nic auto" in jobs[0].output
    assert not ranks(nodes, 0) and not ranks(nodes, 1)


def test_a_lost_machine_costs_what_needs_it_and_nothing_else(nodes: NetNodes, tmp_path: Path) -> None:
    out, jobs = start(nodes, tmp_path, "weak", "--mode", "independent", "--turns", "3", "--seconds", "1")
    wait(lambda: out.exists() and (out / RESULTS).exists() and rows(out)[-1]["turns"] == "1", "a turn of both")
    assert ranks(nodes, 1)
    nodes.kill(1)
    assert jobs[0].end() == 1, jobs[0].output
    alone, together = rows(out)
    assert (alone["machines"], alone["turns"], alone["outcome"]) == ("machine 1 (1)", "3", "measured")
    assert (together["machines"], together["outcome"]) == (BOTH, "failed")
    assert float(together["efficiency"]) > 0, "the turn before stays"
    assert "The process of rank 1 was on machine 2, which is gone" in jobs[0].output
    assert not ranks(nodes, 0)

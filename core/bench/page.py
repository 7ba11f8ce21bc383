"""The Markdown page of a benchmark. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.bench.charts import BenchChart
from core.bench.kinds import ABOUT, TITLES, Kind
from core.bench.result import Bench
from core.bench.summary import sentences
from core.bench.table import table_of
from core.formatting import UNKNOWN, gibibytes, listed

NO_PICTURES: Final = "Pictures are missing"


def page_of(bench: Bench, environment: Mapping[str, Any], charts: Sequence[BenchChart], no_pictures: str) -> str:
    """The page.

    Args:
        bench: What was measured.
        environment: As `core.bench.environment` describes it.
        charts: Those of which there are pictures, if any.
        no_pictures: Why there are none, as a sentence; empty: there are.
    """
    pictures = [f"![{chart.title}]({chart.name}.svg)" for chart in charts]
    if no_pictures:
        pictures = [f"{NO_PICTURES}: {no_pictures}"]
    parts = [
        f"# {TITLES[bench.kind]}",
        f"{heading(bench)}.",
        ABOUT[bench.kind],
        "\n".join(f"* {sentence}" for sentence in sentences(bench)),
        _table(bench),
        *pictures,
        "## How it was measured",
        method(bench),
        "## Machines" if "machines" in environment else "## Machine",
        _machines(environment),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def heading(bench: Bench) -> str:
    """What was measured, in one line."""
    run = bench.run
    counts = sorted({one.contender.devices for one in bench.measured})
    mode = "DDP" if bench.kind == Kind.COMM else run.mode.label
    devices = f"{listed([str(count) for count in counts])} device{'' if counts == [1] else 's'}"
    return f"{run.recipe.title}, {mode}, on {devices}"


def method(bench: Bench) -> str:
    """How it was measured, in sentences."""
    if bench.kind == Kind.MEMORY:
        turns = f"Each number of devices has processes of its own, which make steps for {bench.seconds:g} seconds."
    elif bench.kind == Kind.COMM:
        turns = (
            f"Transports take turns, size by size, for {bench.seconds:g} seconds, {bench.turns} times. A sum counts as "
            "long as it takes on the last device. MB/s is size ÷ time; bus MB/s is what each device sends, as "
            "nccl-tests counts it."
        )
    else:
        turns = (
            f"Contenders take turns: {bench.turns} of each, in alternating order, each with real optimizer steps for "
            f"about {bench.seconds:g} seconds. Ratios are taken within a turn."
        )
    spread = "" if bench.kind == Kind.MEMORY else " Figures are medians; quartiles in brackets."
    plural = "" if bench.threads == 1 else "s"
    threads = (
        f" Each device has {bench.threads} processor thread{plural} whatever the number of devices, so that one device "
        "has no more than its part of the processor."
    )
    return turns + spread + threads


def _table(bench: Bench) -> str:
    table = table_of(bench)
    lines = [
        [column.title for column in table.shown],
        ["---" if column.is_text else "---:" for column in table.shown],
        *table.cells,
    ]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _machines(environment: Mapping[str, Any]) -> str:
    software = {
        "PyTorch": environment["torch"] or UNKNOWN,
        "Rankdeck": environment["rankdeck"],
        "Date": environment["written"],
    }
    several = environment.get("machines")
    if not several:
        return _facts({**_machine(environment), **software})
    parts = [f"{machine['name'].capitalize()}:\n\n{_facts(_machine(machine))}" for machine in several]
    return "\n\n".join([*parts, f"All of them:\n\n{_facts(software)}"])


def _machine(facts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "Devices": listed(list(dict.fromkeys(device["name"] for device in facts["devices"]))),
        "Processor": f"{facts['cpu']}, {facts['cores']} cores",
        "Memory": f"{gibibytes(facts['memory_bytes'])} GiB",
        "System": facts["os"],
        "Busy before it began": f"{100 * facts['busy_before']:.0f} % of the processor",
    }


def _facts(facts: Mapping[str, str]) -> str:
    return "\n".join(f"* {name}: {value}" for name, value in facts.items())

"""The Markdown page."""

from __future__ import annotations

from dataclasses import replace

from core.bench.charts import charts_of
from core.bench.kinds import Kind
from core.bench.page import heading, method, page_of
from tests.unit.core.bench.made import SUMS, WEAK, bench

ENVIRONMENT = {
    "devices": [{"name": "CPU 0 (Some)"}, {"name": "CPU 1 (Some)"}],
    "cpu": "Some",
    "cores": 8,
    "memory_bytes": 16 << 30,
    "os": "Linux 6",
    "torch": None,
    "rankdeck": "0.1",
    "busy_before": 0.25,
    "written": "2026-11-26",
}


def test_it_holds_sentences_table_pictures_method_and_machine() -> None:
    found = bench(Kind.WEAK, WEAK)
    page = page_of(found, ENVIRONMENT, charts_of(found), "")
    assert page.startswith("# Weak scaling\n\nMiniGPT, DDP, on 1 and 2 devices.\n")
    assert "* 2 devices: 91 % (87 to 93) of the ideal speed" in page
    assert "| Devices | Mode |" in page and "| ---: | --- |" in page
    assert "| 2 | DDP | 4 | 1 | 8 | 120 ms (" in page
    assert "![Weak scaling](weak-efficiency.svg)" in page and "missing" not in page
    assert "3 of each, in alternating order" in page and "4 processor threads whatever" in page
    assert "* Devices: CPU 0 (Some) and CPU 1 (Some)" in page and "25 % of the processor" in page


def test_each_of_several_machines_is_described() -> None:
    found = replace(bench(Kind.WEAK, WEAK), shares=(1, 1))
    machines = [{**ENVIRONMENT, "name": "machine 1"}, {**ENVIRONMENT, "name": "machine 2", "cores": 4}]
    page = page_of(found, {**ENVIRONMENT, "machines": machines}, charts_of(found), "")
    assert "| 2 | machine 1 (1), machine 2 (1) | DDP |" in page
    machines_text = page.partition("## Machines")[2]
    assert "Machine 1:\n\n* Devices: " in machines_text and "Machine 2:\n\n* Devices: " in machines_text
    assert "Some, 8 cores" in machines_text and "Some, 4 cores" in machines_text
    assert machines_text.count("* Rankdeck: 0.1") == 1


def test_without_pictures_it_says_why() -> None:
    found = bench(Kind.WEAK, WEAK)
    page = page_of(found, ENVIRONMENT, charts_of(found), "this Python has no Qt.")
    assert "Pictures are missing: this Python has no Qt." in page and "![" not in page


def test_each_kind_says_how_it_was_measured() -> None:
    sums = bench(Kind.COMM, {0: [SUMS]})
    assert heading(sums) == "MiniGPT, DDP, on 2 devices"
    assert "nccl-tests" in method(sums)
    over_time = method(bench(Kind.MEMORY, {}))
    assert "processes of its own" in over_time and "quartiles" not in over_time

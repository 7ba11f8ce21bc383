"""`rankdeck selftest`: tries on a person's own PC what no test machine can show, and writes one file to send back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from core.cli.doctor import show_finding, show_problems
from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.doctor.diagnostics import gather, write_zip
from core.doctor.finding import Finding
from core.doctor.pc_tests import CounterWatch, pc_tests, run_pc_test
from core.doctor.person import redactor_here
from core.doctor.quick import examine
from core.doctor.self_tests import SelfTest, list_here, run_self_test
from core.machine.devices.names import short_label
from core.machine.platform import this_platform


def selftest(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Runs every part and writes the file, whatever the parts do; 130 after Ctrl+C, which leaves out the rest."""
    runs_dir, platform, out = chosen_runs_dir(arguments), this_platform(), Path(arguments.out)
    write_zip((), out)  # refused now rather than after some minutes
    findings: list[Finding] = []

    def show(finding: Finding) -> None:
        findings.append(finding)
        show_finding(finding, arguments, terminal)

    with counted_interrupts() as interrupts:

        def cancelled() -> bool:
            return interrupts.count > 0

        for finding in examine(runs_dir, platform):
            show(finding)
        watch = CounterWatch()
        for test in with_all_pairs(list_here(None, platform)):
            _say(test.name, arguments, terminal)
            for finding in run_self_test(test, platform, runs_dir, cancelled=cancelled):
                show(finding if test.way != "gloo" else replace(finding, topic=replace(finding.topic, name=test.name)))
        show(watch.close())
        for part in pc_tests(runs_dir, cancelled):
            _say(part.topic.name, arguments, terminal)
            show(run_pc_test(part, cancelled))
        interrupted = interrupts.count > 0
    more: dict[str, Any] = {"counters.json": watch.last, "selftest.json": {"interrupted": interrupted}}
    files = gather(findings, None, platform, {}, redactor_here(), more)
    write_zip(files, out)
    if arguments.json:
        terminal.json([finding.as_dict() for finding in findings])
    else:
        show_problems(findings, terminal)
        terminal.say(f"Written: {out.absolute()}. It holds these lines, versions and counters; please send it back.")
    return INTERRUPTED_TWICE if interrupted else 0


def with_all_pairs(tests: tuple[SelfTest, ...]) -> Iterator[SelfTest]:
    """The doctor's self-tests, those of links for each pair of cards: one slot of a board may be slower."""
    gpus = [test.devices[0] for test in tests if test.way == "compute" and test.devices[0].kind == "cuda"]
    for test in tests:
        pairs = list(combinations(gpus, 2))
        if test.way != "gloo" or len(pairs) < 2:
            yield test
            continue
        for first, second in pairs:
            name = f"gloo between {short_label(first)} and {short_label(second)}"
            yield SelfTest(name, "gloo", (first, second))


def _say(name: str, arguments: argparse.Namespace, terminal: Terminal) -> None:
    if not arguments.json:
        terminal.progress(name)

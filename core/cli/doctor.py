"""`rankdeck doctor`: checks this machine, with a next step for each problem."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import Interrupts, counted_interrupts
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.doctor.diagnostics import gather, write_zip
from core.doctor.finding import MODES, Finding, Level, find_problems, merged, problems_text
from core.doctor.quick import examine
from core.doctor.self_tests import judge_modes, list_here, run_self_test
from core.errors import PreflightError, UsageError
from core.formatting import byte_size
from core.machine.platform import Platform, this_platform

_LABELS: Final[Mapping[Level, str]] = {"ok": "OK", "warn": "WARN", "fail": "FAIL", "not_tried": "–"}


def doctor(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Print each finding; exit code 3 when one of them keeps runs from starting, 130 after Ctrl+C in a self-test."""
    runs_dir, platform = chosen_runs_dir(arguments), this_platform()
    findings, interrupted = [], False
    for finding in examine(runs_dir, platform):
        findings.append(finding)
        if finding.topic.group != MODES or not arguments.self_test:  # they are judged again after the self-tests
            show_finding(finding, arguments, terminal)
    if arguments.self_test:
        with counted_interrupts() as interrupts:
            tested = _run_self_tests(arguments, platform, terminal, interrupts)
        interrupted = interrupts.count > 0
        modes = judge_modes(tested, platform)
        for finding in modes:
            show_finding(finding, arguments, terminal)
        findings = merged(findings, [*tested, *modes])
    if arguments.json:
        terminal.json([finding.as_dict() for finding in findings])
    else:
        show_problems(findings, terminal)
    if arguments.zip:
        settings = {name: value for name, value in os.environ.items() if name.startswith(("RANKDECK_", "CUDA_"))}
        files = gather(findings, runs_dir, platform, {"variables": settings})
        _save(files, Path(arguments.zip), arguments, terminal)
    if interrupted:
        return INTERRUPTED_TWICE
    return PreflightError.exit_code if any(finding.stops_runs for finding in findings) else 0


def show_finding(finding: Finding, arguments: argparse.Namespace, terminal: Terminal) -> None:
    if arguments.json:
        return
    terminal.say(f"{_LABELS[finding.level]:4}  {finding.name}: {finding.text}")
    if finding.next_step and not finding.cause:  # what several share is said once, at the end
        terminal.say(f"      → {finding.next_step}")


def show_problems(findings: Sequence[Finding], terminal: Terminal) -> None:
    """Print each cause once, with its remedy."""
    terminal.say("")
    terminal.say(problems_text(findings))
    for problem in find_problems(findings):
        first = problem.findings[0]
        if first.cause:
            terminal.say(f"{_LABELS[problem.level]:4}  {problem.title}: {first.text}")
            terminal.say(f"      → {first.next_step}")
            terminal.say(f"      Affects: {problem.affects}")


def _run_self_tests(
    arguments: argparse.Namespace, platform: Platform, terminal: Terminal, interrupts: Interrupts
) -> list[Finding]:
    """Run the self-tests; an interrupt ends the one that runs, and the others are not tried."""
    found: list[Finding] = []
    for test in list_here(platform):
        if not arguments.json:
            terminal.progress(test.topic.name)
        found.append(run_self_test(test, platform, cancelled=lambda: interrupts.count > 0))
        show_finding(found[-1], arguments, terminal)
    return found


def _save(files: Mapping[str, str], path: Path, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """List the files, and write them if the person agrees."""
    terminal.quiet = terminal.quiet or arguments.json
    terminal.say(f"Diagnostics for {path}:")
    terminal.table(("FILE", "SIZE"), [(name, byte_size(len(text.encode()))) for name, text in files.items()])
    terminal.say("Keys, tokens and passwords are replaced in them. Names and paths stay: read it before you send it.")
    there = " It replaces the file that is there." if path.exists() else ""
    if not arguments.yes and not terminal.ask(f"Write {path}?{there} [y/N] "):
        raise UsageError("The diagnostics were not written.", "Agree when you are asked, or add --yes.")
    write_zip(files, path)
    terminal.say(f"Written: {path}")

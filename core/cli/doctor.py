"""`rankdeck doctor`: is this machine ready to train? Every line says how it is and what to do."""

from __future__ import annotations

import argparse
import dataclasses

from core.cli.checks import examine
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.errors import PreflightError
from core.machine.platform import this_platform


def doctor(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Prints each finding; exit code 3 when one of them keeps runs from starting."""
    findings = []
    for finding in examine(chosen_runs_dir(arguments), this_platform()):
        findings.append(finding)
        if not arguments.json:
            terminal.say(f"{finding.level.upper():4}  {finding.name}: {finding.text}")
            if finding.next_step:
                terminal.say(f"      → {finding.next_step}")
    if arguments.json:
        terminal.json([dataclasses.asdict(finding) for finding in findings])
    return PreflightError.exit_code if any(finding.level == "fail" for finding in findings) else 0

"""The flags of other machines, and of training on one."""

from __future__ import annotations

import argparse


def add_machine_flag(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--machine", metavar="NAME", help="Train on another machine (rankdeck machines). Default: on this computer."
    )


def add_machines_flags(machines: argparse._ActionsContainer) -> None:
    machines.add_argument(
        "action",
        nargs="?",
        choices=("list", "add", "remove", "check", "setup"),
        default="list",
        metavar="ACTION",
        help="list, add, remove, check (runs the doctor there) or setup (makes the environment there). Default: list.",
    )
    machines.add_argument("name", metavar="NAME", nargs="?", help="The machine.")
    machines.add_argument("address", metavar="ADDRESS", nargs="?", help="add: user@host, or a host of ~/.ssh/config.")
    machines.add_argument("--port", metavar="N", help="add: the port of its SSH server. Default: as ssh has it.")
    machines.add_argument(
        "--identity", metavar="FILE", help="add: the private key. Default: ssh-agent's, and ssh's own."
    )
    machines.add_argument("--fingerprint", metavar="SHA256:…", help="add: the host key that it must have.")
    machines.add_argument(
        "--yes", action="store_true",
        help="add: take the host key that it shows, without asking. remove: also if runs train there.",
    )  # fmt: skip
    machines.add_argument(
        "--python", metavar="PATH", help="add: a Python there with PyTorch. Default: setup makes one."
    )
    machines.add_argument("--starter", metavar="WORDS", help="add: what starts a Python there. Default: python3.")
    machines.add_argument("--remote-runs-dir", metavar="PATH", help="add: the folder of runs there.")
    machines.add_argument("--build", metavar="BUILD", help="setup: of PyTorch, as in rankdeck environment make.")
    machines.add_argument("--wheels", metavar="PATH", help="setup: a folder of wheels there; nothing is downloaded.")

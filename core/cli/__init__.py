"""`rankdeck …` without a window. It imports no Qt; `python -m core` is the same command line."""

from core.cli.entry import main

__all__ = ["main"]

"""The part of Rankdeck that needs no window and no torch: config, run host, ledger, run folders, command line."""

__version__ = "0.1.0"

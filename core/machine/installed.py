"""Installed packages, read from Python's package metadata; nothing is imported.

The module that reads metadata brings an e-mail parser along. It is loaded at the first call, which the window makes
after its first picture.
"""

from __future__ import annotations


def version(package: str) -> str | None:
    """The version of an installed package; None where it is not installed, or lies there as a bare folder."""
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def requires(package: str) -> tuple[str, ...]:
    """A package's ``Requires-Dist`` lines; none where it is not installed."""
    import importlib.metadata

    try:
        return tuple(importlib.metadata.requires(package) or ())
    except importlib.metadata.PackageNotFoundError:
        return ()

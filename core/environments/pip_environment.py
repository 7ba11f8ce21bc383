"""pip's environment: which variables it must not get, and where it takes packages from.

Shared with the setup of a checkout, which runs before anything is installed: only the standard library is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

# A folder of wheels to set a checkout up from, without a network.
ENV_WHEELS: Final = "RANKDECK_WHEELS"
# These have a new Python look for its own files, or for packages, in another one.
PYTHON_VARIABLES: Final = frozenset({"PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "VIRTUAL_ENV"})
# These would send packages somewhere else than into the environment that pip was called for.
_PIP_VARIABLES: Final = frozenset({"PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV"})


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables without those that lead a new Python or its pip astray."""
    unwanted = PYTHON_VARIABLES | _PIP_VARIABLES
    return {name: value for name, value in environ.items() if name.upper() not in unwanted}


def wheels_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of wheels that a person named for the setup of a checkout; None where they named none."""
    text = environ.get(ENV_WHEELS, "").strip()
    return Path(text).expanduser().absolute() if text else None


def without_python_home(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables for a Python of ours, which finds its files by itself; a person's modules stay on its path."""
    return {name: value for name, value in environ.items() if name.upper() != "PYTHONHOME"}


def source_options(wheels: Path | None, index: str | None) -> list[str]:
    """pip's options on where packages come from.

    Args:
        wheels: A folder that has all of them; nothing else is asked then.
        index: A package index; None: as this machine's pip is set.
    """
    if wheels is not None:
        return ["--no-index", "--find-links", str(wheels)]
    return ["--index-url", index] if index else []

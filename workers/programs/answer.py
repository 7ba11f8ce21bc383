"""A program's answer to `core.processes.ask`: the last line that it prints, JSON; what was asked or what went wrong."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.errors import RankdeckError
from core.held_files import read_utf8
from workers.host_link.failures import explain_as_error


def answer(work: Callable[[dict[str, Any], Path], Mapping[str, Any]], *, defects: bool = True) -> None:
    """Answer the request in the file that the command line names last.

    Args:
        work: Gets the request and its file's folder; returns the answer.
        defects: Whether errors that are not Rankdeck's own are answered too, explained as a rank explains them.
    """
    path = Path(sys.argv[-1])
    request = json.loads(read_utf8(path))
    try:
        values = work(request, path.parent)
    except Exception as error:
        if not (defects or isinstance(error, RankdeckError)):
            raise
        traceback.print_exc()
        sys.stderr.flush()
        values = error_values(explain_as_error(error, "this machine"))
    # What a recipe printed before may have no end of line.
    sys.stdout.write(f"\n{json.dumps(values)}\n")


def error_values(error: RankdeckError) -> dict[str, Any]:
    """An error as `core.recipes.check.error_in` reads it back."""
    values: dict[str, Any] = {"kind": type(error).__name__, **error.as_dict()}
    for key, name in (("field", "field"), ("allows", "allows"), ("missing", "packages")):
        if hasattr(error, name):
            values[key] = getattr(error, name)
    return values

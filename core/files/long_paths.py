r"""Windows' limit of 260 characters for a path, and the places where it holds.

Python's own programs declare that they know longer paths, so with LongPathsEnabled in the registry all works. Without
it the system says of a path that is merely long that its folder is missing. Prefixing paths with ``\\?\`` would help
Python's own calls alone: not PyTorch, tokenizers, Qt, or the programs that a person opens a run with.
https://docs.python.org/3/using/windows.html#removing-the-max-path-limitation
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from pathlib import Path
from typing import Final

# MAX_PATH without the zero byte at its end.
LONGEST_PATH: Final = 259
# A folder must leave room for a name of 8.3 characters.
LONGEST_FOLDER: Final = 247
# Below a run's folder: a checkpoint's number, and a file's temporary name while it is replaced.
IN_EVERY_RUN: Final = 65
# Below the folder of a run whose recipe is Rankdeck's at most: ``columns``, a GPU with its UUID, a column.
IN_A_BUILT_IN_RUN: Final = 90
# Below a run's folder at most: ``columns``, a group, a column whose name a script chose (80 characters).
IN_A_RUN: Final = 115
RUN_NAME: Final = 45
_NOT_FOUND: Final = (2, 3)
_NAME_TOO_LONG: Final = 206
_WINDOWS: Final = os.name == "nt"


@functools.cache
def long_paths_enabled() -> bool:
    """Whether paths over 260 characters work here, by the registry; changed, it takes effect with a new process."""
    if sys.platform != "win32":
        return True
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SYSTEM\CurrentControlSet\Control\FileSystem") as key:
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0] == 1)
    except OSError:
        return False  # the value is not there: the old limit holds


def room_in(folder: Path, *, of_runs: bool, below: int = IN_A_RUN) -> int:
    """Return the number of characters that a run's longest path has to spare; negative where it is too long.

    Args:
        folder: The run's folder, or that of all runs.
        of_runs: It is that of all runs.
        below: The longest of the run's own paths.
    """
    return LONGEST_PATH - len(str(folder.absolute())) - below - (RUN_NAME + 1 if of_runs else 0)


def is_too_long(error: OSError, windows: bool = _WINDOWS) -> bool:
    """Whether a name or a path is longer than this system allows; Windows calls most of these not found."""
    if error.errno == errno.ENAMETOOLONG or getattr(error, "winerror", None) == _NAME_TOO_LONG:
        return True
    missing = getattr(error, "winerror", None) in _NOT_FOUND or error.errno == errno.ENOENT
    path = error.filename2 or error.filename
    return windows and missing and isinstance(path, str) and len(path) > LONGEST_FOLDER and not long_paths_enabled()

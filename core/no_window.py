"""`NO_WINDOW`: the one place that keeps Windows from opening a console window for a program that we start."""

from __future__ import annotations

import subprocess
from typing import Final

# For `creationflags`; 0 on other systems. The program gets a console of its own that is never shown, and so do the
# programs that it starts in turn. Not DETACHED_PROCESS, which leaves it without one: each console program below it
# would then open a visible window. Qt's QProcess does the same by itself in a program that has no console.
NO_WINDOW: Final[int] = getattr(subprocess, "CREATE_NO_WINDOW", 0)

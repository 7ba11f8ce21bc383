"""DeepSpeed's wheels: where there are any. Only the standard library is imported: setting up a checkout asks too."""

from __future__ import annotations

from typing import Final

# For Windows: 0.16.5 is the newest with wheels, and they are for older Pythons.
FIRST_PYTHON_WITHOUT: Final = (3, 13)


def why_no_wheel(system: str, python: tuple[int, int]) -> str:
    """Why DeepSpeed cannot be had as a wheel, as a sentence; empty where it can.

    Args:
        system: `sys.platform`.
        python: (3, 12) of Python 3.12.
    """
    if system != "win32":
        return "For this system DeepSpeed is only there as source code."
    if python >= FIRST_PYTHON_WITHOUT:
        return f"Its wheels for Windows are for Python 3.12 and older, and this one is {python[0]}.{python[1]}."
    return ""

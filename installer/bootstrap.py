"""Sets up this checkout and starts Rankdeck or its tests, with nothing but Python 3.11 to 3.14 and pip.

    python installer/bootstrap.py run [ARGS...]     `rankdeck ARGS...`; with no ARGS the window opens
    python installer/bootstrap.py test [--all]      the tests of every push, offscreen; --all: all tests
    python installer/bootstrap.py test ARGS...       the same as `pytest ARGS...`, offscreen

The first call makes `.venv` in the checkout and installs the versions that constraints.txt names; later
calls find it ready and add a few milliseconds. RANKDECK_WHEELS names a folder of wheels to take all of them from. This
file must parse on any Python, so that an old one gets a message instead of a syntax error; the others do the work.
"""

import sys

if sys.version_info < (3, 11):
    sys.stderr.write(
        "This Python is too old: Rankdeck needs Python 3.11 to 3.14, and this is Python "
        + sys.version.split()[0]
        + ".\nInstall Python 3.11, 3.12, 3.13 or 3.14, and run the same command with it.\n"
    )
    sys.exit(3)
if sys.version_info >= (3, 15):
    sys.stderr.write(
        "This Python is too new: PyTorch and Qt have no builds for it yet. Rankdeck needs Python 3.11 to 3.14, "
        + "and this is Python "
        + sys.version.split()[0]
        + ".\nInstall Python 3.11, 3.12, 3.13 or 3.14, and run the same command with it.\n"
    )
    sys.exit(3)

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from installer.start import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

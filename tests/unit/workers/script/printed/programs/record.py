"""Records what a program prints, and where it was quiet. Usage: record.py NAME PROGRAM [WORDS…]

Writes NAME.log (its bytes) and NAME.json (the truth, which the program writes) into this folder's parent.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

QUIET_S = 0.3
here = Path(__file__).parent
name, program, *words = sys.argv[1:]
log, truth = here.parent / f"{name}.log", here.parent / f"{name}.json"
quiet: list[int] = []
with log.open("wb") as file:
    env = {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "TTY_COMPATIBLE": "1",
        "TTY_INTERACTIVE": "1",
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }
    child = subprocess.Popen(
        [sys.executable, str(here / program), str(truth), *words], stdout=file, stderr=file, env=env
    )
    size, since = 0, time.monotonic()
    while child.poll() is None:
        time.sleep(0.005)
        now = log.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif size and time.monotonic() - since > QUIET_S and (not quiet or quiet[-1] != size):
            quiet.append(size)
if child.returncode:
    sys.exit(log.read_text(encoding="utf-8", errors="replace"))
document = json.loads(truth.read_text(encoding="utf-8"))
truth.write_text(json.dumps({**document, "quiet": quiet}) + "\n", encoding="utf-8", newline="\n")

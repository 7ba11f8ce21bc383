"""The rendezvous store of a script's ranks, hosted for them on loopback.

torch's own TCPStore, which rank 0 of a process group makes, listens on all interfaces and asks for no password. Under
torchrun the agent hosts it and ranks are clients (``TORCHELASTIC_USE_AGENT_STORE``); here a process of rank 0's wrapper
does, on a socket that is bound to 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.held_files import read_utf8
from core.recipes.user_script import UserScript

# Runs in the script's own interpreter, so that its TCPStore is the one that the script's torch expects. The current
# folder's modules are none of torch's business. It ends with its standard input.
_PROGRAM: Final = """
import sys
del sys.path[0]
import os
from datetime import timedelta
from torch.distributed import TCPStore
fd, port = map(int, sys.argv[1:])
limit = timedelta(seconds=300)
store = TCPStore("127.0.0.1", port, None, True, limit, wait_for_workers=False, master_listen_fd=fd)
sys.stdin.buffer.read()
os._exit(0)
"""
_FIND_TORCH: Final = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s else '')"
_FIND_LIMIT_S: Final = 30.0
_END_LIMIT_S: Final = 5.0
# What a project writes that meets at an address of its own: rank 0 must host the store there, as without an agent.
_OWN_ADDRESS: Final = re.compile(r"tcp://|TCPStore\(|MASTER_(?:ADDR|PORT)['\"]\]\s*=[^=]")
_IMPORT: Final = re.compile(r"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_MOST_FILES: Final = 200
_VARIABLES: Final = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")


def can_host(script: UserScript, env: Mapping[str, str]) -> bool:
    """True if a store can be hosted for this script; every rank's wrapper must come to the same answer."""
    if sys.platform != "linux" or any(name in script.environment for name in _VARIABLES) or _meets_elsewhere(script):
        return False
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command, no_input = [script.python, "-c", _FIND_TORCH], subprocess.DEVNULL
        done = subprocess.run(
            command, env=dict(env), cwd=script.folder, capture_output=True, timeout=_FIND_LIMIT_S, stdin=no_input
        )
        torch = Path(done.stdout.decode("utf-8", errors="replace").strip()).parent
        stubs = torch / "_C" / "_distributed_c10d.pyi"  # they say what this build's TCPStore takes
        return "master_listen_fd" in read_utf8(stubs, errors="replace")
    return False


def _meets_elsewhere(script: UserScript) -> bool:
    """True if the script, or a module of its own project, names an address."""
    main = _text(Path(script.target[0])) if len(script.target) == 1 else f"import {script.target[1]}"
    texts = [main]
    for name in sorted(set(_IMPORT.findall(main))):
        for folder in script.project_folders[:2]:
            files = [folder / f"{name}.py", *folder.glob(f"{name}/*.py"), *folder.glob(f"{name}/*/*.py")]
            texts += [_text(path) for path in files[:_MOST_FILES]]
    return any(_OWN_ADDRESS.search(text) for text in texts)


def _text(path: Path) -> str:
    try:
        return read_utf8(path, errors="replace")
    except OSError:
        return ""


class HostedStore:
    """A running store for a script's ranks. It ends with this process, or when it is closed.

    Raises:
        RankdeckError: The port is taken, or the store's process cannot be started.
    """

    def __init__(self, script: UserScript, env: Mapping[str, str], port: int) -> None:
        kept = {name: value for name, value in env.items() if not name.startswith("RANKDECK_SDK_")}
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(128)
            self._process = subprocess.Popen(
                [script.python, "-c", _PROGRAM, str(listener.fileno()), str(port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=script.folder,
                env={**kept, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
                pass_fds=[listener.fileno()],
            )
        except OSError as error:
            raise _trouble(error.strerror or str(error)) from error
        finally:
            listener.close()

    def check(self) -> None:
        """Raise a `RankdeckError` if it has ended."""
        if self._process.poll() is not None:
            assert self._process.stderr is not None
            lines = self._process.stderr.read().decode("utf-8", errors="replace").split("\n")
            raise _trouble(next((line.strip() for line in reversed(lines) if line.strip()), "it ended"))

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stderr is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stderr.close()


def _trouble(why: str) -> RankdeckError:
    return RankdeckError(
        f"The rendezvous store of the script's processes could not be started ({why}).",
        "Start the run again. If it fails again, let rank 0 of the script host it: set "
        "TORCHELASTIC_USE_AGENT_STORE=False under Variables.",
        option="--env TORCHELASTIC_USE_AGENT_STORE=False",
        title="The process group's store failed",
    )

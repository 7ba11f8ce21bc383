"""Run stream: reads new data in a run's folder and sends it to the copy on another machine."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from core.files.atomic import explained
from core.files.stamp import Stamp, stamp_of
from core.held_files import open_binary, read_all
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

MODEL: Final = "model.safetensors"
METRICS: Final = "metrics.jsonl"
# Files that are replaced as a whole, in the order in which they are sent.
WHOLE: Final = (
    "run.toml",
    "attempt.toml",
    "environment.json",
    "memory.json",
    "time.json",
    "chunk_tracker_state.json",
)
LOGS: Final = re.compile(r"logs/(host\.log|rank\d+\.(log|times|stacks))")
# What recipes keep of a base model, so that a run can be resumed where that model is not: its configuration and
# tokenizer. Never code, and no name but these: both sides hold to the list.
KEPT: Final = re.compile(
    r"data/(?:model|tokenizer)/(?:config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab"
    r"|generation_config)\.json|data/(?:model|tokenizer)/(?:merges\.txt|tokenizer\.model|spiece\.model"
    r"|chat_template\.jinja)",
    re.ASCII,
)
TAIL_BYTES: Final = 4096
POLL_S: Final = 0.1
ALIVE_EVERY_S: Final = 5.0
_FRAME_BYTES: Final = 1 << 20
_WHOLE_LIMIT_BYTES: Final = 256 << 20
Send = Callable[[dict[str, Any], bytes], None]


def kept_files(run_dir: Path) -> list[str]:
    """Files that a run keeps of its base model, as paths in its folder."""
    found = [path for folder in ("model", "tokenizer") for path in sorted((run_dir / "data" / folder).glob("*"))]
    names = [path.relative_to(run_dir).as_posix() for path in found if path.is_file() and not path.is_symlink()]
    return [name for name in names if KEPT.fullmatch(name)]


def tail_hash(path: Path, size: int) -> str:
    """The hash of the last bytes before `size`, by which both sides see that they have the same file so far."""
    with explained(f"{path} could not be read"), open_binary(path) as file:
        file.seek(max(0, size - TAIL_BYTES))
        return hashlib.sha256(file.read(min(size, TAIL_BYTES))).hexdigest()


class RunStream:
    """Sends a run's files from where the copy of them ends.

    Args:
        store: The run.
        known: What the copy has: size and `tail_hash` of each file that only grows.
        send: Takes a frame and the bytes behind it.
    """

    def __init__(self, store: RunStore, known: Mapping[str, tuple[int, str]], send: Send) -> None:
        self._store = store
        self._known = dict(known)
        self._send = send
        self._sent: dict[str, int] = {}
        self._whole: dict[str, Stamp] = {}
        self._hashes: dict[str, str] = {}
        self._state: tuple[RunState, int | None] | None = None

    def run(self) -> None:
        """Sends existing and new data until the run has ended and everything is sent."""
        alive_at = time.monotonic()
        while self.send_new():
            if time.monotonic() - alive_at >= ALIVE_EVERY_S:
                alive_at = time.monotonic()
                self._send({"alive": True}, b"")
            time.sleep(POLL_S)

    def send_new(self) -> bool:
        """Sends what is new: lines first, then the state that was read before them. Whether the run is live."""
        state = self._store.state()
        info = self._store.read_host_json() if state.is_live else None
        for name in self._growing():
            self._send_grown(name)
        for name in WHOLE:
            self._send_whole(name)
        port = None if info is None else info.port
        if (state, port) != self._state:
            self._state = (state, port)
            host = {} if info is None else {"port": info.port, "token": info.token}
            self._send({"state": state.as_dict(), "live": state.is_live, **host}, b"")
        return state.is_live

    def _growing(self) -> Iterator[str]:
        yield METRICS
        if self._store.logs.is_dir():
            names = sorted(f"logs/{path.name}" for path in self._store.logs.iterdir())
            yield from (name for name in names if LOGS.fullmatch(name))

    def _send_grown(self, name: str) -> None:
        path = self._store.dir / name
        try:
            size = path.stat().st_size
        except OSError:
            return
        if name not in self._sent:
            self._sent[name] = self._agreed(name, path, size)
        if size < self._sent[name]:
            self._sent[name] = self._restart(name)
        while self._sent[name] < size:
            with explained(f"{path} could not be read"), open_binary(path) as file:
                file.seek(self._sent[name])
                data = file.read(_FRAME_BYTES)
                while name == METRICS and b"\n" not in data and len(data) < size - self._sent[name]:
                    data += file.read(_FRAME_BYTES)  # one line longer than a frame
            if name == METRICS:
                data = data[: data.rfind(b"\n") + 1]  # a line that is being written is sent when it is whole
            if not data:
                return
            self._send({"file": name, "offset": self._sent[name]}, data)
            self._sent[name] += len(data)

    def _agreed(self, name: str, path: Path, size: int) -> int:
        """Where the copy ends, if it is the beginning of this file; else it is sent again from the beginning."""
        offset, digest = self._known.get(name, (0, ""))
        if offset == 0 or (offset <= size and tail_hash(path, offset) == digest):
            return offset
        return self._restart(name)

    def _restart(self, name: str) -> int:
        self._send({"restart": name}, b"")
        return 0

    def _send_whole(self, name: str) -> None:
        path = self._store.dir / name
        stamp = stamp_of(path)
        if stamp is None or self._whole.get(name) == stamp or stamp.size > _WHOLE_LIMIT_BYTES:
            return
        try:
            data = read_all(path)
        except OSError:
            return  # it is being replaced, or is not there
        self._whole[name] = stamp
        digest = hashlib.sha256(data).hexdigest()
        if self._hashes.get(name) != digest:
            self._hashes[name] = digest
            self._send({"whole": name}, data)

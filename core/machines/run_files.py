"""Files of a run that travel between machines, and the parts of them that a copy on another machine lacks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from core.files.atomic import explained
from core.files.stamp import stamp_of
from core.held_files import open_binary, read_all
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
LOGS: Final = re.compile(r"logs/(host\.log|rank\d+\.(log|times))")
# What recipes keep of a base model, so that a run can be resumed where that model is not: its configuration and
# tokenizer. Never code, and no name but these: both sides hold to the list.
KEPT: Final = re.compile(
    r"data/(?:model|tokenizer)/(?:config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab"
    r"|generation_config)\.json|data/(?:model|tokenizer)/(?:merges\.txt|tokenizer\.model|spiece\.model"
    r"|chat_template\.jinja)",
    re.ASCII,
)
TAIL_BYTES: Final = 4096
_FRAME_BYTES: Final = 1 << 20
_WHOLE_LIMIT_BYTES: Final = 256 << 20
# By file, what a copy has: size and `tail_hash` of one that only grows, 0 and the version of one that is replaced.
Known = Mapping[str, tuple[int, str]]
Send = Callable[[dict[str, Any], bytes], None]


def kept_files(run_dir: Path) -> list[str]:
    """Files that a run keeps of its base model, as paths in its folder."""
    found = [path for folder in ("model", "tokenizer") for path in sorted((run_dir / "data" / folder).glob("*"))]
    names = [path.relative_to(run_dir).as_posix() for path in found if path.is_file() and not path.is_symlink()]
    return [name for name in names if KEPT.fullmatch(name)]


def growing_files(store: RunStore) -> Iterator[str]:
    """Metrics and logs, as paths in the run's folder."""
    yield METRICS
    if store.logs.is_dir():
        names = sorted(f"logs/{path.name}" for path in store.logs.iterdir())
        yield from (name for name in names if LOGS.fullmatch(name))


def tail_hash(path: Path, size: int) -> str:
    """The hash of the last bytes before `size`, by which both sides see that they have the same file so far."""
    with explained(f"{path} could not be read"), open_binary(path) as file:
        file.seek(max(0, size - TAIL_BYTES))
        return hashlib.sha256(file.read(min(size, TAIL_BYTES))).hexdigest()


def send_new(store: RunStore, known: Known, send: Send) -> None:
    """Send what a copy lacks: lines first, then the state that was read before them.

    Args:
        store: The run.
        known: What the copy has.
        send: Takes a frame and the bytes behind it.
    """
    state = store.state()
    info = store.read_host_json() if state.is_live else None
    for name in growing_files(store):
        _send_grown(store.dir / name, name, known, send)
    for name in WHOLE:
        _send_whole(store.dir / name, known.get(name, (0, ""))[1], send)
    host = {} if info is None else {"port": info.port, "token": info.token}
    send({"state": state.as_dict(), "live": state.is_live, **host}, b"")


def _send_grown(path: Path, name: str, known: Known, send: Send) -> None:
    """Continue the copy of a file where it is the beginning of this one, and else send it again."""
    try:
        size = path.stat().st_size
    except OSError:
        return
    offset, digest = known.get(name, (0, ""))
    if offset and (offset > size or tail_hash(path, offset) != digest):
        send({"restart": name}, b"")
        offset = 0
    while offset < size:
        with explained(f"{path} could not be read"), open_binary(path) as file:
            file.seek(offset)
            data = file.read(_FRAME_BYTES)
            while name == METRICS and b"\n" not in data and len(data) < size - offset:
                data += file.read(_FRAME_BYTES)  # one line longer than a frame
        if name == METRICS:
            # A line that is being written is sent when it is whole.
            data = data[: data.rfind(b"\n") + 1]
        if not data:
            return
        send({"file": name, "offset": offset}, data)
        offset += len(data)


def _send_whole(path: Path, version: str, send: Send) -> None:
    stamp = stamp_of(path)
    if stamp is None or str(stamp) == version or stamp.size > _WHOLE_LIMIT_BYTES:
        return
    try:
        data = read_all(path)
    except OSError:
        return  # it is being replaced, or is not there
    send({"whole": path.name, "version": str(stamp)}, data)

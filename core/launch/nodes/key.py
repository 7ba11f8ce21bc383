"""The key that the machines of a run share: a file, made once and copied by the user, as munge and ssh have theirs."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.errors import PreflightError
from core.files.atomic import explained, write_atomic
from core.files.private import make_private
from core.held_files import read_utf8
from core.paths import data_folder
from core.protocol.challenge import proof
from core.protocol.rank_context import RankContext

KEY_FILE: Final = "nodes.key"
_KEY: Final = re.compile(r"[0-9a-f]{64}")


def key_file() -> Path:
    """Where it is kept, in the user's own folder."""
    return data_folder() / KEY_FILE


def make_key() -> str:
    """The key of this machine, made if there is none.

    Raises:
        PreflightError: The file cannot be read or written, or holds something else.
    """
    path = key_file()
    if not path.exists():
        with explained(f"{path} could not be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, secrets.token_hex(32) + "\n", mode=0o600)
            with contextlib.suppress(OSError):  # a drive without access lists
                make_private(path)
    return read_key()


def read_key() -> str:
    """The key of this machine.

    Raises:
        PreflightError: There is none, or the file holds something else; says how to get it.
    """
    path = key_file()
    try:
        text = read_utf8(path).strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if _KEY.fullmatch(text):
        return text
    what = f"{path} is damaged" if path.exists() else f"There is no key of the nodes on this machine ({path})"
    raise PreflightError(
        f"{what}.",
        f"Copy the file from the node that the run starts on, for example with scp NODE:{path} {path}",
        title="The key of the nodes is missing",
    )


def rank_token(key: str, salt: str, attempt: int) -> str:
    """The token of an attempt's ranks, which every machine makes for itself, so that it never travels.

    Args:
        key: The machines'.
        salt: New for each host.
        attempt: The attempt's number.
    """
    return proof(key, "ranks", salt, str(attempt))


def with_token(environment: Mapping[str, str], salt: str) -> dict[str, str]:
    """A rank's environment with its token, where its host has sent the salt in place of it.

    Raises:
        PreflightError: This machine has no key.
    """
    if not salt:
        return dict(environment)
    context = RankContext.from_env(environment)
    token = rank_token(read_key(), salt, context.attempt)
    return {**environment, **dataclasses.replace(context, token=token).to_env()}

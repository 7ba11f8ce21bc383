"""Environment variables of a run: NAME=VALUE, checked. Variables that Rankdeck sets itself are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from core.errors import ConfigError

FIELD: Final = "env"
# Of a value: Windows allows no more.
MAX_LETTERS: Final = 32_767
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_()]*")
_RANKS: Final = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_*")
_WHERE: Final = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_*")
_CARDS: Final = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
)  # fmt: skip
# Names, or patterns of names, that cannot be given: why, and what to do.
DECIDED: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        _RANKS,
        ("It sets a process's rank, so each process needs a different value.", "Choose devices and mode."),
    ),
    **dict.fromkeys(
        _WHERE,
        ("It sets the rendezvous address of the processes, which Rankdeck chooses for each attempt.", "Leave it out."),
    ),
    **dict.fromkeys(
        _CARDS, ("Each process sees only the device that was chosen for it.", "Choose devices for the run instead.")
    ),
    "RANKDECK_*": ("Rankdeck uses these variables for its own processes.", "Leave it out."),
}
# ``False`` lets a script's rank 0 host the rendezvous store itself (docs/scripts.md).
_FREE: Final = "TORCHELASTIC_USE_AGENT_STORE"


def read_variables(value: object) -> dict[str, str]:
    """Read a mapping, a list of ``NAME=VALUE`` or lines of them; raises `ConfigError`, also for `DECIDED` variables."""
    if isinstance(value, str):
        value = [line.strip() for line in value.splitlines() if line.strip()]
    pairs: list[tuple[object, object]]
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, Sequence):
        pairs = [_split(item) for item in value]
    else:
        raise _wrong(f"{value!r} does not name variables")
    variables: dict[str, str] = {}
    for name, item in pairs:
        text = _text(str(name), item)
        _check(str(name), text)
        variables[str(name)] = text
    return variables


def variable_lines(variables: Mapping[str, str]) -> str:
    """Write variables as lines that `read_variables` reads back."""
    return "\n".join(f"{name}={value}" for name, value in variables.items())


def is_decided(name: str) -> bool:
    return _deciding(name) is not None


def _deciding(name: str) -> str | None:
    if name.upper() == _FREE:
        return None
    return next((pattern for pattern in DECIDED if fnmatchcase(name.upper(), pattern)), None)


def _split(item: object) -> tuple[str, str]:
    name, equals, value = str(item).partition("=")
    if not isinstance(item, str) or not equals:
        raise _wrong(f"{item!r} is not NAME=VALUE")
    return name.strip(), value


def _text(name: str, item: object) -> str:
    # A file's `true`; which of 1, true and True is meant only the person knows.
    if isinstance(item, bool):
        raise _wrong(f"{name} is {str(item).lower()}, not text", f'Write it in quotes, for example {name} = "1".')
    if not isinstance(item, str | int | float):
        raise _wrong(f"{name} is neither text nor a number")
    return str(item)


def _check(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise _wrong(f"{name!r} cannot be a variable's name")
    pattern = _deciding(name)
    if pattern is not None:
        why, next_step = DECIDED[pattern]
        error = ConfigError(FIELD, f"{name} cannot be set for a run. {why}", next_step)
        error.title = "This variable is set by Rankdeck"
        raise error
    if len(value) > MAX_LETTERS or any(sign in value for sign in "\0\r\n"):
        raise _wrong(f"The value of {name} has a line break or is too long")


def _wrong(what: str, next_step: str = "Write one variable a line, for example NCCL_DEBUG=INFO.") -> ConfigError:
    return ConfigError(FIELD, f"Environment (env): {what}.", next_step)

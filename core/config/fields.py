"""Field specifications: type, limits, default and meaning of a form's field, for `RunConfig` and for recipes."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, cast

from core.config.mode import Mode
from core.config.numbers import NumberError, read_number
from core.config.variables import read_variables, variable_lines
from core.errors import ConfigError

FieldType = Literal["int", "float", "bool", "str", "choice", "path", "variables"]
Picks = Literal["name", "file", "folder"]
FieldValue = bool | int | float | str | Mapping[str, str] | None

# The word that empties an optional setting, on a command line and in a file.
UNSET: Final = "none"
_TRUTH: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def is_unset(text: str) -> bool:
    return text.strip().lower() == UNSET


class Needs(StrEnum):
    """A run's requirement for a setting to have an effect; the value ends the sentence "… has an effect …"."""

    DDP = "in mode ddp and with PyTorch's own ZeRO stage 1 only"
    EXCHANGE = "only where devices exchange tensors, which they don't in this run"
    COMPILER = "under Linux with a C++ compiler and not with DeepSpeed"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a form, as `recipe.toml` describes it.

    Attributes:
        name: Key in `RunConfig` (or in its `options`) and, with dashes, the flag's name.
        type: "variables" is NAME=VALUE, any number of times.
        default: None leaves it to be worked out.
        minimum, maximum: Inclusive limits of a number.
        former: Choices of earlier versions: runs that have them are listed and shown, and refused at a start.
        help: One or two plain sentences: what it does and when to change it.
        unit: Shown behind the value ("samples", "s", …).
        common: True puts it in the first, unfolded part of the form.
        group: Its heading in the form. Empty: the recipe's title for a field of a recipe; for a setting, the form has
            another place, or none.
        optional: It may be left empty.
        picks: The offer of the button beside a path: any name, also of a new file; an existing file; a folder.
        patterns: Files that this button shows first, for example "*.py *.pyw".
        modes: The modes in which it has a meaning; empty: in all of them.
        when: Another field and the value with which this one has a meaning: a text or several (``"a|b"``),
            ``"!text"`` (or several) for any other, ``"*"`` for anything, ``""`` for nothing.
        instead: A sentence in the form where it has no effect.
        changes: Its effect on a resumed run: how it trains, its batch, or when it stops; empty: it cannot be
            changed.
        effect: A sentence of the resume's plan on such a change.
        empty: The meaning of an empty field, in a word or two for the form.
        names: Values and their names in the form, which offers these to choose from.
    """

    name: str
    label: str
    type: FieldType
    default: FieldValue = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    help: str = ""
    unit: str = ""
    common: bool = False
    group: str = ""
    optional: bool = False
    picks: Picks = "name"
    patterns: str = ""
    modes: tuple[Mode, ...] = ()
    needs: Needs | None = None
    when: tuple[str, str] = ("", "")
    instead: str = ""
    changes: Literal["", "how", "batch", "stop"] = ""
    effect: str = ""
    empty: str = ""
    names: tuple[tuple[str, str], ...] = ()

    def matters(self, texts: Mapping[str, str]) -> bool:
        """True if the other field (`when`) leaves this one a meaning; without that field it does."""
        name, wanted = self.when
        return name not in texts or matches(texts[name], wanted)

    def check(self, value: FieldValue) -> FieldValue:
        """Return `value` in this field's type; raises `ConfigError` with the allowed values."""
        if self.type == "variables":
            return read_variables({} if value is None else value)
        if value is None or value == "" or (self.optional and isinstance(value, str) and is_unset(value)):
            if self.optional:
                return None
            raise self._wrong("nothing was given")
        if self.type == "bool":
            if isinstance(value, bool):
                return value
            raise self._wrong(f"{_shown(value)} is neither true nor false")
        if self.type in ("int", "float"):
            return self._number(value)
        if not isinstance(value, str):
            raise self._wrong(f"{_shown(value)} is not text")
        if self.type == "choice" and value not in self.choices + self.former:
            error = self._wrong(f"{_shown(value)} is not one of the choices")
            near = difflib.get_close_matches(value.lower(), self.choices, n=1)
            raise (
                error if not near else ConfigError(self.name, error.cause, f"Did you mean {near[0]}? {error.next_step}")
            )
        return value

    def parse(self, text: str) -> FieldValue:
        """Check a text from a form or a command line; raises `ConfigError`."""
        text = text.strip()
        if self.optional and is_unset(text):
            return None
        if not text or self.type in ("str", "choice", "path", "variables"):
            return self.check(text)
        if self.type == "bool":
            if text.lower() not in _TRUTH:
                raise self._wrong(f"{_shown(text)} is neither true nor false")
            return _TRUTH[text.lower()]
        return self.check(self._parsed_number(text))

    def text(self, value: FieldValue) -> str:
        """The shortest text that `parse` reads back as `value`."""
        if isinstance(value, Mapping):
            return variable_lines(value)
        if value is None:
            return "" if self.type in ("str", "choice", "path") else "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)

    def _parsed_number(self, text: str) -> int | float:
        try:
            return read_number(text, self.unit, whole=self.type == "int")
        except NumberError as error:
            raise self._wrong(f"{_shown(text)} {error}", error.instead) from None

    def _number(self, value: FieldValue) -> int | float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(f"{_shown(value)} is not a number")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong(f"{_shown(value)} is not a finite number")
        if self.type == "int" and isinstance(value, float) and not value.is_integer():
            raise self._wrong(f"{_shown(value)} is not a whole number")
        if self.minimum is not None and value < self.minimum:
            raise self._wrong(f"{_shown(value)} is below {_plain(self.minimum)}")
        if self.maximum is not None and value > self.maximum:
            raise self._wrong(f"{_shown(value)} is above {_plain(self.maximum)}")
        try:
            return int(value) if self.type == "int" else float(value)
        except OverflowError:
            raise self._wrong(f"{_shown(value)} is too large") from None

    def _wrong(self, what: str, instead: str = "") -> ConfigError:
        return ConfigError(self.name, f"{self.label} ({self.name}): {what}.", instead or f"Give {self.allowed()}.")

    def allowed(self) -> str:
        """The allowed values as text: "a whole number from 1 to 64"."""
        if self.type == "choice":
            return "one of " + ", ".join(self.choices)
        kind = _KINDS[self.type]
        if self.minimum is not None and self.maximum is not None:
            return f"{kind} from {_plain(self.minimum)} to {_plain(self.maximum)}"
        if self.minimum is not None:
            return f"{kind} of at least {_plain(self.minimum)}"
        return f"{kind} of at most {_plain(self.maximum)}" if self.maximum is not None else kind


_KINDS: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "path": "a file or a folder",
    "str": "some text",
    "variables": "NAME=VALUE, one a line",
}


def matches(text: str, wanted: str) -> bool:
    """Compare a field's text with a `FieldSpec.when`."""
    if wanted == "*":
        return bool(text)
    return text not in wanted[1:].split("|") if wanted.startswith("!") else text in wanted.split("|")


def _plain(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    return f"{number:g}" if abs(number) < 1e6 and number != int(number) else f"{number:.0f}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:76] + " ..."


def setting(
    default: Any,
    label: str,
    help: str,
    *,
    limits: tuple[float, float] | None = None,
    path: bool = False,
    group: str = "System",
    **others: Any,
) -> Any:
    """Declare a dataclass field with everything that form, command line, files and docs need to know of it.

    Its name and its type are those of the dataclass field: ``int | None`` is a number that may be left empty, a
    ``Mapping`` is environment variables. `limits` are minimum and maximum; the others are attributes of `FieldSpec`.
    """
    kind: FieldType = "path" if path else "choice" if "choices" in others else "str"
    minimum, maximum = limits or (None, None)
    spec = FieldSpec("", label, kind, default, minimum, maximum, help=help, group=group, **others)
    if isinstance(default, Mapping):
        return dataclasses.field(default_factory=lambda: dict(default), metadata={"spec": spec})
    return dataclasses.field(default=default, metadata={"spec": spec})


def declared_fields(owner: type[Any]) -> tuple[FieldSpec, ...]:
    """The fields of a dataclass that were declared with `setting`, in their order."""
    return tuple(
        _completed(field.metadata["spec"], field.name, str(field.type))
        for field in dataclasses.fields(owner)
        if "spec" in field.metadata
    )


def _completed(spec: FieldSpec, name: str, annotation: str) -> FieldSpec:
    if annotation.startswith("Mapping"):
        return dataclasses.replace(spec, name=name, type="variables", default=None, optional=True)
    number = re.match(r"int|float|bool", annotation)
    kind = cast(FieldType, number[0]) if number else spec.type
    return dataclasses.replace(spec, name=name, type=kind, optional=annotation.endswith("| None"))

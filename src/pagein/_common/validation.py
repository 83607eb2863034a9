"""Checks of option values.

A field says its type, its allowed values and one line of documentation in one place:

    keep: Annotated[int, COUNT, "Actions that stay."] = 10

Construction (``check_fields``), ``pagein.toml``, the environment and ``docs/configuration.md`` all read that.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

from pagein._common.surrogates import is_utf8
from pagein.errors import ConfigurationError, PageinError

Kind = Literal["whole", "number", "switch", "text", "path", "list", "table"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """The allowed values of an option.

    Numbers lie between ``least`` and ``most``; ``exclusive``: ``least`` itself is not allowed. ``cap`` is the largest
    number a configuration may set, where code may pass more. Texts are one of ``choices``, or match ``pattern``, which
    ``form`` describes. ``kind`` is set where the declared type does not tell it. A text in which ``guarded`` matches
    says where a run or a key is sent: it is not read from a file that was found by search.
    """

    least: float = 0
    most: float = math.inf
    exclusive: bool = False
    cap: float = math.inf
    choices: tuple[str, ...] = ()
    form: str = ""
    pattern: str = r".*"
    guarded: str = ""
    kind: Kind | None = None

    @property
    def largest(self) -> float:
        """The largest number a configuration may set."""
        return min(self.most, self.cap)

    @property
    def allowed_values(self) -> str:
        """The allowed values in words, such as ``a number from 0 to 0.5``."""
        if self.form:
            return self.form
        names = ", ".join(self.choices)
        match self.kind:
            case "whole" | "number":
                noun = "a whole number" if self.kind == "whole" else "a number"
                if self.exclusive:
                    return f"{noun} above {self.least:,}, at most {self.largest:,}"
                return f"{noun} from {self.least:,} to {self.largest:,}"
            case "switch":
                return f"true, false or {names}" if names else "true or false"
            case "list":
                return f"a list of one or more of {names}" if names else "a list of texts"
            case "table":
                return "a table"
            case _:
                return f"one of {names}" if names else "a text"

    def accepts(self, value: object, *, configured: bool = False) -> bool:
        """True where the value is allowed; ``configured``: from a file or the environment."""
        match self.kind:
            case "whole" | "number":
                if not is_number(value) or (self.kind == "whole" and not is_whole_number(value)):
                    return False
                too_small = value <= self.least if self.exclusive else not value >= self.least
                return not too_small and value <= (self.largest if configured else self.most)
            case "switch":
                return isinstance(value, bool) or (isinstance(value, str) and value in self.choices)
            case "list":
                if not isinstance(value, list | tuple):
                    return False
                return all(map(self._accepts_text, value)) and bool(value or not self.choices or not configured)
            case "table":
                return isinstance(value, Mapping)
            case _:
                return self._accepts_text(value)

    def _accepts_text(self, value: object) -> bool:
        if not isinstance(value, str) or "\0" in value or not is_utf8(value):
            return False
        return value in self.choices if self.choices else re.fullmatch(self.pattern, value, re.DOTALL) is not None


ANY = Constraint()
ANY_SHARE = Constraint(most=1)
POSITIVE_SHARE = Constraint(most=1, exclusive=True)
TOKENS = Constraint(cap=100_000_000)
POSITIVE_TOKENS = Constraint(1, cap=100_000_000)
COUNT = Constraint(cap=1_000_000)
POSITIVE_COUNT = Constraint(1, cap=1_000_000)
SECONDS = Constraint(cap=86_400)
HALF_LIFE_DAYS = Constraint(exclusive=True, cap=36_500)


@dataclass(frozen=True, slots=True)
class Option:
    """One documented option: its allowed values, its line of documentation, and whether it may be None."""

    constraint: Constraint
    doc: str
    optional: bool


def option_from_hint(hint: Any) -> Option | None:
    """Read the option from ``Annotated[type, constraint, "documentation"]``; None for any other type."""
    if get_origin(hint) is not Annotated:
        return None
    declared, *metadata = get_args(hint)
    doc = next((item for item in metadata if isinstance(item, str)), "")
    constraint = next((item for item in metadata if isinstance(item, Constraint)), ANY)
    kind, choices = _kind_of(declared)
    constraint = replace(constraint, kind=constraint.kind or kind, choices=constraint.choices or choices)
    return Option(constraint, doc, optional=NoneType in get_args(declared)) if doc else None


def _kind_of(declared: Any) -> tuple[Kind | None, tuple[str, ...]]:
    """The kind of a declared type, with its literal values; None for a type that tells no kind."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        rest = [member for member in arguments if member is not NoneType]
        return _kind_of(rest[0]) if len(rest) == 1 else (None, ())
    if origin is Literal:
        return "text", arguments
    if origin is tuple:
        return "list", _kind_of(arguments[0])[1]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "table", ()
    kinds: dict[Any, Kind] = {bool: "switch", int: "whole", float: "number", str: "text"}
    return kinds.get(declared), ()


@functools.cache
def options_of(owner: Callable[..., Any]) -> Mapping[str, Option]:
    """The documented parameters of a class or function, by name, in their order."""
    inits = (vars(base).get("__init__") for base in owner.__mro__) if isinstance(owner, type) else (owner,)
    hints = get_type_hints(next(init for init in inits if init is not None), include_extras=True)
    options = {name: option_from_hint(hint) for name, hint in hints.items()}
    return {name: option for name, option in options.items() if option is not None}


def check_fields(instance: Any, error: type[PageinError] = ConfigurationError) -> None:
    """Raise ``error`` for the first documented field of a dataclass whose value is neither allowed nor its default."""
    owner: Callable[..., Any] = type(instance)
    defaults = {field.name: field.default for field in fields(instance)}
    values = ((name, getattr(instance, name)) for name in options_of(owner))
    check_arguments(owner, {name: value for name, value in values if value != defaults[name]}, error)


class CheckedFields:
    """A base of dataclasses whose documented fields are checked at construction. Raises ConfigurationError."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


def check_arguments(
    owner: Callable[..., Any], values: Mapping[str, object], error: type[PageinError] = ConfigurationError
) -> None:
    """Raise ``error`` for the first value that the parameter of that name does not allow."""
    options = options_of(owner)
    for name, value in values.items():
        option = options[name]
        if not (value is None and option.optional) and not option.constraint.accepts(value):
            raise error(f"{name} is {option.constraint.allowed_values}, not {value!r}")


def is_whole_number(value: object) -> TypeGuard[int]:
    """True for an int that is no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """True for an int or a float, NaN included, that is no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)

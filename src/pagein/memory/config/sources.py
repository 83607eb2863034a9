"""Read configured values from one file and from the environment, which overrides it; check each of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pagein.errors import ConfigurationError
from pagein.memory.config.keys import KEYS, PREFIX, SECTIONS, SHORT, Key, Value
from pagein.models.environment import REDACTED, redact_keys

FILE_NAME, PROJECT_FILE_NAME = "pagein.toml", "pyproject.toml"

OTHER_SECTION = "memory"
OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "similarity_weight": "facts.weights.similarity",
        "confidence_weight": "facts.weights.confidence",
        "enabled": "facts.enabled",
        "injection_enabled": "facts.enabled",
        "debounce_seconds": "facts.debounce",
        "max_facts": "facts.capacity.max_facts",
        "fact_confidence_threshold": "facts.min_confidence",
        "max_injection_tokens": "facts.max_injection_tokens",
        "model_name": "summarizer.model",
        "token_limit": "budget.window",
    }
)
"""Keys by the names that other systems have for them, such as deer-flow's ``memory.similarity_weight``."""

RESERVED_VARIABLES = ("PAGEIN_CACHE", "PAGEIN_KEY", "PAGEIN_POSTGRES", "PAGEIN_PROFILE")
"""Variables that are no option: those of the tests, and the key of encrypted logs."""

SHOWN_MAX_CHARACTERS = 80
"""Characters of a value that an error repeats."""

_SECRET = re.compile(
    r"(?i)(?:(?:api|access|private|secret)_?key|(?:^|\.)key|secret|password|passwd|credentials?|authorization|bearer|token)$"
)
_LIST_KEYS = "pagein config --docs lists all keys"
_NO_SECRETS = (
    "a configuration may not contain a key, password or token: put it into the provider's environment variable, such "
    "as OPENAI_API_KEY, or into one that summarizer.key_variable names"
)


@dataclass(frozen=True, slots=True)
class ConfiguredValue:
    """A value that was set, and its source: the path of a file, or the name of a variable."""

    value: Value
    source: str


def read_sources(
    path: Path | None, start: Path, environ: Mapping[str, str]
) -> tuple[Path | None, dict[str, ConfiguredValue]]:
    """Return the file that was read and all values set. Raises ConfigurationError for the first wrong one."""
    file, tables = _find_file(start) if path is None else (path, _read_named_file(path))
    values: dict[str, ConfiguredValue] = {}
    if file is not None:
        for key, raw in _iter_keys(tables, "", str(file)):
            value = _check_value(key, raw, str(file), file.parent, is_explicit=path is not None)
            values[key.name] = ConfiguredValue(value, str(file))
    return file, values | _read_environment(environ, values)


def _read_named_file(path: Path) -> dict[str, Any]:
    tables = _parse_toml(path)
    if path.name != PROJECT_FILE_NAME:
        return tables
    if (section := _tool_section(tables, path)) is None:
        raise ConfigurationError(f"{path} has no [tool.pagein]")
    return section


def _find_file(start: Path) -> tuple[Path | None, dict[str, Any]]:
    """Find the nearest file from ``start`` upwards; in one folder, ``pagein.toml`` before ``pyproject.toml``."""
    folder = start.absolute()
    for parent in (folder, *folder.parents):
        if _is_file(parent / FILE_NAME):
            return parent / FILE_NAME, _parse_toml(parent / FILE_NAME)
        project = parent / PROJECT_FILE_NAME
        if _is_file(project) and (section := _tool_section(_parse_toml(project), project)) is not None:
            return project, section
    return None, {}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a parent folder without read permission
        return False


def _tool_section(tables: Mapping[str, Any], path: Path) -> dict[str, Any] | None:
    tool = tables.get("tool")
    section = tool.get("pagein") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise ConfigurationError(f"{path}: tool.pagein is a table, [tool.pagein]")
    return section


def _parse_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path} is no TOML that can be read: it is nested too deep") from None
    except ValueError as error:  # TOML, UTF-8, and numbers of thousands of digits
        raise ConfigurationError(f"{path} is no TOML: {redact_keys(str(error))}") from None


def _iter_keys(tables: Mapping[str, Any], prefix: str, source: str) -> Iterator[tuple[Key, object]]:
    """Yield each key that a file sets, with its value as TOML gives it."""
    for last, value in tables.items():
        name = prefix + last
        if "." in last:  # in quotes: the same key could be set twice
            raise ConfigurationError(f"{source}: write {_show_value(name)} without its quotes, or in its table")
        if name in KEYS:
            yield KEYS[name], value
        elif name in SECTIONS and isinstance(value, dict):
            yield from _iter_keys(value, f"{name}.", source)
        elif name in SHORT:
            yield KEYS[SHORT[name]], value
        elif name in SECTIONS:
            raise ConfigurationError(f"{source}: {name} is a table, [{name}], not {_show_value(value)}")
        else:
            inner = next(iter(value), "") if name == OTHER_SECTION and isinstance(value, dict) else ""
            raise ConfigurationError(f"{source}: {_describe_unknown(f'{name}.{inner}' if inner else name)}")


def _read_environment(
    environ: Mapping[str, str], file_values: Mapping[str, ConfiguredValue]
) -> dict[str, ConfiguredValue]:
    """The values that the environment sets; an empty variable counts as unset."""
    holder = KEYS["summarizer.key_variable"]
    secret = environ.get(holder.variable) or (file_values[holder.name].value if holder.name in file_values else "")
    variables = {key.variable: key for key in KEYS.values()}
    variables |= {PREFIX + short.upper(): KEYS[name] for short, name in SHORT.items()}
    values: dict[str, ConfiguredValue] = {}
    for variable, text in sorted(environ.items()):
        if not text or not variable.startswith(PREFIX) or variable in {*RESERVED_VARIABLES, secret}:
            continue
        source = f"the environment variable {variable}"
        key = variables.get(variable)
        if key is None:
            _refuse_misspelled(variable, variables, source)
            continue
        if key.name in values:
            raise ConfigurationError(f"{source} and {values[key.name].source} set one key, {key.name}: unset one")
        value = _check_value(key, key.parse(text), source, None, is_explicit=True)
        values[key.name] = ConfiguredValue(value, variable)
    return values


def _refuse_misspelled(variable: str, variables: Mapping[str, Key], source: str) -> None:
    """Raise ConfigurationError for a misspelled variable; other programs' variables may have our prefix."""
    names = {option.removeprefix(PREFIX): option for option in variables}
    name = variable.removeprefix(PREFIX)
    in_section = name.startswith(tuple(f"{section.upper().replace('.', '_')}_" for section in SECTIONS))
    if _is_secret(name):
        if in_section:
            raise ConfigurationError(f"{source}: {_NO_SECRETS}")
        return
    near = get_close_matches(name, names, n=1, cutoff=0.75)
    if near or in_section:
        cure = f"did you mean {names[near[0]]}?" if near else _LIST_KEYS
        raise ConfigurationError(f"{source} belongs to no key: {cure}")


def _is_secret(name: str) -> bool:
    return _SECRET.search(name.replace("-", "_")) is not None


def _describe_unknown(name: str) -> str:
    """An error message for an unknown key, without its value, which may be a secret."""
    shown_name = _show_value(name)
    if _is_secret(name):
        return f"{shown_name}: {_NO_SECRETS}"
    if name in {"tool", "pagein"}:
        return f"{shown_name}: write the keys of a {FILE_NAME} at its top, without [tool.pagein]"
    name = name.lower()
    if (ours := OTHER_NAMES.get(name.removeprefix(f"{OTHER_SECTION}."))) is not None:
        return f"unknown key {shown_name}: here it is {ours!r}"
    near = get_close_matches(name, (*KEYS, *SECTIONS), n=1, cutoff=0.6)
    if not near:
        by_last_part = {key_name.rpartition(".")[2]: key_name for key_name in reversed(tuple(KEYS))}
        last_part = name.rpartition(".")[2]
        near = [by_last_part[match] for match in get_close_matches(last_part, by_last_part, n=1, cutoff=0.7)]
    return f"unknown key {shown_name}: " + (f"did you mean {near[0]!r}?" if near else _LIST_KEYS)


def _check_value(key: Key, value: object, source: str, folder: Path | None, *, is_explicit: bool) -> Value:
    """Return the value as it is kept. Raises ConfigurationError with source, key, value and allowed values."""
    guarded = key.constraint.guarded
    if (guarded or key.constraint.kind == "table") and _has_secret(value):
        raise ConfigurationError(f"{source}: {key.name} holds what looks like a key; {_NO_SECRETS}")
    if not key.accepts(value):
        raise ConfigurationError(f"{source}: {key.name} is {key.constraint.allowed_values}, not {_show_value(value)}")
    if guarded and not is_explicit and re.search(guarded, str(value)):
        raise ConfigurationError(
            f"{source}: {key.name} says where a run and a key are sent, and is not taken from a file that was only "
            f"found: name the file, load(path) or --file, or set {key.variable}"
        )
    if isinstance(value, list):
        return tuple(value)
    if key.constraint.kind == "path" and folder is not None:
        return str(folder / str(value))
    checked: Value = value  # type: ignore[assignment]  # the key accepts it
    return checked


def _has_secret(value: object) -> bool:
    """True where a text looks like a key, or the name of its field announces one."""
    if isinstance(value, dict):
        return any(_is_secret(str(name)) or _has_secret(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return any(map(_has_secret, value))
    return isinstance(value, str) and REDACTED in redact_keys(value)


def _show_value(value: object) -> str:
    """A value as an error repeats it: short, on one line, without secrets."""
    if isinstance(value, dict):
        return "a table"
    try:
        return redact_keys(repr(value), max_chars=SHOWN_MAX_CHARACTERS)
    except ValueError:  # numbers of thousands of digits
        return "a number of thousands of digits"

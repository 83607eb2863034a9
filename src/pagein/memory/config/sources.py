"""Where values come from: one file, the environment over it. Each is checked by itself here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pagein.errors import ConfigurationError
from pagein.memory.config.keys import KEYS, PREFIX, SECTIONS, SHORT, Key, Value
from pagein.models.secrets import HIDDEN, scrubbed

FILE, PROJECT = "pagein.toml", "pyproject.toml"

OURS = ("PAGEIN_CACHE", "PAGEIN_KEY", "PAGEIN_POSTGRES", "PAGEIN_PROFILE")
"""Variables that the tests read, and the one that holds a key to encrypted logs: none of them is an option."""

MOST = 80
"""Characters of a value that an error repeats."""

_SECRET = re.compile(
    r"(?i)(?:(?:api|access|private|secret)_?key|(?:^|\.)key|secret|password|passwd|credentials?|authorization|bearer|token)$"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A value that was set, and where: a file's path, or a variable's name."""

    value: Value
    source: str


def found_in(
    path: Path | None, start: Path, environ: Mapping[str, str]
) -> tuple[Path | None, dict[str, Found]]:
    """The file that holds, and every value that is set. Raises ConfigurationError for the first that is wrong."""
    file, tables = (path, _named(path)) if path is not None else _searched(start)
    values: dict[str, Found] = {}
    if file is not None:
        for key, value in _flat(tables, "", str(file)):
            values[key.name] = Found(
                _checked(key, value, str(file), file.parent, named=path is not None), str(file)
            )
    return file, values | _overrides(environ, values)


def _named(path: Path) -> dict[str, Any]:
    tables = _parsed(path)
    if path.name != PROJECT:
        return tables
    if (ours := _section(tables, path)) is None:
        raise ConfigurationError(f"{path} has no [tool.pagein]")
    return ours


def _searched(start: Path) -> tuple[Path | None, dict[str, Any]]:
    """The nearest file from ``start`` upwards; beside a ``pagein.toml`` no ``pyproject.toml`` is looked at."""
    folder = start.absolute()
    for each in (folder, *folder.parents):
        if _is_file(each / FILE):
            return each / FILE, _parsed(each / FILE)
        project = each / PROJECT
        if _is_file(project) and (ours := _section(_parsed(project), project)) is not None:
            return project, ours
    return None, {}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above that nobody may look into
        return False


def _section(tables: Mapping[str, Any], path: Path) -> dict[str, Any] | None:
    tool = tables.get("tool")
    ours = tool.get("pagein") if isinstance(tool, dict) else None
    if ours is not None and not isinstance(ours, dict):
        raise ConfigurationError(f"{path}: tool.pagein is a table, [tool.pagein]")
    return ours


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path} is no TOML that can be read: it is nested too deep") from None
    except ValueError as error:  # TOML, UTF-8, and numbers of thousands of digits
        raise ConfigurationError(f"{path} is no TOML: {scrubbed(str(error))}") from None


def _flat(tables: Mapping[str, Any], prefix: str, source: str) -> Iterator[tuple[Key, object]]:
    """Each key that a file sets, with its value as TOML gives it."""
    for last, value in tables.items():
        name = prefix + last
        if "." in last:  # in quotes: the same key could stand twice
            raise ConfigurationError(f"{source}: {_shown(name)} is a key without its quotes, or in its table")
        if name in KEYS:
            yield KEYS[name], value
        elif name in SECTIONS and isinstance(value, dict):
            yield from _flat(value, f"{name}.", source)
        elif name in SHORT:
            yield KEYS[SHORT[name]], value
        elif name in SECTIONS:
            raise ConfigurationError(f"{source}: {name} is a table, [{name}], not {_shown(value)}")
        else:
            raise ConfigurationError(f"{source}: {_unknown(name)}")


def _overrides(environ: Mapping[str, str], values: Mapping[str, Found]) -> dict[str, Found]:
    """What the environment sets over those values; a variable that is empty is none."""
    holder = KEYS["summarizer.key_variable"]
    told = environ.get(holder.variable) or (values[holder.name].value if holder.name in values else "")
    variables = {key.variable: key for key in KEYS.values()}
    variables |= {PREFIX + short.upper(): KEYS[name] for short, name in SHORT.items()}
    found: dict[str, Found] = {}
    for variable, text in sorted(environ.items()):
        if not text or not variable.startswith(PREFIX) or variable in {*OURS, told}:
            continue
        source = f"the environment variable {variable}"
        key = variables.get(variable)
        if key is None:
            _unless_near(variable, variables, source)
            continue
        if key.name in found:
            raise ConfigurationError(
                f"{source} and {found[key.name].source} set one key, {key.name}: unset one"
            )
        found[key.name] = Found(_checked(key, key.read(text), source, None, named=True), variable)
    return found


def _unless_near(variable: str, variables: Mapping[str, Key], source: str) -> None:
    """Raises ConfigurationError for a variable that was meant for us; others may begin as ours do."""
    rest = {each.removeprefix(PREFIX): each for each in variables}
    name = variable.removeprefix(PREFIX)
    is_ours = name.startswith(tuple(f"{each.upper().replace('.', '_')}_" for each in SECTIONS))
    if _is_secret(name):
        if is_ours:
            raise ConfigurationError(f"{source}: {_NO_KEYS}")
        return
    near = get_close_matches(name, rest, n=1, cutoff=0.75)
    if near or is_ours:
        cure = f"did you mean {rest[near[0]]}?" if near else _ALL
        raise ConfigurationError(f"{source} is no key's: {cure}")


_ALL = "pagein config --docs lists them all"
_NO_KEYS = (
    "no key, password or token stands in a configuration: put it into the variable its maker names, as OPENAI_API_KEY, "
    "or into one that summarizer.key_variable names"
)


def _is_secret(name: str) -> bool:
    return _SECRET.search(name.replace("-", "_")) is not None


def _unknown(name: str) -> str:
    """What is wrong with a name that is no key; without its value, which may be anything."""
    shown = _shown(name)
    if _is_secret(name):
        return f"{shown}: {_NO_KEYS}"
    if name in {"tool", "pagein"}:
        return f"{shown}: in a {FILE} the keys stand at the top, without [tool.pagein]"
    name = name.lower()
    near = get_close_matches(name, (*KEYS, *SECTIONS), n=1, cutoff=0.6)
    if not near:
        ends = {each.rpartition(".")[2]: each for each in reversed(tuple(KEYS))}
        near = [ends[each] for each in get_close_matches(name.rpartition(".")[2], ends, n=1, cutoff=0.7)]
    return f"unknown key {shown}: " + (f"did you mean {near[0]!r}?" if near else _ALL)


def _checked(key: Key, value: object, source: str, folder: Path | None, *, named: bool) -> Value:
    """The value as it is kept. Raises ConfigurationError with the source, the key, the value and what it may be."""
    if (key.rule.guarded or key.kind == "table") and _holds_key(value):
        raise ConfigurationError(f"{source}: {key.name} holds what looks like a key; {_NO_KEYS}")
    if not key.fits(value):
        raise ConfigurationError(f"{source}: {key.name} is {key.allowed}, not {_shown(value)}")
    if key.rule.guarded and not named and re.search(key.rule.guarded, str(value)):
        raise ConfigurationError(
            f"{source}: {key.name} says where a run and a key are sent, and is not taken from a file that was only "
            f"found: name the file, load(path) or --file, or set {key.variable}"
        )
    if isinstance(value, list):
        return tuple(value)
    if key.kind == "path" and folder is not None:
        return str(folder / str(value))
    kept: Value = value  # type: ignore[assignment]  # it fits
    return kept


def _holds_key(value: object) -> bool:
    """Whether a text in it has the shape of a key, or the name before it announces one."""
    if isinstance(value, dict):
        return any(_is_secret(str(name)) or _holds_key(each) for name, each in value.items())
    if isinstance(value, list | tuple):
        return any(map(_holds_key, value))
    return isinstance(value, str) and HIDDEN in scrubbed(value)


def _shown(value: object) -> str:
    """A value as an error repeats it: short, on one line, without keys."""
    if isinstance(value, dict):
        return "a table"
    try:
        return scrubbed(repr(value), most=MOST)
    except ValueError:  # numbers of thousands of digits
        return "a number of thousands of digits"

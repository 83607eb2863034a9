"""The texts of the prompts: files beside this module, each of which can be overridden.

A template is filled in one pass (``string.Template``): ``$name`` for the names it may use, ``$$`` for a dollar sign.
What is filled in is never looked at again, so a run that holds ``$previous`` stays a run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from string import Template

from pagein.errors import ConfigurationError

NAMES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "system": (frozenset(), frozenset()),
    "shape": (frozenset({"words"}), frozenset()),
    "summarise": (
        frozenset({"shape", "previous", "handle", "part", "parts", "run", "words"}),
        frozenset({"run"}),
    ),
    "reduce": (frozenset({"shape", "handle", "run", "words"}), frozenset({"run"})),
    "resume": (frozenset({"shape", "handle", "words"}), frozenset()),
}
"""For each template the names it may use, and those it must."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The five templates, checked: who the summariser is, the shape it answers in, and its three tasks.

    ``system`` is the system message, ``shape`` fills ``$shape``; ``summarise`` asks for a part of a run, ``reduce`` for
    one record from several, ``resume`` for a record at the end of a conversation that the same model has in its cache.
    Raises ConfigurationError for a placeholder that does not exist or is missing.
    """

    system: str
    shape: str
    summarise: str
    reduce: str
    resume: str

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each.name, getattr(self, each.name))


def prompts(override: str | os.PathLike[str] | Mapping[str, str] | None = None) -> Prompts:
    """The prompts, those overridden taken from a folder of ``<name>.txt`` files or from a mapping of names to texts.

    Raises ConfigurationError for a name that is no prompt, a folder that is not there, and an unsound template.
    """
    names = [each.name for each in fields(Prompts)]
    given = _read(Path(override)) if isinstance(override, str | os.PathLike) else dict(override or {})
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ConfigurationError(f"no prompt {', '.join(map(repr, unknown))}; there are {', '.join(names)}")
    folder = files("pagein.summaries") / "prompts"
    return Prompts(
        **{name: given.get(name) or (folder / f"{name}.txt").read_text("utf-8").strip() for name in names}
    )


def _read(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise ConfigurationError(f"no folder of prompts at {folder}")
    try:
        return {each.stem: each.read_text("utf-8").strip() for each in sorted(folder.glob("*.txt"))}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the prompts in {folder} cannot be read: {error}") from error


def _check(name: str, text: str) -> None:
    template = Template(text)
    if not template.is_valid():
        raise ConfigurationError(
            f"the prompt {name!r} has a $ that begins no name; write $$ for a dollar sign"
        )
    may, must = NAMES[name]
    used = set(template.get_identifiers())
    if used - may:
        raise ConfigurationError(
            f"the prompt {name!r} has ${', $'.join(sorted(used - may))}; it may use "
            f"{', '.join('$' + each for each in sorted(may)) or 'no names'}"
        )
    if must - used:
        raise ConfigurationError(f"the prompt {name!r} lacks ${', $'.join(sorted(must - used))}")


def filled(text: str, values: Mapping[str, str]) -> str:
    """The template with its names filled in, in one pass.

    >>> filled("$a and $$a", {"a": "$b", "b": "c"})
    '$b and $a'
    """
    return Template(text).substitute(values)

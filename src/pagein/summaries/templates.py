"""Prompt templates: files beside this module, each of which can be overridden.

A template is filled in one pass (``string.Template``): ``$name`` for its variables, ``$$`` for a dollar sign. Inserted
text is not expanded again, so a run that contains ``$previous`` is safe.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from string import Template

from pagein.errors import ConfigurationError

TEMPLATE_VARIABLES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "system": (frozenset(), frozenset()),
    "shape": (frozenset({"words"}), frozenset()),
    "summarise": (frozenset({"shape", "previous", "handle", "part", "parts", "run", "words"}), frozenset({"run"})),
    "resume": (frozenset({"shape", "handle", "words"}), frozenset()),
}
"""For each template its allowed variables, and its required ones."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The four checked templates of a summarizer.

    ``system`` is the system message; ``shape`` fills ``$shape``; ``summarise`` asks for a part of a run; ``resume`` asks
    for a record at the end of a conversation that the same model has in its cache. Raises ConfigurationError for an
    unknown or missing placeholder.
    """

    system: str
    shape: str
    summarise: str
    resume: str

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_template(field.name, getattr(self, field.name))


def load_prompts(override: str | os.PathLike[str] | Mapping[str, str] | None = None) -> Prompts:
    """Load the prompts; a folder of ``<name>.txt`` files, or a mapping of names to texts, overrides some.

    Raises ConfigurationError for an unknown name, a missing folder, and an invalid template.
    """
    names = [field.name for field in fields(Prompts)]
    overrides = _read_folder(Path(override)) if isinstance(override, str | os.PathLike) else dict(override or {})
    unknown = sorted(set(overrides) - set(names))
    if unknown:
        raise ConfigurationError(f"no prompt {', '.join(map(repr, unknown))}; there are {', '.join(names)}")
    folder = files("pagein.summaries") / "prompts"
    return Prompts(
        **{name: overrides.get(name) or (folder / f"{name}.txt").read_text("utf-8").strip() for name in names}
    )


def _read_folder(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise ConfigurationError(f"no folder of prompts at {folder}")
    try:
        return {path.stem: path.read_text("utf-8").strip() for path in sorted(folder.glob("*.txt"))}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the prompts in {folder} cannot be read: {error}") from error


def _check_template(name: str, text: str) -> None:
    template = Template(text)
    if not template.is_valid():
        raise ConfigurationError(f"the prompt {name!r} has a $ that begins no name; write $$ for a dollar sign")
    may, must = TEMPLATE_VARIABLES[name]
    used = set(template.get_identifiers())
    if used - may:
        raise ConfigurationError(
            f"the prompt {name!r} has ${', $'.join(sorted(used - may))}; it may use "
            f"{', '.join('$' + variable for variable in sorted(may)) or 'no names'}"
        )
    if must - used:
        raise ConfigurationError(f"the prompt {name!r} lacks ${', $'.join(sorted(must - used))}")


def fill_template(text: str, values: Mapping[str, str]) -> str:
    """Fill in the variables of a template, in one pass.

    >>> fill_template("$a and $$a", {"a": "$b", "b": "c"})
    '$b and $a'
    """
    return Template(text).substitute(values)

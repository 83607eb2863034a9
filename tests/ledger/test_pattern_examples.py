"""Each hard pattern of the ledger finds the example beside it, in ``english.txt`` the row below it."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import pagein
from pagein.context.ledger import english

SOURCE = Path(pagein.__file__).parent
MODULES = ("instructions", "pasted_text")
EXAMPLE = re.compile(r"^(\w+) = re\.compile\(  # e\.g\. (.+)$", re.MULTILINE)
TEXT = (SOURCE / "context/ledger/english.txt").read_text("utf-8")
USED = {
    name for path in SOURCE.rglob("*.py") for name in re.findall(r"\benglish\.([A-Z][A-Z0-9_]*)\b", path.read_text())
}


def examples_of_rows():
    """The examples in ``english.txt``, each with its section and the rows of the alternatives below it."""
    name, example, rows = "", "", []
    for line in [*TEXT.split("\n"), "[END]"]:
        is_inside = line.startswith(("   ", "  )"))
        if rows and not is_inside:
            yield name, example, rows
            example, rows = "", []
        if line.startswith("["):
            name = line.split("]")[0][1:]
        elif line.startswith("  # e.g. "):
            example = line.removeprefix("  # e.g. ")
        elif example:
            rows.append(line.strip())


@pytest.mark.parametrize("name", MODULES)
def test_a_pattern_finds_its_example(name):
    module = importlib.import_module(f"pagein.context.ledger.{name}")
    examples = EXAMPLE.findall(inspect.getsource(module))
    assert examples
    missed = [
        (pattern, example)
        for pattern, example in examples
        if not getattr(module, pattern).search(example.replace("\\n", "\n"))
    ]
    assert missed == []


def test_each_row_finds_the_example_above_it():
    examples = list(examples_of_rows())
    assert len(examples) > 300
    missed = [
        (name, example)
        for name, example, rows in examples
        if not re.search(english.PATTERNS.expand(english.PATTERNS.sections[name][0], rows), example, re.IGNORECASE)
    ]
    assert missed == []


def test_each_section_is_used_and_each_that_is_used_is_there():
    sections, inside = set(english.PATTERNS.sections), set(english.PATTERNS.references())
    assert sections == USED | inside | {name for _, name in english.OLD_NEW} | {"GONE"}
    for name in sections:
        english.PATTERNS.pattern(name)
    with pytest.raises(AttributeError, match="no section"):
        english.NONSENSE  # noqa: B018 - the look is the test


def test_the_rows_are_short():
    assert [line for line in TEXT.split("\n") if len(line) > 134] == []

"""Each hard pattern of the ledger finds the example beside it; in a text file the row below an example finds it."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import pagein
from pagein.context.ledger import english
from pagein.context.ledger.pasted_text import PASTED

SOURCE = Path(pagein.__file__).parent
MODULES = ("instructions", "pasted_text")
EXAMPLE = re.compile(r"^(\w+) = re\.compile\(  # e\.g\. (.+)$", re.MULTILINE)
FILES = {"english.txt": english.PATTERNS, "pasted_text.txt": PASTED}
USES = re.compile(r"\benglish\.([A-Z][A-Z0-9_]*)\b|\bpattern\(\"([A-Z_]+)\"\)|\b_find\(\"([A-Z_]+)\"\)")


def text_of(file):
    return (SOURCE / "context/ledger" / file).read_text("utf-8")


def examples_of_rows(text):
    """The examples in a file, each with its section and the rows of the alternatives below it."""
    name, example, rows = "", "", []
    for line in [*text.split("\n"), "[END]"]:
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


@pytest.mark.parametrize(("file", "count"), [("english.txt", 350), ("pasted_text.txt", 20)])
def test_each_row_finds_the_example_above_it(file, count):
    examples, patterns = list(examples_of_rows(text_of(file))), FILES[file]
    assert len(examples) >= count
    missed = [
        (name, example)
        for name, example, rows in examples
        if not re.search(patterns.expand(patterns.sections[name][0], rows), example, re.IGNORECASE)
    ]
    assert missed == []


def test_each_section_is_used_and_each_that_is_used_is_there():
    used = {name for _, name in english.OLD_NEW}
    for path in SOURCE.rglob("*.py"):
        used.update(name for names in USES.findall(path.read_text("utf-8")) for name in names if name)
    for file, patterns in FILES.items():
        used.update(re.findall(r"\{([A-Z][A-Z0-9_]*)\}", text_of(file)))
        for name in patterns.sections:
            patterns.pattern(name)
    used.discard("NAME")  # of the comment that explains it
    assert used == {name for patterns in FILES.values() for name in patterns.sections}
    with pytest.raises(AttributeError, match="no section"):
        english.NONSENSE  # noqa: B018 - the look is the test


@pytest.mark.parametrize("file", FILES)
def test_the_rows_are_short(file):
    assert [line for line in text_of(file).split("\n") if len(line) > 134] == []

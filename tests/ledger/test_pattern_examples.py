"""Each hard pattern of the ledger finds the example beside it: ``NAME = re.compile(  # e.g. never deploy on Fridays``."""

import importlib
import inspect
import re

import pytest

MODULES = ("english", "instructions", "pasted_text", "shortening")
EXAMPLE = re.compile(r"^(\w+) = re\.compile\(  # e\.g\. (.+)$", re.MULTILINE)


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

"""The outcomes of a framework's own tests are read, and tests that cannot be run are no report. A few seconds a test."""

import sys
from pathlib import Path

import pytest

from pagein.errors import ConfigurationError
from tests._support.upstream_suites import Suite, outcomes

SUITE = Suite("x", "smolagents", ("test_x.py",), "x")
THEIRS = """
from smolagents.memory import AgentMemory

def test_reaches():
    assert type(AgentMemory("Be brief.")).__mro__[2].__name__ == "PageinMemory"

def test_fails():
    AgentMemory("Be brief.")._theirs

def test_says_nothing_of_ours():
    assert True
"""


def test_a_test_counts_where_it_made_the_class_that_was_replaced(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(THEIRS)
    found = outcomes(sys.executable, SUITE, tmp_path, tmp_path / "report.json")
    assert {name.partition("::")[2]: outcome for name, (outcome, _) in found.items()} == {
        "test_reaches": "passed",
        "test_fails": "failed",
    }
    assert "has no attribute '_theirs'" in found["test_x.py::test_fails"][1]


def test_tests_that_cannot_be_run_are_no_report(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("import nothing_that_there_is")
    with pytest.raises(ConfigurationError, match="nothing_that_there_is"):
        outcomes(sys.executable, SUITE, tmp_path, tmp_path / "report.json")

"""The frameworks' own tests are counted where they reach a class of ours, and no failure goes without its reason."""

import pytest

from pagein.errors import ConfigurationError
from tests._support.swapped import PLACES
from tests._support.upstream_suites import SUITES, Suite, run, told

pytestmark = pytest.mark.slow

SUITE = Suite("x", "smolagents", ("test_x.py",), "x", inside="has no attribute '_", reasons={"other": "it is other"})


@pytest.mark.parametrize(
    ("found", "line", "code"),
    [
        ({"a": ("passed", "")}, "x: 1 of 1", 0),
        ({}, "x: 0 of 0", 1),
        ({"a": ("passed", ""), "other": ("failed", "No.")}, "it is other", 0),
        ({"a": ("passed", ""), "b": ("failed", "it has no attribute '_c'")}, "x: 1 of 1", 0),
        ({"a": ("passed", ""), "b": ("failed", "No.")}, "NO REASON KNOWN", 1),
    ],
)
def test_every_failure_is_told_with_its_reason_and_one_without_fails(capsys, found, line, code):
    assert told("x", SUITE, found) == code
    assert line in capsys.readouterr().out


def test_every_suite_has_a_place_and_what_cannot_be_run_is_told(tmp_path):
    assert {each.place for each in SUITES.values()} == set(PLACES)
    with pytest.raises(ConfigurationError, match="no report 'x'; there are checkpointer, smolagents"):
        run("x", tmp_path)
    with pytest.raises(ConfigurationError, match="is no checkout of pagein"):
        run("smolagents", tmp_path)

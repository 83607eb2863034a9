"""What every framework's model does with the tools of its memory, and what has come of it."""

from pagein.memory.tools import ASKED_FOR_TOOLS, TOOLS

CALLS = (
    ("pin", {"text": "Never touch the production database."}),
    ("note", {"text": "The port is 8443."}),
    ("recall", {"query": "production database", "limit": 2}),
    ("expand", {"handle": "s0", "lines": "1-1"}),
    ("expand", {"handle": "s999"}),
    ("forget", {"id": "s77"}),
)
"""Tool calls, one a turn."""

OFFERED = ["recall", "expand", "pin", "note", "forget"]
ALL = [each["name"] for each in TOOLS if each["name"] not in ASKED_FOR_TOOLS]


def check(told, memory):
    """That each call was answered by the tool of ``pagein.memory.tools``, and did what it says."""
    pinned, noted, recalled, expanded, unknown, not_pinned = told
    assert pinned.startswith("Pinned as s"), pinned
    assert noted.startswith("Noted as f"), noted
    assert "[s" in recalled, recalled
    assert expanded
    assert not expanded.startswith("error")
    assert unknown.startswith("error: "), unknown
    assert "s999" in unknown
    assert not_pinned.startswith("error: "), not_pinned
    shown = str(memory.view().messages())
    assert "Never touch the production database." in shown
    assert [fact.content for fact in memory.facts.list()] == ["The port is 8443."]


def check_definitions(found):
    """``found``: name, description and properties of each tool as the framework has it."""
    known = {each["name"]: (each["description"], set(each["parameters"]["properties"])) for each in TOOLS}
    assert found == {name: known[name] for name in found}

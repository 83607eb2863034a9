"""Texts that are written for an agent: which orders of an AGENTS.md are found, and with what governs them."""

import pytest

from pagein import AgentMemory
from pagein.context.ledger.run_ledger import RunLedger
from pagein.context.ledger.statements import find_statements

RULES = """# Working on the parser

The parser reads one line at a time, and each of its stages has a module.

## Commands

To run one test:

make test ONE=name

## Code

- Validate rows where they enter.
- Keep stages free of I/O.
- **Errors**: return a `ParseError` with the number of the line.
"""

FRAMES = (
    "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\n{}</INSTRUCTIONS>",
    "<system-reminder>\nContents of CLAUDE.md (project instructions):\n\n{}</system-reminder>\n\nFix the test.",
    "---\ndescription: How we work\nglobs: src/**\n---\n{}",
    "Here are the rules of this repository, follow them:\n\n{}",
    "# Coding guidelines\n\n{}",
)
FOUND = (
    "Validate rows where they enter.",
    "Keep stages free of I/O.",
    "Errors: return a `ParseError` with the number of the line.",
)


def texts(text):
    return [statement.text for statement in find_statements(text, "user")]


@pytest.mark.parametrize("frame", FRAMES)
def test_every_order_of_a_file_for_agents_is_a_rule_and_its_descriptions_are_none(frame):
    found = texts(frame.format(RULES))
    assert found[-3:] == list(FOUND)
    assert not any("one line at a time" in text for text in found)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_long_file_for_agents_is_read_whole(frame):
    sections = [
        f"## Stage {number}\n\nIt has {'many ' * 40}rows.\n\n- Validate stage {number}.\n" for number in range(30)
    ]
    found = texts(frame.format("\n".join(sections)))
    assert [text for text in found if text.startswith("Validate stage")] == [f"Validate stage {n}." for n in range(30)]


@pytest.mark.parametrize("lead", ["Summarize this CLAUDE.md:", "My landlord sent me these rules by mail:"])
def test_a_file_that_is_shown_for_another_purpose_is_none_for_the_agent(lead):
    assert texts(f"{lead}\n\n{RULES}") == []


@pytest.mark.parametrize(
    "lead",
    [
        "You are a careful editor. Summarize this article:\n\n",
        "# Instructions\n\n- Use British spelling.\n\n# Article\n\n",
        "# Instructions\n\nUse British spelling.\n\nHere is the article:\n\n",
    ],
)
def test_a_text_that_is_presented_among_instructions_has_its_sections(lead):
    article = "\n\n".join(
        f"## Part {n}\n\nResidents must register. Always carry a permit in zone {n}." for n in range(40)
    )
    assert texts(lead + article) in ([], ["Use British spelling."])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Never:\n- push to main\n- touch prod", ["Never: push to main", "Never: touch prod"]),
        ("## Don'ts\n- use `var`\n\n## Dos\n- use `const`", ["Don'ts: use `var`", "use `const`"]),
        ("The following are forbidden:\n\n1. eval\n2. exec\n", ["The following are forbidden: eval", "The following are forbidden: exec"]),
        ("When you add a stage:\n1. Create its module.\n2. List it in stages.md.", ["When you add a stage: Create its module.", "When you add a stage: List it in stages.md."]),
        ("**Never do**\n- Commit secrets\n- Don't skip hooks", ["Never do: Commit secrets", "Don't skip hooks"]),
        ("- **Always** update the README when:\n  - a stage is new\n- Use tabs.", ["Always update the README when: a stage is new", "Use tabs."]),
    ],
)  # fmt: skip
def test_an_item_has_the_line_that_governs_it(text, found):
    assert texts(text) == found


def test_what_a_list_forbids_is_a_prohibition():
    forbidden, demanded = find_statements("## Don'ts\n- Store passwords in logs\n\n## Dos\n- Use `const`", "user")
    assert forbidden.is_prohibition
    assert forbidden.is_safety
    assert not demanded.is_prohibition
    (marked,) = find_statements("\u274c Store passwords in logs", "user")
    assert marked.is_prohibition


@pytest.mark.parametrize(
    "text",
    [
        "\u274c The build failed on main with 3 errors.", "\U0001f6ab no results found for query.", "\u274c test_parse failed",
        "\u274c Error: cannot find module 'x'", "\u274c 2 checks were not successful",
    ],
)  # fmt: skip
def test_what_a_mark_says_to_have_failed_is_no_rule(text):
    assert [item for item in find_statements(text, "user") if item.kind == "rule"] == []


def test_lines_of_one_text_do_not_replace_each_other():
    ledger = RunLedger()
    ledger.learn(
        1,
        "# Rules\n\n- Run all tests with `make test` (only in the root).\n- Run unit tests with `make unit` (only in the root).\n"
        "- No sleeping in tests: use fixtures instead.\n- Unit tests are in `tests/unit`.\n- Use Python 3.12.\n- Use Node 22.\n",
        "user",
    )
    assert not ledger.superseded
    assert len(ledger.items) >= 5
    ledger.learn(2, "Use tabs. The budget is 200 EUR, no, make it 300 EUR.", "user")
    ledger.learn(3, "Actually, use Node 24 instead.", "user")
    assert not any(item.statement.text == "Use Node 22." for item in ledger.items.values())


def test_a_rule_of_a_long_file_is_in_a_small_request_many_turns_later():
    memory = AgentMemory.open(":memory:", budget=1_500)
    filler = "".join(f"## Part {number}\n\nThis part has rows of {'text ' * 60}.\n\n" for number in range(12))
    rules = f"# Rules of this repository\n\n{filler}## Never\n\n- write to `schema.lock`\n\n{filler}"
    memory.record_messages([{"role": "user", "content": rules}, {"role": "assistant", "content": "Understood."}])
    for number in range(20):
        memory.record_messages(
            [{"role": "user", "content": f"Look at file {number}."}, {"role": "assistant", "content": "Done. " * 60}],
            whole=False,
        )
        memory.to_messages()
    assert "Never: write to `schema.lock`" in str(memory.to_messages())

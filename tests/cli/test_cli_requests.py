"""What was sent, on the command line and in a notebook."""

import json

import pytest

from pagein import AgentMemory
from pagein.cli.recall import parse_time
from pagein.events.steps import ActionStep, TaskStep


@pytest.fixture
def sent(tmp_path):
    """A store whose run was sent with facts in it, and the first request."""
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="web", budget=4_000, user="ada", clock=lambda: 1_780_000_000.0) as memory:
        memory.facts.add("Prefers tabs over spaces", scope="user")
        memory.record(TaskStep("Tabs or spaces, and why?"))
        first = memory.to_messages()
        memory.record(ActionStep("Tabs."), TaskStep("Go on with tabs."))
        memory.to_messages()
    return path, first


def test_view_without_a_budget_shows_what_the_live_run_saw(run, sent):
    path, first = sent
    code, out, _ = run("view", path)
    assert code == 0
    assert "request 2 of main: as it was sent, byte for byte" in out
    assert "facts" in out
    shown = json.loads(run("view", path, "--request", 1, "--messages", "--json")[1])
    assert shown["request"]["messages"] == first
    assert shown["by_tier"]["facts"] > 0
    assert run("view", path, "--request", 9)[0] == 1


def test_view_says_what_is_not_as_it_was(run, sent):
    path, _ = sent
    with AgentMemory.open(path, session="web", budget=4_000) as memory:
        memory.erase("s0")
    code, out, _ = run("view", path, "--request", 1)
    assert (code, "not as it was sent: something in it was erased" in out) == (1, True)


def test_log_shows_the_newest_entries_or_those_since_a_day(run, sent):
    path, _ = sent
    assert [row["position"] for row in json.loads(run("log", path, "--limit", 2, "--json")[1])] == [1, 2]
    assert len(json.loads(run("log", path, "--since", "2026-05-01", "--json")[1])) == 3
    assert json.loads(run("log", path, "--since", "2027-05-01", "--json")[1]) == []
    assert json.loads(run("log", path, "--since", "2999-01-01", "--json")[1]) == []
    assert run("log", path, "--limit", 0)[0] == 1
    assert parse_time("--since", "2026-05-08T14:30+02:00") == parse_time("--since", "2026-05-08T12:30")
    assert parse_time("--until", "2026-05-08", end=True) == parse_time("--until", "2026-05-08T23:59:59")


def test_watch_prints_a_line_for_each_request(run, sent):
    path, _ = sent
    code, out, _ = run("watch", path, "--most", 2)
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 2)
    assert "/ 4,000" in lines[1]
    assert lines[0].endswith("the first")
    assert "% the same" in lines[1]
    assert run("watch", path, "--most", 0)[0] == 1


def test_a_run_is_exported_as_one_file(run, sent, tmp_path):
    path, _ = sent
    pytest.importorskip("starlette")
    code, out, _ = run("inspect", path, "--export", tmp_path / "run.html")
    assert (code, "opens without a server" in out) == (0, True)
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")


def test_a_report_is_readable_as_text_and_in_a_notebook(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=1_000) as memory:
        memory.record(TaskStep("<b>Go.</b> " * 40))
        report = memory.report()
    text = str(report)
    assert text.splitlines()[0] == f"{report.tokens:,} of 1,000 tokens ({report.tokens / 10:.1f} %)"
    assert "U user" in text
    assert len(text.splitlines()[1]) == 42
    page = report._repr_html_()
    assert f"<b>{report.tokens:,}</b> of 1,000 tokens" in page
    assert "<td>" in page
    assert "<b>Go" not in page

"""Reading recorded runs: every shape that is taken, and what is said of every shape that is not."""

import gzip
import json

import pytest

from pagein.errors import ConfigurationError, FormatError
from pagein.evaluation.faults import convert_to_openai, request_points
from pagein.evaluation.runs import demo_run, number_duplicates, read_runs
from pagein.formats import format_named

HELLO = [{"role": "user", "content": "hi"}]
CLAUDE = {
    "system": "be brief",
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        {"role": "assistant", "content": "done"},
    ],
}


def write(path, *values, **how):
    path.write_text("\n".join(json.dumps(each, **how) for each in values) + "\n")
    return path


def test_json_lines_of_runs_and_of_bare_lists(tmp_path):
    runs = read_runs(write(tmp_path / "r.jsonl", {"id": 7, "messages": HELLO}, HELLO))
    assert [run.id for run in runs] == ["7", "r:2"]
    assert all(run.messages == tuple(HELLO) for run in runs)


@pytest.mark.parametrize("indent", [None, 2])
def test_one_value_a_file(tmp_path, indent):
    path = tmp_path / "r.json"
    assert len(read_runs(write(path, HELLO, indent=indent))) == 1
    assert len(read_runs(write(path, {"messages": HELLO}, indent=indent))) == 1
    assert len(read_runs(write(path, [HELLO, {"messages": HELLO}], indent=indent))) == 2


def test_gzip_is_told_by_its_content(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(gzip.compress(json.dumps(HELLO).encode()))
    assert len(read_runs(path)) == 1


def test_a_byte_order_mark_and_blank_lines_are_passed_over(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(HELLO).encode() + b"\n\n" + json.dumps(HELLO).encode())
    assert [run.where for run in read_runs(path)] == [f"{path}:1", f"{path}:3"]


def test_a_limit_reads_no_further(tmp_path):
    path = write(tmp_path / "r.jsonl", HELLO, HELLO)
    with path.open("a") as file:
        file.write("not json\n")
    assert len(read_runs(path, limit=2)) == 2


def test_an_empty_run_is_a_run(tmp_path):
    assert read_runs(write(tmp_path / "r.json", []))[0].messages == ()


def test_anthropic_runs_are_known_by_their_shape_and_can_be_spelled_otherwise(tmp_path):
    (run,) = read_runs(write(tmp_path / "r.jsonl", CLAUDE))
    assert run.format == "anthropic"
    assert request_points(run) == 2
    assert [each["role"] for each in convert_to_openai(run, format_named("openai")).messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"nope\n", 1, "not JSON"),
        (b'{"messages": []}\nnope\n', 2, "not JSON"),
        (b'{"messages": [\n  1,\n', 2, "not JSON"),
        (b'{"messages": 3}', 1, "expected a list of messages"),
        (b"3", 1, "a run is a list of messages"),
        (b'{"role": "user", "content": "x"}', 1, "this is a single message"),
        (b'[{"role": "robot", "content": "x"}]', 1, "unknown role 'robot'"),
        (b'[{"role": "user", "content": [{"type": 3}]}]', 1, "content[0]"),
        (b"\xff\xfe", 1, "not UTF-8"),
        (b"[" * 100_000, 1, "not JSON"),
        (b"1" * 10_000, 1, "not JSON"),
    ],
)
def test_what_is_no_run_is_named_with_its_line(tmp_path, content, line, what):
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_runs(path)
    assert what in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert f":{line}:" in str(caught.value) or what == "not JSON"


def test_an_empty_file_and_a_cut_gzip_are_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\n")
    with pytest.raises(FormatError, match="the file has no runs"):
        read_runs(path)
    path.write_bytes(gzip.compress(b"[]" * 1000)[:-9])
    with pytest.raises(FormatError, match="damaged or truncated"):
        read_runs(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        read_runs(tmp_path / "none.jsonl")
    with pytest.raises(ConfigurationError, match="directory"):
        read_runs(tmp_path)


def test_the_bundled_run_is_there_with_its_licence():
    from importlib import resources

    run = demo_run()
    folder = resources.files("pagein.evaluation").joinpath("recorded")
    assert 40 <= len(run.messages) <= 80
    assert "MIT" in folder.joinpath("LICENSE-mini-swe-agent.md").read_text()


def test_repeated_names_are_numbered_without_a_clash():
    assert number_duplicates(["a", "a", "a-2"]) == ("a", "a-2", "a-2-2")

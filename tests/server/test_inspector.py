"""The inspector's data, and who may ask for it."""

import asyncio
import contextlib
import gzip
import json
import sqlite3
from contextlib import closing

import pytest

from pagein import AgentMemory
from pagein.errors import ConfigurationError
from pagein.evaluation.runs import demo_run
from pagein.events.handles import step_handle
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory._state import FoldedLog
from pagein.memory.requests import PageInRecord

testclient = pytest.importorskip("starlette.testclient")
httpx2 = pytest.importorskip("httpx2")
from pagein.server.inspector import InspectorApp, InspectorSettings  # noqa: E402
from pagein.server.inspector.app import read_static  # noqa: E402
from pagein.server.inspector.data import InspectorData, NotFound  # noqa: E402
from pagein.server.inspector.export import export_page  # noqa: E402

HOSTILE = "</script><script>alert(1)</script>\x1b[31mred\x1b[0m \u202egnp.exe \x07"


def play(memory, rows, format="openai"):
    for row in rows:
        if row["role"] == "assistant":
            memory.to_messages()
        memory.record_messages([row], format=format, whole=False)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("inspect") / "runs.db"
    run = demo_run()
    with AgentMemory.open(path, session="fix", budget=6_000, model="gpt-4o", user="ada") as memory:
        memory.facts.add("Prefers small patches", scope="user")
        play(memory, run.wire[:50], run.format)
        memory.note_outcome("ok", usage={"input_tokens": 100, "cache_read_input_tokens": 900})
    with AgentMemory.open(path, session="fix/helper", budget=4_000) as memory:
        memory.record(TaskStep(HOSTILE), ActionStep("Look.", (ToolCall("c", "expand", '{"handle": "s0"}'),)))
        memory.to_messages()
    return path


@pytest.fixture
def client(store):
    app = InspectorApp(InspectorSettings(str(store)))
    with closing(app):
        yield testclient.TestClient(app, base_url="http://127.0.0.1:8791")


def get(client, path):
    answer = client.get(f"/inspect/api/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_runs_are_listed_with_their_last_request(client):
    runs = {row["run"]: row for row in get(client, "runs")["runs"]}
    assert set(runs) == {"fix", "fix/helper"}
    assert (runs["fix"]["requests"], runs["fix"]["last"]["model"]) == (24, "gpt-4o")
    assert 0 < runs["fix"]["last"]["tokens"] <= 6_000


def test_each_request_is_the_one_that_was_sent(client):
    rows = get(client, "runs/fix/requests")["requests"]
    assert len(rows) == 24
    assert rows[-1]["usage"] == {"input": 1_000, "output": 0, "cache_read": 900, "cache_written": 0}
    assert rows[-1]["held"] > rows[-1]["tokens"]
    for row in rows[::4]:
        request = get(client, f"runs/fix/requests/{row['number']}")
        assert request["problem"] == ""
        assert {name: request["record"][name] for name in row} == row
        assert sum(block["tokens"] for block in request["blocks"]) + request["rest"] == row["tokens"]
    assert [row["number"] for row in get(client, "runs/fix/requests?after=20")["requests"]] == [21, 22, 23, 24]
    assert get(client, "runs/fix/requests/24/raw")["messages"][0]["role"] == "system"


def test_reasons_of_a_page_in_name_the_steps_that_came_back(client):
    requests = [get(client, f"runs/fix/requests/{number}") for number in range(14, 25)]
    reasons = [reason for request in requests for reason in request["record"]["reasons"]]
    assert reasons
    handle = reasons[-1][0]
    life = get(client, f"runs/fix/steps/{handle}")["life"]
    assert life[0]["what"] == "recorded"
    assert any(event["what"] == "came back" and event["request"] for event in life)
    assert any("of s" in event["what"] for event in life), "what replaced it"


def test_a_difference_names_what_came_left_and_changed(client):
    rows = get(client, "runs/fix/requests")["requests"]
    number = next(
        row["number"] for row, one in zip(rows[1:], rows, strict=False) if row["compactions"] > one["compactions"]
    )
    diff = get(client, f"runs/fix/requests/{number}/diff/{number - 1}")
    assert {row["what"] for row in diff["changes"]} >= {"came", "left"}
    assert sum(row["delta"] for row in diff["changes"]) == diff["after"]["tokens"] - diff["before"]["tokens"]


def test_search_goes_over_one_run_or_all(client):
    hits = get(client, "search?q=has_change_permission")["hits"]
    assert {hit["run"] for hit in hits} <= {"fix", "fix/helper"}
    assert hits
    assert get(client, "search?q=alert&run=fix%2Fhelper")["hits"][0]["run"] == "fix/helper"


def test_search_finds_what_the_index_finds_first(store, client):
    with AgentMemory.open(store, session="fix", readonly=True, budget=6_000) as memory:
        for query in ("has_change_permission", "failing tests", "admin/options.py"):
            best = {hit.handle for hit in memory.recall(query, limit=3, across=False)}
            assert best & {hit["handle"] for hit in get(client, f"search?q={query}&run=fix")["hits"][:10]}, query


def test_search_reads_large_texts_and_names_what_is_within_words(tmp_path):
    with AgentMemory.open(tmp_path / "a.db", session="a", budget=80_000) as memory:
        call = ToolCall("c", "read", '{"path": "a.txt"}')
        memory.record(TaskStep("The content of a file, please.\nOx fell."), ActionStep("Reading.", (call,)))
        memory.record(Observation("c", "zero\n" * 50_000 + "at the end an ERR_77: disappointment\n"))
    with closing(InspectorData(str(tmp_path / "a.db"))) as data:
        hit = data.search("err_77")["hits"][0]
        assert (hit["handle"], hit["why"]) == ("s1.0", "words: err_77, err, 77")
        assert hit["text"].startswith("at the end an ERR_77")
        assert [hit["why"] for hit in data.search("appoint")["hits"]] == ["within: appoint"]
        assert [hit["handle"] for hit in data.search("contents")["hits"]] == ["s0"]  # no name of a body's field
        assert [hit["handle"] for hit in data.search("ox")["hits"]] == ["s0"]  # behind a line break
        assert data.search(" ")["entries"] == 0


def test_a_long_search_goes_on_where_it_ended(tmp_path, monkeypatch):
    for run in ("a", "b", "c"):
        with AgentMemory.open(tmp_path / "many.db", session=run, budget=80_000) as memory:
            memory.record(TaskStep(f"Find the needle of {run}."), ActionStep("Here is a needle."))
    monkeypatch.setattr("pagein.server.inspector.scan.MAX_SCANNED_BYTES", 140_000)
    app = InspectorApp(InspectorSettings(str(tmp_path / "many.db")))
    with closing(app):
        client, path, hits = testclient.TestClient(app, base_url="http://127.0.0.1:8791"), "search?q=needle", []
        for _ in range(5):
            answer = get(client, path)
            hits += [(hit["run"], hit["handle"]) for hit in answer["hits"]]
            if answer["next"] is None:
                break
            path = "search?q=needle&from={}&position={}".format(*answer["next"])
        assert sorted(hits) == [(run, handle) for run in "abc" for handle in ("s0", "s1")]
        assert answer["runs"] < 3


def test_a_run_that_cannot_be_read_is_named_by_a_search_of_all(tmp_path):
    for name, key in (("open", None), ("shut", bytes(32))):
        with AgentMemory.open(tmp_path / f"{name}.db", session=name, budget=80_000, key=key) as memory:
            memory.record(TaskStep("Find the needle."))
    with contextlib.closing(sqlite3.connect(tmp_path / "open.db")) as database, database:
        database.execute("ATTACH ? AS shut", (str(tmp_path / "shut.db"),))
        database.execute("INSERT INTO entries SELECT * FROM shut.entries")
    with closing(InspectorData(str(tmp_path / "open.db"))) as data:
        answer = data.search("needle")
        assert ([hit["run"] for hit in answer["hits"]], answer["unread"]) == (["open"], ["shut"])


def test_a_run_whose_name_has_a_slash_is_reached(client):
    assert get(client, "runs/fix%2Fhelper/requests")["requests"][0]["number"] == 1
    life = get(client, "runs/fix%2Fhelper/steps/s0")["life"]
    assert [event["what"] for event in life] == ["recorded", "asked for by expand"]


@pytest.mark.parametrize(
    "path", ["runs/none/requests", "runs/fix/requests/999", "runs/fix/steps/s9999", "runs/fix/steps/x", "x"]
)
def test_what_is_not_there_is_told(client, path):
    answer = client.get(f"/inspect/api/{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]


def test_only_reading_from_this_machine_is_answered(client):
    assert client.post("/inspect/api/runs").status_code == 405
    assert client.get("/inspect/api/runs", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/inspect/api/runs", headers={"origin": "https://evil.example"}).status_code == 403
    assert client.get("/inspect/api/runs", headers={"origin": "http://["}).status_code == 403
    assert client.get("/inspect/api/runs", headers={"origin": "http://127.0.0.1:8791"}).status_code == 200
    for path in ("/inspect", "/inspect/run/fix/request/3", "/inspect/static/app.js", "/inspect/api/runs"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'"), path
        assert headers["x-content-type-options"] == "nosniff"
    for path in ("/inspect/static/%2e%2e/app.py", "/inspect/static/app.py", "/inspectx"):
        assert client.get(path).status_code == 404


def test_another_host_needs_a_secret_and_so_does_who_asks(store):
    with pytest.raises(ConfigurationError, match="secret"):
        InspectorSettings(str(store), host="0.0.0.0")
    settings = InspectorSettings(str(store), host="0.0.0.0", secret="s3cret")
    assert "s3cret" not in repr(settings)
    with closing(InspectorApp(settings)) as app:
        client = testclient.TestClient(app, base_url="http://box:8791", follow_redirects=False)
        assert client.get("/inspect/api/runs").status_code == 401
        assert client.get("/inspect?key=wrong").status_code == 401
        answer = client.get("/inspect?key=s3cret")
        assert (answer.status_code, "HttpOnly" in answer.headers["set-cookie"]) == (303, True)
        assert client.get("/inspect/api/runs").status_code == 200


def test_what_was_asked_again_is_named_with_its_request(tmp_path, client):
    rows = get(client, "runs/fix/asked")["asked"]
    page_ins = [row for row in rows if row["what"] == "page-in"]
    assert page_ins
    assert all(row["handles"] and 1 <= row["request"] <= 24 and row["why"] for row in page_ins)
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="r", budget=1_200, page_in=0) as memory:
        memory.record(TaskStep("Go."))
        read = [ActionStep("", (ToolCall(f"c{number}", "read", f'{{"file": {number % 9}}}'),)) for number in range(10)]
        for number, step in enumerate(read):
            memory.to_messages()
            memory.record(step, Observation(f"c{number}", f"value_{number} = {number}\n" * 60))
        memory.to_messages()
        memory.record(
            ActionStep(
                "", (ToolCall("e", "expand", '{"handle": "s3"}'), ToolCall("f", "recall", '{"query": "the port"}'))
            )
        )
        with closing(InspectorData(str(path))) as data:
            rows = data.list_asked_again("r")["asked"]
            last = step_handle(data.marks("r")["entries"] - 1)
            assert [(row["what"], row["handles"], row["request"]) for row in rows] == [
                ("called again", ["s1"], 10), ("asked by expand", ["s3"], 11), ("asked by recall", [], 11)
            ]  # fmt: skip
            assert [row["by"] for row in rows[1:]] == [last, last]
            assert rows[-1]["why"] == "the port"
            memory.record(Observation("e", "x"), Observation("f", "y"))
            memory.erase(last, reason="asked for")
            assert "the port" not in json.dumps(data.list_asked_again("r"))


def test_an_erased_step_is_said_to_be_erased(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="r", budget=4_000, clock=lambda: 0.0) as memory:
        memory.record(TaskStep("My number is 4711-0815."))
        memory.to_messages()
        with closing(InspectorData(str(path))) as data:
            assert "4711" in json.dumps([data.request("r", 1), data.step("r", "s0")])
            memory.erase("s0", reason="asked for")
            assert "erased" in data.request("r", 1)["problem"]
            assert "4711" not in json.dumps([data.request("r", 1), data.step("r", "s0")])
            assert any(event["what"].startswith("erased") for event in data.step("r", "s0")["life"])


def test_an_encrypted_run_without_its_key_is_named_and_not_shown(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="r", budget=4_000, key=b"k" * 32) as memory:
        memory.record(TaskStep("Go."))
        memory.to_messages()
    with closing(InspectorApp(InspectorSettings(str(path)))) as app:
        client = testclient.TestClient(app, base_url="http://localhost")
        assert get(client, "runs")["runs"][0]["run"] == "r"
        answer = client.get("/inspect/api/runs/r/requests/1")
        assert answer.status_code in (403, 404)
    with closing(InspectorData(str(path), key=b"k" * 32)) as data:
        assert data.request("r", 1)["problem"] == ""


def test_a_run_that_is_being_written_is_followed(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="r", budget=4_000) as memory:
        memory.record(TaskStep("Go."))
        memory.to_messages()
        with closing(InspectorData(str(path))) as data:
            before = data.marks("r")
            assert data.request("r", 1)["problem"] == ""
            memory.record(ActionStep("Going."), TaskStep("On."))
            memory.to_messages()
            assert data.marks("r") == {"entries": before["entries"] + 2, "last": 2}
            assert data.request("r", 2)["problem"] == ""
            assert data.step("r", "s2")["text"] == "On."


def test_no_page_and_no_event_tells_of_another_tenant_and_events_of_a_run_tell_of_it_alone(tmp_path):
    path = tmp_path / "runs.db"
    for tenant, run in (("acme", "ours"), ("acme", "ours-too"), ("other", "theirs")):
        with AgentMemory.open(path, tenant=tenant, session=run, budget=4_000) as memory:
            memory.record(TaskStep(f"Go, {run}."))
            memory.to_messages()

    async def first_event(address):
        from types import SimpleNamespace

        with closing(InspectorApp(InspectorSettings(str(path), tenant="acme"))) as app:

            async def is_open():
                return False

            query = dict(part.split("=") for part in address.split("&") if part)
            lines = app._watch(SimpleNamespace(query_params=query, is_disconnected=is_open))
            return [await anext(lines), await anext(lines)][1]

    assert {name for name, *_ in json.loads(asyncio.run(first_event(""))[5:])["runs"]} == {"ours", "ours-too"}
    assert json.loads(asyncio.run(first_event("run=ours"))[5:]) == {"run": "ours", "marks": {"entries": 1, "last": 1}}
    assert asyncio.run(first_event("run=theirs")) == ": still here\n\n"
    with closing(InspectorData(str(path), tenant="acme")) as data, pytest.raises(NotFound):
        data.request("theirs", 1)


def test_lists_and_steps_are_read_and_not_folded(store, monkeypatch):
    monkeypatch.setattr(FoldedLog, "apply", lambda *_: pytest.fail("folded"))
    with closing(InspectorData(str(store))) as data:
        assert len(data.requests("fix")["requests"]) == 24
        assert data.list_asked_again("fix")["asked"]
        assert data.step("fix", "s1")["life"]


def test_a_step_has_its_results_on_each_branch(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="r", budget=4_000) as memory:
        memory.record(TaskStep("Go."), ActionStep("Look.", (ToolCall("a", "look", "{}"),)))
        memory.record(Observation("a", "seen at once"))
        with closing(InspectorData(str(path))) as data:
            assert "seen at once" in data.step("r", "s1")["text"]
        memory.fork(name="other")
        memory.switch("other")
        memory.record(ActionStep("Again.", (ToolCall("b", "look", "{}"),)), Observation("b", "seen later"))
        memory.to_messages()
        with closing(InspectorData(str(path))) as data:
            for _ in range(2):
                assert "seen at once" in data.step("r", "s1")["text"]
                assert "seen later" in data.step("r", "s3")["text"]
            assert data.request("r", 1)["problem"] == ""


def test_a_run_that_was_erased_whole_and_began_again_is_read_again(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="r", budget=4_000) as memory, closing(InspectorData(str(path))) as data:
        memory.record(TaskStep("Go."), *(ActionStep(f"secret {number}") for number in range(5)))
        memory.to_messages()
        assert "secret 1" in data.step("r", "s2")["text"]
        assert "secret" in json.dumps(data.request("r", 1))
        memory.erase_session()
        memory.record(TaskStep("Anew."), ActionStep("Look.", (ToolCall("a", "expand", '{"handle": "s1"}'),)))
        memory.to_messages()
        assert [row["handles"] for row in data.list_asked_again("r")["asked"]] == [["s1"]]
        assert "secret" not in json.dumps(
            [data.request("r", data.marks("r")["last"]), data.step("r", "s1"), data.step("r", "s2")]
        )


@pytest.mark.slow
def test_an_exported_run_is_one_page_in_which_nothing_recorded_is_markup(store):
    with closing(InspectorData(str(store))) as data:
        page = b"".join(export_page(data, "fix/helper")).decode()
        ticks = []
        pieces = export_page(data, "fix", lambda done, total: ticks.append((done, total)))
        assert sum(map(len, pieces)) < 700_000
        assert ticks == [(number, len(ticks)) for number in range(1, len(ticks) + 1)] != []
    assert page.count("</script>") == 2
    assert "src=" not in page.partition("<body>")[0]
    assert "alert(1)</script>" not in page


@pytest.mark.slow
def test_the_demo_ends_in_an_inspector_of_its_run(demo_inspector):
    with httpx2.Client(base_url=demo_inspector, timeout=300) as client:
        assert "<div id=" in client.get("").text
        (row,) = client.get("/api/runs").json()["runs"]
        path = f"/api/runs/{row['run']}"
        for number in range(1, row["requests"] + 1):
            assert client.get(f"{path}/requests/{number}").json()["problem"] == ""
        assert {asked["what"] for asked in client.get(f"{path}/asked").json()["asked"]} == {"page-in", "called again"}
        hit = client.get("/api/search?q=has_change_permission").json()["hits"][0]
        assert client.get(f"{path}/steps/{hit['handle']}").json()["life"]
        assert client.get(f"{path}/export").text.startswith("<!doctype html>")


def test_a_result_in_other_words_takes_no_step_out_of_view(tmp_path):
    def step(number, words):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "build", "arguments": f"[{number % 3}]"}}
        asked = {"role": "assistant", "content": None, "tool_calls": [call]}
        return [asked, {"role": "tool", "tool_call_id": f"c{number}", "content": words}]

    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="run", budget=4_000) as memory:
        rows = [{"role": "user", "content": "Build it."}, *step(0, "It runs."), *step(1, "ok"), *step(2, "ok")]
        memory.record_messages(rows)
        rows[2]["content"] = "It was built."
        memory.record_messages([*rows, *step(3, "ok"), *step(4, "ok")])
    with closing(InspectorData(str(path))) as data:
        assert data.list_asked_again("run")["asked"] == []


def test_the_pages_are_small():
    names = ("index.html", "style.css", "app.js", "api.js", "ui.js", "charts.js", "views.js", "icon.svg")
    files = [*names, "vendor/preact.js", "vendor/hooks.js", "vendor/htm.js"]
    assert sum(len(gzip.compress(read_static(name))) for name in files) <= 60_000
    assert read_static("vendor/LICENSE-preact.txt").startswith(b"The MIT License")


def test_a_chat_has_no_block_without_text_and_a_page_in_of_names_alone_says_why(tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, session="r", budget=900) as memory:
        for number in range(24):
            memory.record(TaskStep(f"Question {number} about parse_header_{number}?"))
            memory.to_messages()
            memory.record(ActionStep(f"Answer {number}: " + "so it goes, as they say. " * 9))
    with closing(InspectorData(str(path))) as data:
        request = data.request("r", 24)
        assert all(block["text"] and block["tokens"] for block in request["blocks"])
        assert request["rest"] == 3
        (hit,) = data.search("parse_header_7 parse_header_7 header", "r")["hits"][:1]
    words = hit["why"].removeprefix("words: ").split(", ")
    assert len(words) == len(set(words))
    assert PageInRecord(7, names=(3, 4)).why

"""The inspector's pages in a real browser: keys, accessibility, hostile content, size.

They need Chromium and Playwright, and axe-core from npm; without one of them they are skipped, and say so. With
PAGEIN_SCREENSHOTS=folder the screenshots of docs/inspector.md are written there.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pagein import AgentMemory
from pagein.evaluation.runs import demo_run
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.requests import RequestRecord, encode_record

playwright = pytest.importorskip("playwright.sync_api", reason="SKIPPED: the pages are not tested without playwright")
uvicorn = pytest.importorskip("uvicorn")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="SKIPPED: the pages are not tested without Chromium"),
]

VIEWS = {
    "runs": "",
    "timeline": "/run/fix",
    "request": "/run/fix/request/20",
    "diff": "/run/fix/diff/19/20",
    "step": "/run/fix/step/s8",
    "out": "/run/fix/out/20",
    "budget": "/run/fix/budget/20",
    "cost": "/run/fix/cost",
    "search": "/search?q=has_change_permission",
}
HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>\x1b[2J\x07 \u202eexe.gnp\u202c <b>bold</b>"
MOST_REQUESTS = 10_000


def fill_store(path):
    run = demo_run()
    now = iter(range(1_795_340_000, 1_795_400_000, 9))
    with AgentMemory.open(path, session="fix", budget=6_000, model="gpt-4o", clock=lambda: float(next(now))) as memory:
        for row in run.wire[:50]:
            if row["role"] == "assistant":
                memory.to_messages()
            memory.record_messages([row], format=run.format, whole=False)
    with AgentMemory.open(path, session="fix/helper", budget=4_000_000) as memory:
        memory.record(TaskStep(HOSTILE), ActionStep("Look.", (ToolCall("c", HOSTILE, "{}"),)))
        memory.record(Observation("c", "x" * 5_000_000))
        memory.to_messages()
    with AgentMemory.open(path, session="long", budget=8_000) as memory:
        memory.record(TaskStep("Go."))
        memory.to_messages()
        table = memory._runtime.requests.table
        tiers = {"system": 400, "user": 900, "whole": 3_000, "summary": 1_500, "recalled": 600}
        for number in range(2, MOST_REQUESTS + 1):
            record = RequestRecord(
                tokens=6_400, limit=8_000, tiers=tiers, prefix=5_000, compactions=number // 40, format="openai"
            )
            table.add(1, 1_795_340_000.0 + number, encode_record(record))


@contextmanager
def serve_inspector(path):
    from pagein.server.inspector import InspectorApp, InspectorSettings
    from pagein.server.run import open_listener

    with closing(InspectorApp(InspectorSettings(str(path)))) as app, closing(open_listener("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/inspect"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "runs.db"
    fill_store(path)
    with serve_inspector(path) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.failures = []
    page.on("pageerror", lambda error: page.failures.append(str(error)))
    page.on("dialog", lambda dialog: page.failures.append(f"a dialog: {dialog.message}"))
    yield page
    assert page.failures == []
    page.close()


def visit(page, address, view=""):
    started = time.perf_counter()
    page.goto(address + view)
    page.locator("main h1").wait_for()
    page.get_by_text("Reading …").first.wait_for(state="detached")
    assert page.locator("[role=alert]").count() == 0
    return time.perf_counter() - started


def count_nodes(page):
    return page.locator("*").count()


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("axe")
    try:
        subprocess.run(["npm", "pack", "axe-core@4.14.1"], cwd=folder, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("SKIPPED: accessibility is not tested without axe-core from npm")
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        return package.extractfile("package/axe.min.js").read().decode()


@pytest.mark.parametrize(("width", "scheme"), [(1600, "light"), (375, "dark")])
def test_no_view_breaks_a_rule_of_accessibility(browser, address, axe, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    for name, view in VIEWS.items():
        visit(page, address, view)
        if name == "request":
            page.locator(".block > button").nth(2).click()
        page.evaluate(axe)
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        broken = page.evaluate("tags => axe.run({runOnly: tags})", tags)["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in broken] == [], f"{name} at {width}, {scheme}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width}"
    context.close()


def test_every_view_is_reached_by_keys_alone(page, address):
    visit(page, address)
    page.locator(".list:focus").wait_for()
    page.keyboard.press("Enter")
    page.locator("h1", has_text="request by request").wait_for()
    visit(page, address, "/run/fix")
    for key, heading in (
        ("r", "What the model saw"), ("]", "What the model saw"), ("[", "in request"), ("d", "What changed from"),
        ("o", "What is out of"), ("b", "Where the budget"), ("c", "What it cost"), ("t", "request by request"),
    ):  # fmt: skip
        page.keyboard.press(key)
        page.locator("h1", has_text=heading).wait_for()
        page.get_by_text("Reading …").first.wait_for(state="detached")
    page.locator(".list:focus .row.selected").wait_for()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.locator("h1", has_text="in request 23").wait_for()
    page.keyboard.press("o")
    page.locator(".list:focus .row.selected").wait_for()
    page.keyboard.press("Enter")
    page.locator("h1", has_text="The life of").wait_for()
    page.keyboard.press("?")
    page.locator("[role=dialog]").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("has_change_permission")
    page.keyboard.press("Enter")
    page.locator("h1", has_text="In all runs").wait_for()
    page.keyboard.press("g")
    page.locator("main h1").click()
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.locator("h1", has_text="Runs").wait_for()


def test_long_names_keep_their_ends_and_no_link_leads_behind_the_last_request(browser, tmp_path):
    names = ["a_project_of_some_name__the-first-task-1", "a_project_of_some_name__the-first-task-2"]
    for name in names:
        with AgentMemory.open(tmp_path / "runs.db", session=name, budget=6_000) as memory:
            memory.record(TaskStep("Go."))
            memory.to_messages()
    with serve_inspector(tmp_path / "runs.db") as address, closing(browser.new_page()) as page:
        page.set_viewport_size({"width": 375, "height": 800})
        visit(page, address)
        ends = [(end.inner_text(), end.bounding_box()) for end in page.locator(".name > :last-child").all()]
        assert sorted(text for text, _ in ends) == sorted(name[-6:] for name in names)
        bars = [bar.bounding_box() for bar in page.locator(".list .tierbar").all()]
        assert all(end["x"] + end["width"] <= bar["x"] for (_, end), bar in zip(ends, bars, strict=True))
        for view in ("request/1", "out/1", "budget/1", "diff/1/1"):
            visit(page, address, f"/run/{names[0]}/{view}")
            page.locator("main .steps").wait_for(state="attached")
            page.locator("main .steps a[rel=next]").wait_for(state="detached")
        visit(page, address, f"/run/{names[0]}/cost")
        cells = page.locator(".list .rows [role=cell]").all_inner_texts()
        assert cells[1] == cells[2], "nothing left, so the whole history costs what was sent"


def test_nothing_recorded_is_markup_or_a_command(page, address):
    visit(page, address, "/run/fix%2Fhelper/request/1")
    for number in range(page.locator(".block > button").count()):
        page.locator(".block > button").nth(number).click()
    text = page.locator(".recorded pre").first.inner_text()
    assert "<b>bold</b>" in text
    assert "␛[2J" in text
    assert "⟨U+202E⟩" in text
    assert page.locator("main img, main b:text-is('bold')").count() == 0
    assert page.locator(".recorded pre").last.inner_text().count("x") <= 20_000
    assert "5,000," in page.locator(".note", has_text="characters").first.inner_text()
    visit(page, address, "/run/fix%2Fhelper/step/s0")
    assert "␇" in page.locator(".recorded pre").inner_text()


def test_ten_thousand_requests_stay_small_and_quick(page, address):
    for view in ("", "/run/long", "/run/long/request/1", "/run/long/cost", "/run/long/budget/1", "/run/long/diff/1/2"):
        visit(page, address, view)
        assert count_nodes(page) <= 2_000, view
    visit(page, address, "/run/long")
    page.locator(".list").focus()
    page.keyboard.press("Home")
    page.locator(".list .row.selected", has_text="6,400").or_(page.locator(".list .row.selected")).first.wait_for()
    page.keyboard.press("End")
    page.get_by_role("link", name=str(MOST_REQUESTS)).wait_for()


def test_fifty_agents_stand_beneath_their_parent_and_every_one_is_reached(page, tmp_path):
    path = tmp_path / "team.db"
    for name in ("team", *(f"team/agent {number:02}" for number in range(50))):
        with AgentMemory.open(path, session=name, budget=4_000, synchronous="OFF") as memory:
            memory.record(TaskStep(f"I am {name}."))
            memory.to_messages()
    with serve_inspector(path) as address:
        visit(page, address)
        assert count_nodes(page) <= 2_000
        assert page.locator(".list .row", has_text="└").count() > 5
        page.locator(".list:focus").wait_for()
        selected, seen = "document.querySelector('.list .row.selected')?.innerText", [""]
        for _ in range(51):
            page.wait_for_function(f"before => ({selected} ?? before) !== before", arg=seen[-1])
            seen.append(page.evaluate(selected))
            page.keyboard.press("ArrowDown")
        names = {text.splitlines()[0].strip() for text in seen[1:]}
        assert {f"└ agent {number:02}" for number in range(50)} <= names
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        page.locator("h1", has_text="request by request").wait_for()


def test_a_saved_run_opens_without_a_server(page, address, tmp_path):
    visit(page, address, "/run/fix")
    with page.expect_download() as download:
        page.locator("a.export").click()
    saved = tmp_path / "fix.html"
    download.value.save_as(saved)
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(saved.as_uri())
    page.locator("h1", has_text="request by request").wait_for()
    page.keyboard.press("Enter")
    page.locator(".proof").wait_for()
    page.keyboard.press("c")
    page.locator(".lead").wait_for()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def test_a_page_follows_a_run_that_goes_on(page, tmp_path):
    from pagein.server.run import open_listener

    path = tmp_path / "live.db"
    with AgentMemory.open(path, session="live", budget=4_000) as memory:
        memory.record(TaskStep("Go."))
        memory.to_messages()
        with closing(open_listener("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        command = [sys.executable, "-m", "pagein", "inspect", str(path), "--port", str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert f":{port}/inspect" in process.stdout.readline()
                deadline = time.monotonic() + 300
                while time.monotonic() < deadline:
                    try:
                        visit(page, f"http://127.0.0.1:{port}/inspect", "/run/live")
                        break
                    except playwright.Error:
                        time.sleep(0.1)
                page.locator(".live").wait_for()
                memory.record(ActionStep("Going."), TaskStep("On."))
                memory.to_messages()
                page.get_by_role("link", name="2", exact=True).wait_for()
            finally:
                process.terminate()


def test_the_demo_is_walked_from_its_runs_to_a_step(page, demo_inspector):
    visit(page, demo_inspector)
    page.keyboard.press("Enter")
    page.locator("h1", has_text="request by request").wait_for()
    page.locator("h2", has_text="asked again").wait_for()
    page.get_by_role("link", name="28", exact=True).first.click()
    page.locator(".proof").wait_for()
    page.get_by_role("searchbox").fill("has_change_permission")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=re.compile(r"^s\d+")).first.click()
    page.locator(".life").wait_for()


@pytest.mark.skipif(not os.environ.get("PAGEIN_SCREENSHOTS"), reason="writes the screenshots of the docs where asked")
def test_screenshots_of_the_docs(browser, address):
    folder = Path(os.environ["PAGEIN_SCREENSHOTS"])
    for name, view in VIEWS.items():
        scheme = "dark" if name in ("request", "cost") else "light"
        page = browser.new_page(viewport={"width": 1200, "height": 720}, color_scheme=scheme)
        visit(page, address, view)
        if name == "request":
            page.locator(".block > button").last.click()
        page.wait_for_timeout(100)
        page.screenshot(path=folder / f"{name}.png")
        if name == "timeline":
            page.locator("section", has_text="What was asked again").screenshot(path=folder / "asked.png")
        page.close()

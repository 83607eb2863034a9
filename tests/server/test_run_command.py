"""``pagein run`` and ``pagein serve`` as commands: the proxy of a process alone, and no file changed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

from pagein import AgentMemory
from pagein.cli import main
from pagein.errors import ConfigurationError
from pagein.events.steps import TaskStep
from pagein.server import ServerApp, ServerSettings
from pagein.server.clients import check_gemini_login, client_process
from pagein.server.run import open_listener
from pagein.testing.provider import ScriptedProvider, ToolLoop, serve_app
from pagein.testing.provider.agent import run_agent

ASK = """
import json, os, sys, urllib.request
body = json.dumps({"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}).encode()
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
head = {"content-type": "application/json", "x-pagein-run": "from a command"}
answer = urllib.request.urlopen(urllib.request.Request(url, body, head))
assert answer.headers["x-pagein"].startswith("view"), answer.headers
open(sys.argv[1], "w").write(json.dumps(sys.argv[2:]))
sys.exit(7)
"""


@pytest.fixture
def fake_claude(tmp_path, monkeypatch):
    """A program called claude that asks once, writes down its arguments, and exits with 7."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f"#!{sys.executable}\n{ASK}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "arguments"


def test_run_starts_a_proxy_for_one_process_and_returns_its_exit_code(fake_claude, tmp_path, monkeypatch):
    provider = ScriptedProvider(ToolLoop(0))
    monkeypatch.chdir(tmp_path)
    with serve_app(provider) as upstream:
        code = main(["run", "claude", "--port", "1", "--upstream", upstream, "--", str(fake_claude), "-p", "do it"])
    assert code == 7
    assert json.loads(fake_claude.read_text()) == ["-p", "do it"]
    with AgentMemory.open(tmp_path / "data" / "pagein" / "runs.db", session="from a command", readonly=True) as memory:
        assert len(memory.steps) == 2
    assert "ANTHROPIC_BASE_URL" not in os.environ


@pytest.mark.parametrize("command", [("serve", "--upstream", "http://127.0.0.1:1"), ("inspect",)])
def test_a_port_that_cannot_be_used_is_named_with_the_cure(command, capsys, tmp_path):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=4_000) as memory, socket.create_server(("127.0.0.1", 0)) as other:
        memory.record(TaskStep("Go."))
        taken = other.getsockname()[1]
        for port, why in ((taken, "another program listens there"), (99_999, "a port is at most 65535")):
            assert main([command[0], str(path), *command[1:], "--port", str(port)]) == 1
            error = capsys.readouterr().err.replace("\n", " ")
            assert f"port {port} of 127.0.0.1 cannot be used: {why}" in error
            assert "--port" in error


@pytest.mark.parametrize("command", [("serve", "--upstream", "http://127.0.0.1:1", "--port", "0"), ("mcp",)])
def test_a_store_that_cannot_be_read_ends_the_command_before_anything_is_served(command, capsys, tmp_path):
    damaged = tmp_path / "damaged.db"
    damaged.write_text("This is no database, whatever its name says. " * 20)
    for path, why in ((damaged, "is not a database"), (tmp_path / "none" / "run.db", "there is no folder")):
        assert main([command[0], str(path), *command[1:]]) == 1
        assert why in capsys.readouterr().err.replace("\n", " ")
    assert damaged.read_text().startswith("This is no database")


def test_run_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", "codex"]) == 1
    assert "there is no codex on the PATH" in capsys.readouterr().err


def test_run_uses_no_proxy_that_sends_its_key_elsewhere_or_ignores_an_option(fake_claude, capsys, tmp_path):
    settings = ServerSettings(str(tmp_path / "runs.db"), {"default": "https://api.openai.com"})
    with serve_app(ServerApp(settings)) as url:
        port = url.rpartition(":")[2]
        assert main(["run", "claude", "--port", port]) == 1
        assert "forwards to https://api.openai.com, and claude needs" in capsys.readouterr().err
        assert main(["run", "claude", "--port", port, "--window", "9000"]) == 1
        assert "--port" in capsys.readouterr().err
    assert not fake_claude.exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--upstream", "http://127.0.0.1:1", "--policy", "nope"), "no policy 'nope'"),
        (
            ("--upstream", "http://127.0.0.1:1", "--upstream", "http://127.0.0.1:2"),
            "two upstreams are called 'default'",
        ),
        (
            ("--upstream", "http://127.0.0.1:1", "--host", "[::]"),
            "listening on :: lets other machines in: set keys for them in [server.clients]",
        ),
    ],
    ids=["policy", "upstream", "host"],
)
def test_what_would_fail_at_each_request_fails_at_the_start(options, why, capsys, tmp_path):
    with patch("pagein.server.run.run_server", side_effect=AssertionError("it was served")):
        assert main(["serve", str(tmp_path / "runs.db"), "--port", "0", *options]) == 1
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no IPv6")
def test_the_address_that_stands_for_any_is_reached_by_both_protocols():
    with open_listener("::", 0) as listener:
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, listener.getsockname()[1])).close()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["mcp", "run"])
def test_a_signal_ends_a_command_and_its_agent(command, tmp_path):
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho $$\nexec sleep 60\n")
    program.chmod(0o755)
    store, by_command = str(tmp_path / "runs.db"), {"mcp": signal.SIGINT, "run": signal.SIGTERM}
    arguments = {"mcp": ["mcp", store], "run": ["run", "claude", "--port", "1", "--store", store]}[command]
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "pagein", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        if command == "mcp":
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            process.stdin.write(json.dumps(line).encode() + b"\n")
            process.stdin.flush()
        first = process.stdout.readline()
        process.send_signal(by_command[command])
        assert process.wait(30) == (-signal.SIGINT if command == "mcp" else 128 + signal.SIGTERM)
        if command == "run":
            with pytest.raises(ProcessLookupError):
                os.kill(int(first), 0)


def test_each_client_is_told_by_its_own_environment_and_arguments():
    url = "http://127.0.0.1:1"
    codex = client_process("codex", url, ("exec", "x"), {"OPENAI_API_KEY": "k"})
    assert codex.command[-2:] == ("exec", "x")
    assert f'base_url="{url}/v1"' in codex.command[4]
    assert "k" not in codex.environment.values()
    own = json.dumps({"provider": {"anthropic": {"options": {"apiKey": "a"}}}, "theme": "dark"})
    opencode = client_process("opencode", url, (), {"OPENCODE_CONFIG_CONTENT": own})
    config = json.loads(opencode.environment["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "dark"
    assert config["provider"]["anthropic"]["options"] == {"apiKey": "a", "baseURL": f"{url}/v1"}
    assert config["provider"]["openai"]["options"]["baseURL"] == f"{url}/openai/v1"
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        client_process("codex", url, (), {})
    own = {"GEMINI_API_KEY": "k", "GEMINI_CLI_CUSTOM_HEADERS": "x-team: a"}
    gemini = client_process("gemini", url, ("-p", "x"), own, "7f3c")
    assert gemini.command == ("gemini", "-p", "x")
    assert gemini.environment["GOOGLE_GEMINI_BASE_URL"] == url
    assert gemini.environment["GEMINI_CLI_CUSTOM_HEADERS"] == "x-team: a, x-session-id: 7f3c"
    defaults = json.loads(Path(gemini.environment["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"]).read_text())
    assert defaults["security"]["auth"]["selectedType"] == "gemini-api-key"
    with pytest.raises(ConfigurationError, match="GEMINI_API_KEY"):
        client_process("gemini", url, (), {})


@pytest.mark.parametrize(("login", "is_refused"), [("oauth-personal", True), ("gemini-api-key", False), (None, False)])
def test_gemini_cli_that_logs_in_without_a_key_is_refused_as_it_asks_another_server(tmp_path, login, is_refused):
    settings = tmp_path / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"security": {"auth": {"selectedType": login}}} if login else {"ui": {}}))
    with pytest.raises(ConfigurationError, match="/auth") if is_refused else nullcontext():
        check_gemini_login({"GEMINI_CLI_HOME": str(tmp_path)})


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
def test_a_server_that_ends_in_the_middle_of_a_stream_keeps_what_it_acknowledged(tmp_path, signal_number):
    provider = ScriptedProvider(ToolLoop(400), pause=0.002)
    store = str(tmp_path / "runs.db")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with serve_app(provider) as upstream:
        for _ in range(2 if signal_number == signal.SIGKILL else 1):
            command = [
                sys.executable,
                "-m",
                "pagein",
                "serve",
                store,
                "--port",
                "0",
                "--upstream",
                upstream,
                "--window",
                "4000",
            ]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
            url = server.stdout.readline().split(" at ")[1].split(" ")[0]
            agent = threading.Thread(target=_run_until_cut, args=(url,), daemon=True)
            before = len(provider.received)
            agent.start()
            while len(provider.received) < before + 12:
                agent.join(0.01)
            server.send_signal(signal_number)
            agent.join(300)
            code = server.wait(300)
            server.stdout.close()
            assert code == (0 if signal_number == signal.SIGTERM else -signal.SIGKILL)
    assert provider.illegal == ()
    assert provider.over == 0
    acknowledged = len(provider.received) - 2
    with AgentMemory.open(store, session="none", readonly=True) as look:
        names = [name for name in look._runtime.log.store.sessions() if name.startswith("run-")]
    answers = 0
    for name in names:
        with AgentMemory.open(store, session=name, readonly=True) as memory:
            assert memory.verify().ok
            answers += sum(type(step).__name__ == "ActionStep" for step in memory.steps)
    assert answers >= acknowledged - 2, "at most the answer under way is lost"


def _run_until_cut(url):
    import contextlib

    with contextlib.suppress(Exception):
        run_agent(url, "messages", 800)


@pytest.mark.slow
def test_the_bench_compares_both_ways(capsys):
    assert main(["bench", "serve", "--calls", "6", "--size", "1200", "--window", "3000", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert set(rows) == {"messages", "chat", "responses", "gemini"}
    for row in rows.values():
        assert row["proxied"]["over"] == row["proxied"]["illegal"] == 0
        assert row["direct"]["requests"] == row["passed"]["requests"] == row["proxied"]["requests"] == 7
        if sys.platform == "linux":
            assert row["direct"]["cpu"] == 0 < row["passed"]["cpu"]
            assert row["proxied"]["cpu_ratio"] > row["passed"]["cpu_ratio"] == 1


def test_a_server_without_its_extra_says_what_to_install():
    script = "import sys; sys.modules['httpx2'] = None; from pagein.server import ServerApp"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    line = "pagein.errors.ConfigurationError: pagein.server.ServerApp needs httpx2: pip install 'pagein[serve]'"
    assert done.stderr.splitlines()[-1] == line

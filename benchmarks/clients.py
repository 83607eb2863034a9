"""Real agents from npm against the scripted provider, directly and through the proxy.

Each is installed once, pinned, in the user's cache. It reads files with its own shell tool, as the provider's script asks.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

from pagein.server import ServerApp, ServerSettings
from pagein.server.clients import client_process
from pagein.testing.provider import ScriptedProvider, ToolLoop, serve_app
from pagein.testing.provider.agent import RunMeasures, measure_run
from pagein.testing.provider.app import OverflowSpelling

Client = Literal["claude", "codex", "opencode", "qwen", "cline", "pi", "gemini"]

PINNED: Mapping[str, str] = {
    "@anthropic-ai/claude-code": "2.1.332",
    "@openai/codex": "0.169.0",
    "opencode-ai": "1.18.33",
    "@qwen-code/qwen-code": "0.24.4",
    "cline": "3.0.65",
    "@mariozechner/pi-coding-agent": "0.73.1",
    "@google/gemini-cli": "0.61.0",
}
TASK = "Read every file f1.txt, f2.txt and so on, one at a time."
RESULT_CHARS = 5_000
SUMMARY_TOKENS = 1_500
"""Tokens that a client's own summary is counted for: the script's is two words long."""

_TOOLS: Mapping[Client, str] = {
    "claude": "Bash", "codex": "exec_command", "opencode": "bash", "qwen": "run_shell_command", "cline": "run_commands", "pi": "bash",
    "gemini": "run_shell_command",
}  # fmt: skip
_SPELLINGS: Mapping[Client, OverflowSpelling] = {"claude": "anthropic", "gemini": "gemini"}
WINDOWS: Mapping[Client, int] = {
    "claude": 45_000, "codex": 30_000, "opencode": 30_000, "qwen": 100_000, "cline": 50_000, "pi": 30_000, "gemini": 100_000,
}  # fmt: skip


class NotInstalled(Exception):
    """The clients cannot be installed: npm is not there, or it does not reach its registry."""


@dataclass(frozen=True, slots=True)
class ClientRun:
    """One run of a client: its exit code (None for one that did not end), the calls it made, and its measures."""

    exit_code: int | None
    calls: int
    compactions: int
    seconds: float
    measures: RunMeasures
    end: str
    failures: int = 0
    runs: tuple[str, ...] = ()

    @property
    def price(self) -> float:
        """The price of all input, the client's own summaries counted at their usual length."""
        return self.measures.price + SUMMARY_TOKENS * self.compactions


def install() -> Path:
    """Install the pinned clients, once; return the folder of their packages. Raises NotInstalled."""
    npm = shutil.which("npm")
    base = os.environ.get("PAGEIN_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    versions = "-".join(PINNED.values())
    folder = Path(base) / "pagein" / f"clients-{versions}"
    packages = folder / "node_modules"
    if (folder / "installed").exists():
        return packages
    if npm is None:
        raise NotInstalled("there is no npm")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": PINNED}))
    done = subprocess.run(  # noqa: S603 - pinned packages, in a folder of their own
        [npm, "install", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if done.returncode:
        raise NotInstalled(f"npm install failed: {done.stderr.strip()[-300:]}")
    (folder / "installed").touch()
    return packages


def run_client(
    client: Client, packages: Path, *, calls: int, window: int, proxied: bool, timeout: float = 600
) -> ClientRun:
    """Run a client to its end against the scripted provider, through the proxy if asked."""
    loop = ToolLoop(calls, tool=_TOOLS[client], arguments=lambda number: _arguments(client, f"cat f{number}.txt"))
    if client == "gemini":  # it has the model look for a loop in its newest calls, which may not begin with words
        loop.text = lambda _: ""
    provider = ScriptedProvider(loop, window=window, spelling=_SPELLINGS.get(client, "openai"))
    with tempfile.TemporaryDirectory() as folder, serve_app(provider) as direct:
        place = Path(folder)
        app = ServerApp(ServerSettings(str(place / "runs.db"), {"default": direct}, window=window))
        with serve_app(app) as url:
            command, environment = _prepare(client, packages, place, url if proxied else direct, window, calls)
            started = time.monotonic()
            code, text = _run(command, place / "repo", environment, timeout)
            seconds = time.monotonic() - started
        measures = measure_run(provider.received, window, tuple(app.metrics.newest_added))
        failures = sum(count for (name, _), count in app.metrics.counts.items() if name == "failures")
        return ClientRun(
            code, loop.made, provider.compactions, seconds, measures, text, failures, tuple(app.metrics.runs)
        )


def _arguments(client: Client, command: str) -> dict[str, object]:
    """The arguments with which an agent's tool runs a command."""
    match client:
        case "codex":
            return {"cmd": command}
        case "cline":
            return {"commands": [command]}
        case "qwen":
            return {"command": command, "description": "Read a file", "is_background": False}
        case "claude" | "opencode" | "pi" | "gemini":
            return {"command": command, "description": "Read a file"}
    assert_never(client)


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float
) -> tuple[int | None, str]:
    try:
        done = subprocess.run(  # noqa: S603 - the pinned clients
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=timeout,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout[-1_000:] + done.stderr[-1_000:]


def _prepare(
    client: Client, packages: Path, place: Path, url: str, window: int, calls: int
) -> tuple[list[str], dict[str, str]]:
    """Make a home and a folder of files; return the client's command and environment."""
    home, repo = place / "home", place / "repo"
    home.mkdir()
    repo.mkdir()
    for number in range(1, calls + 2):
        line = f"lorem ipsum dolor sit amet {number}\n"
        text = f"file {number}: handler_{number} = lookup_{number * 7}\n" + line * (RESULT_CHARS // len(line) + 1)
        (repo / f"f{number}.txt").write_text(text[:RESULT_CHARS])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TERM": "dumb",
        "CI": "1",
        "OPENAI_API_KEY": "sk-test",
    }
    command, more = _configure(client, packages / ".bin", home, url, window)
    if client == "claude":
        command += ["--max-turns", str(calls * 2 + 20)]
    if client == "cline":
        login = [command[0], "auth", "-p", "openai", "-k", "sk-test", "-m", "m", "-b", f"{url}/v1"]
        _run(login, repo, environment, 60)
    return command, environment | more


def _configure(client: Client, commands: Path, home: Path, url: str, window: int) -> tuple[list[str], dict[str, str]]:
    """Write an agent's settings; return its command, and what its environment has of its own."""
    match client:
        case "claude":
            options = ["--dangerously-skip-permissions", "--model", "claude-sonnet-4-6"]
            return [str(commands / "claude"), "-p", TASK, *options], {
                "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-test", "IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000",
                "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(window),
            }  # fmt: skip
        case "codex":
            (home / ".codex").mkdir()
            (home / ".codex" / "config.toml").write_text(
                f'model = "gpt-5"\nmodel_provider = "p"\nmodel_context_window = {window}\n'
                f'model_auto_compact_token_limit = {int(window * 0.9)}\n[model_providers.p]\nname = "p"\n'
                f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
            )
            options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
            return [str(commands / "codex"), "exec", *options, TASK], {"CODEX_HOME": str(home / ".codex")}
        case "opencode":
            config = json.dumps(_opencode_config(url, window))
            return [str(_opencode_binary(commands.parent)), "run", TASK], {"OPENCODE_CONFIG_CONTENT": config}
        case "qwen":
            settings = {"telemetry": {"enabled": False}, "model": {"generationConfig": {"contextWindowSize": window}}}
            _write_json(home / ".qwen" / "settings.json", settings)
            command = [str(commands / "qwen"), "-p", TASK, "--yolo", "--auth-type", "openai", "-m", "m"]
            return command, {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "m"}
        case "cline":  # it compacts by its own count of the whole list, whatever usage it reads
            return [str(commands / "cline"), "--compaction", "off", TASK], {}
        case "pi":
            _write_json(home / ".pi" / "agent" / "models.json", {"providers": {"p": _pi_provider(url, window)}})
            command = [str(commands / "pi"), "-p", "--provider", "p", "--model", "m", TASK]
            return command, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
        case "gemini":  # it takes the model's window for a million tokens
            settings = {"model": {"compressionThreshold": 0.5 * window / 1_048_576}}
            _write_json(home / ".gemini" / "settings.json", {**settings, "privacy": {"usageStatisticsEnabled": False}})
            own = {"GEMINI_API_KEY": "AIza-test", "GEMINI_CLI_NO_RELAUNCH": "true"}
            process = client_process(
                "gemini", url, ("-p", TASK, "--yolo", "--skip-trust", "-m", "gemini-2.5-pro"), own, "s"
            )
            return [str(commands / "gemini"), *process.command[1:]], {**own, **process.environment}
    assert_never(client)


def _pi_provider(url: str, window: int) -> dict[str, object]:
    model: dict[str, object] = {"id": "m", "name": "m", "input": ["text"], "contextWindow": window, "maxTokens": 2_000}
    model |= {"reasoning": False, "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)}
    return {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "sk-test", "models": [model]}


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(value))


def _opencode_config(url: str, window: int) -> dict[str, object]:
    model = {"name": "m", "limit": {"context": window, "output": 4_000}, "tool_call": True}
    options = {"baseURL": f"{url}/v1", "apiKey": "sk-test"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "p", "options": options, "models": {"m": model}}
    permission = {"bash": "allow", "edit": "allow"}
    shared = {"model": "p/m", "small_model": "p/m", "autoupdate": False, "share": "disabled", "permission": permission}
    return {**shared, "provider": {"p": provider}}


def _opencode_binary(packages: Path) -> Path:
    """Its own binary: the package's start script waits for an install script that npm may not run."""
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
    return packages / f"opencode-{platform.system().lower()}-{machine}" / "bin" / "opencode"

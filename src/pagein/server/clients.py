"""The environment and the arguments with which each agent uses the proxy, for one process alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, assert_never

from pagein.errors import ConfigurationError

Client = Literal["claude", "codex", "opencode", "gemini"]

UPSTREAMS: Mapping[Client, Mapping[str, str]] = {
    "claude": {"default": "https://api.anthropic.com"},
    "codex": {"default": "https://api.openai.com"},
    "opencode": {"default": "https://api.anthropic.com", "openai": "https://api.openai.com"},
    "gemini": {"default": "https://generativelanguage.googleapis.com"},
}
"""The upstreams of a proxy that is started for an agent."""


class CompactionPoint(NamedTuple):
    """Where an agent compacts by itself: above a share of the model's window, or where fewer tokens than these are free."""

    share: float = 1.0
    free_tokens: int = 0

    def tokens_kept_free(self, window: int) -> int:
        """The tokens of a window above this point. In a window of less than twice the free tokens the share alone counts."""
        free_tokens = self.free_tokens if 2 * self.free_tokens <= window else 0
        return max(int(window * (1 - self.share)), free_tokens)


COMPACTION_POINTS: Mapping[str, CompactionPoint] = {
    "QwenCode/": CompactionPoint(0.7, 34_000),
    "GeminiCLI": CompactionPoint(0.5),
    "kimi-code-cli/": CompactionPoint(0.75, 60_000),
}
"""Where agents compact by themselves, by the beginning of their user agent. Those that are not here do it in a full window.

Qwen Code kept to .7 of the window until 0.15, and keeps 33,000 tokens free since 0.24. Kimi Code CLI keeps to .85 and 50,000,
and counts the results that the model has not read yet, too.
"""

FULL_WINDOW = CompactionPoint()
"""The point of an agent that uses its whole window."""


def compaction_point(user_agent: str) -> CompactionPoint:
    """The point from which the agent of a request compacts."""
    points = (point for beginning, point in COMPACTION_POINTS.items() if user_agent.startswith(beginning))
    return next(points, FULL_WINDOW)


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """The command of an agent, and what its environment has beside this process's."""

    command: tuple[str, ...]
    environment: Mapping[str, str]


GEMINI_DEFAULTS = Path(__file__).with_name("gemini_defaults.json")
"""Settings of Gemini CLI that any other of its settings is preferred to: a base URL alone has it not know how to log in."""


def client_process(
    client: Client, url: str, arguments: Sequence[str], environ: Mapping[str, str], session: str = ""
) -> ClientProcess:
    """The process of an agent that asks the proxy at ``url``. No file is changed. Raises ConfigurationError.

    ``session`` names the run of an agent that gives none itself.
    """
    match client:
        case "claude":
            return ClientProcess(("claude", *arguments), {"ANTHROPIC_BASE_URL": url})
        case "codex":
            if not environ.get("OPENAI_API_KEY"):
                raise ConfigurationError(
                    "codex behind a proxy needs OPENAI_API_KEY: a login with ChatGPT is for its own server"
                )
            entry = f'{{name="pagein", base_url="{url}/v1", wire_api="responses", env_key="OPENAI_API_KEY"}}'
            options = ("-c", 'model_provider="pagein"', "-c", f"model_providers.pagein={entry}")
            return ClientProcess(("codex", *options, *arguments), {})
        case "opencode":
            config = _object(environ.get("OPENCODE_CONFIG_CONTENT", ""))
            providers: dict[str, Any] = dict(config.get("provider") or {})
            for name, base in (("anthropic", f"{url}/v1"), ("openai", f"{url}/openai/v1")):
                provider: dict[str, Any] = dict(providers.get(name) or {})
                providers[name] = {**provider, "options": {**(provider.get("options") or {}), "baseURL": base}}
            content = json.dumps({**config, "provider": providers})
            return ClientProcess(("opencode", *arguments), {"OPENCODE_CONFIG_CONTENT": content})
        case "gemini":
            if not environ.get("GEMINI_API_KEY"):
                raise ConfigurationError(
                    "gemini behind a proxy needs GEMINI_API_KEY: a login with Google is for another server"
                )
            headers = environ.get("GEMINI_CLI_CUSTOM_HEADERS"), f"x-session-id: {session}"
            defaults = environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH") or str(GEMINI_DEFAULTS)
            own = {
                "GEMINI_CLI_CUSTOM_HEADERS": ", ".join(filter(None, headers)),
                "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": defaults,
            }
            return ClientProcess(("gemini", *arguments), {"GOOGLE_GEMINI_BASE_URL": url, **own})
    assert_never(client)


def check_gemini_login(environ: Mapping[str, str]) -> None:
    """Raise ConfigurationError where Gemini CLI was told to log in without a key: it asks another server then."""
    home = environ.get("GEMINI_CLI_HOME") or Path.home()
    try:
        settings = json.loads((Path(home) / ".gemini" / "settings.json").read_text("utf-8"))
        login = settings["security"]["auth"]["selectedType"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if login != "gemini-api-key":
        raise ConfigurationError(f"gemini logs in with {login!r}, and asks no proxy then: choose an API key with /auth")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        raise ConfigurationError("OPENCODE_CONFIG_CONTENT is no JSON") from None
    return value if isinstance(value, dict) else {}

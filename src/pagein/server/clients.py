"""The environment and the arguments with which each agent uses the proxy, for one process alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_never

from pagein.errors import ConfigurationError

Client = Literal["claude", "codex", "opencode", "gemini"]

UPSTREAMS: Mapping[Client, Mapping[str, str]] = {
    "claude": {"default": "https://api.anthropic.com"},
    "codex": {"default": "https://api.openai.com"},
    "opencode": {"default": "https://api.anthropic.com", "openai": "https://api.openai.com"},
    "gemini": {"default": "https://generativelanguage.googleapis.com"},
}
"""The upstreams of a proxy that is started for an agent."""


COMPACTION_SHARES: Mapping[str, float] = {"QwenCode/": 0.7, "GeminiCLI": 0.5}
"""Shares of a model's window at which agents compact by themselves, by the beginning of their user agent.

Those that are not here compact where the window is nearly full.
"""


def window_share(user_agent: str) -> float:
    """The share of a model's window that a request may fill before its agent compacts."""
    shares = (share for beginning, share in COMPACTION_SHARES.items() if user_agent.startswith(beginning))
    return next(shares, 1.0)


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

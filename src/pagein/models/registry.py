"""Lookup of models by name (``maker:model``), and conversion of other objects to models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagein.errors import ConfigurationError
from pagein.models.base import AsyncModel, Model

_SERVERS: Mapping[str, tuple[str, str]] = {
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": ("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "together": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
    "llamacpp": ("http://localhost:8080/v1", ""),
    "lmstudio": ("http://localhost:1234/v1", ""),
    "ollama": ("http://localhost:11434/v1", ""),
    "vllm": ("http://localhost:8000/v1", ""),
}
"""Base URL, and environment variable of the key, of servers with a chat completions API."""

_OLLAMA_WINDOW_TOKENS = 4_096
"""Ollama's default window for every model. It truncates longer requests without an error."""


def model_named(name: str, **options: Any) -> Model:
    """Return the model named ``openai:gpt-4o-mini``, ``anthropic:claude-haiku-4-5``, ``ollama:qwen3`` or the like.

    ``options`` go to its class (``base_url``, ``window``, ``stream``, ``options``). Nothing is sent. Raises
    ConfigurationError for an unknown maker, an SDK that is not installed or a key that is not set.
    """
    maker, colon, model = name.partition(":")
    if not colon or not model.strip() or not maker:
        raise ConfigurationError(f"a model is named as maker:model, as openai:gpt-4o-mini; not {name!r}")
    server = maker.lower()
    if server == "anthropic":
        from pagein.models.anthropic import AnthropicModel  # noqa: PLC0415 - loaded on demand

        return _build_model(AnthropicModel, name, {"name": model, **options})
    if server == "openai" or server in _SERVERS:
        from pagein.models.openai_chat import OpenAIModel  # noqa: PLC0415 - loaded on demand

        base_url, variable = _SERVERS.get(server, ("", ""))
        window = _OLLAMA_WINDOW_TOKENS if server == "ollama" else 0
        defaults = {"name": model, "base_url": base_url, "key_variable": variable, "window": window}
        return _build_model(OpenAIModel, name, {**defaults, **options})
    makers = ", ".join(sorted(("openai", "anthropic", *_SERVERS)))
    raise ConfigurationError(
        f"unknown maker {maker!r}: use one of {makers}; or openai:... with base_url for any other server"
    )


def as_model(value: Any, **options: Any) -> Model | AsyncModel:
    """Convert a name, a model, a LangChain chat model or a callable to a model. Raises ConfigurationError."""
    if isinstance(value, str):
        return model_named(value, **options)
    if hasattr(value, "write") or hasattr(value, "awrite"):
        model: Model | AsyncModel = value
        return model
    if hasattr(value, "invoke") and hasattr(value, "ainvoke"):
        from pagein.models.langchain import LangChainModel  # noqa: PLC0415 - loaded on demand

        return LangChainModel(value, **options)
    if callable(value):
        from pagein.models.callables import CallableModel  # noqa: PLC0415 - loaded on demand

        return CallableModel(value, **options)
    raise ConfigurationError(
        f"{type(value).__name__} is no model: give a name as openai:gpt-4o-mini, a Model, a LangChain chat model or a "
        "callable from text to text"
    )


def _build_model(kind: type[Any], name: str, options: dict[str, Any]) -> Model:
    try:
        model: Model = kind(**options)
    except TypeError as error:
        raise ConfigurationError(f"{name}: {error}") from None
    return model

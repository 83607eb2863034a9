"""Limits and counters of models, in one table that can be extended.

    table = MODELS.with_models({"my-finetune": ModelLimits(window=65_536, output=4_096, counter=Encoding("qwen3"))})
    counter_for("my-finetune", table=table), budget_for("my-finetune", table=table)

A name is matched without its provider, region, date and version: ``openai/gpt-4o-2024-08-06``,
``us.anthropic.claude-sonnet-4-5-20250929-v1:0`` and ``models/gemini-3-pro-preview`` are all found. An
explicit ``budget_for(..., window=)`` overrides the table.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pagein.tokens import Budget, TokenCounter, estimates, images
from pagein.tokens.encodings import Encoding

MAX_RESERVE_TOKENS = 32_000
"""The most tokens reserved for output, unless the provider's input limit or the caller reserves more."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """One model's limits in tokens, and its counter. ``window`` is input and output together.

    ``input`` is the most input the provider takes, where that is less than window minus what is reserved.
    """

    window: int
    output: int
    counter: TokenCounter = estimates.ANY_ESTIMATE
    input: int = 0

    @property
    def reserve(self) -> int:
        """Tokens reserved for the answer: the longest output, at most 32,000 and at most a quarter of the window."""
        reserve = min(self.output, MAX_RESERVE_TOKENS, self.window // 4)
        return max(reserve, self.window - self.input) if self.input else reserve


UNKNOWN = ModelLimits(window=32_768, output=4_096)
"""The limits of a model that is not in the table. Every model made for agents since 2024 has a window of at least
32,768. Too small a window costs compactions; too large a one fails the run."""


@dataclass(frozen=True, slots=True)
class ModelTable:
    """Patterns of model names and their limits. A value: ``with_models`` returns another one.

    A pattern matches a name that equals it, or continues with ``-``; one that ends in ``*`` matches every name with
    that prefix. The longest match wins, of equal ones the last.
    """

    rows: tuple[tuple[str, ModelLimits], ...]
    unknown: ModelLimits = UNKNOWN

    def find(self, name: str) -> ModelLimits | None:
        """Return the limits of a model, or None."""
        plain = plain_name(name)
        best: tuple[int, ModelLimits] | None = None
        for pattern, model in self.rows:
            stem = pattern.removesuffix("*")
            ends = stem != pattern or plain[len(stem) : len(stem) + 1] in ("", "-")
            if ends and plain.startswith(stem) and (best is None or len(stem) >= best[0]):
                best = len(stem), model
        return best[1] if best else None

    def get(self, name: str) -> ModelLimits:
        """Return the limits of a model, or those of an unknown one. Logs nothing; ``counter_for`` warns."""
        return self.find(name) or self.unknown

    def with_models(self, models: Mapping[str, ModelLimits]) -> ModelTable:
        """Return a table with these models added; an existing pattern is replaced."""
        return replace(self, rows=(*self.rows, *((plain_name(name), model) for name, model in models.items())))


# Not deepseek: Bedrock's "deepseek.r1" has its maker's name nowhere else.
_MAKER = re.compile(
    r"^(?:(?:us|eu|apac|global|regional|jp|au|ca|sa|us-gov)\.)?"
    r"(?:(?:anthropic|openai|google|meta|mistral|qwen|moonshotai|moonshot|zai|xai|minimax|amazon|cohere|nvidia)\.)?"
)


def plain_name(name: str) -> str:
    """Return a model's name without provider, region, tag and dots.

    >>> plain_name("bedrock/us.anthropic.claude-3.5-sonnet-20241022-v2:0")
    'claude-3-5-sonnet-20241022-v2'
    """
    last = name.strip().lower().rpartition("/")[2].removeprefix("ft:")
    bare = re.split(r"[:@]", _MAKER.sub("", last), maxsplit=1)[0].removeprefix("meta-")
    return re.sub(r"[._\s]+", "-", re.sub(r"(?<=\d)p(?=\d)", "-", bare))


def counter_for(model: str, *, table: ModelTable | None = None) -> TokenCounter:
    """Return the counter for a model. An unknown name gives a general estimate and a logged warning, at each call."""
    table = table or MODELS
    limits = table.find(model)
    if limits is None:
        logging.getLogger("pagein").warning(
            "the model %r is not known: its tokens are estimated (to %.0f %%) and its window is taken to be %d. "
            "Set budget=..., counter=..., or use MODELS.with_models({%r: ModelLimits(window=..., output=...)})",
            model, 100 * table.unknown.counter.margin, table.unknown.window, model,
        )  # fmt: skip
    return (limits or table.unknown).counter


def budget_for(
    model: str,
    *,
    window: int | None = None,
    output: int | None = None,
    tools: int = 0,
    margin: float | None = None,
    table: ModelTable | None = None,
) -> Budget:
    """Return the budget for a model: its window less reserves for the answer, the tools' schemas and a margin.

    Arguments override the table. The margin is 2 % with an exact counter, for tokens the provider adds, and 5 % with an
    estimate, which already errs upwards. Never warns; raises BudgetError when nothing is left.
    """
    limits = (table or MODELS).get(model)
    if window is not None:
        # A larger window than the table's means that the table is outdated, and so is its input limit.
        limits = replace(limits, window=window, input=limits.input if window <= limits.window else 0)
    capped = limits.window - limits.input if 0 < limits.input < limits.window else 0
    return Budget(
        window=limits.window,
        output=limits.reserve if output is None else max(output, capped),
        tools=tools,
        margin=(0.05 if limits.counter.margin > 0.02 else 0.02) if margin is None else margin,
    )


def _gpt(window: int, output: int, rule: images.ImageRule, input: int = 0) -> ModelLimits:
    return ModelLimits(window, output, Encoding("o200k_base", rule), input)


def _open_model(window: int, output: int, encoding: str, margin: float = 0.02) -> ModelLimits:
    """Make the limits of an open model. The margin is 2 % because splintr's vocabulary is not cross-checked here."""
    return ModelLimits(window, output, Encoding(encoding, margin=margin))


_OLD_GPT = Encoding("cl100k_base", images.GPT_4O)

# Windows and outputs: litellm 1.109.1 (model_prices_and_context_window) and genai-prices 0.2.3, both of November 2026,
# compared; where they differ, and where hosts of an open model differ, the smaller. Vocabularies: the makers'
# statements; a margin of 0.1 marks a model counted with its predecessor's.
MODELS = ModelTable((
    # OpenAI. gpt-5 to 5.3 and their minis take 272,000 tokens of input in a window of 400,000.
    ("gpt-3-5*", ModelLimits(16_385, 4_096, _OLD_GPT)), ("gpt-35*", ModelLimits(16_385, 4_096, _OLD_GPT)),
    ("gpt-4", ModelLimits(8_192, 4_096, _OLD_GPT)), ("gpt-4-32k", ModelLimits(32_768, 4_096, _OLD_GPT)),
    ("gpt-4-turbo", ModelLimits(128_000, 4_096, _OLD_GPT)), ("gpt-4-1106", ModelLimits(128_000, 4_096, _OLD_GPT)),
    ("gpt-4-0125", ModelLimits(128_000, 4_096, _OLD_GPT)), ("gpt-4-vision", ModelLimits(128_000, 4_096, _OLD_GPT)),
    ("gpt-4-5", _gpt(128_000, 16_384, images.GPT_4O)),
    ("gpt-4o", _gpt(128_000, 16_384, images.GPT_4O)), ("chatgpt-4o", _gpt(128_000, 16_384, images.GPT_4O)),
    ("gpt-4o-mini", _gpt(128_000, 16_384, images.GPT_4O_MINI)),
    ("gpt-4-1", _gpt(1_047_576, 32_768, images.GPT_4O)),
    ("gpt-4-1-mini", _gpt(1_047_576, 32_768, images.MINI)), ("gpt-4-1-nano", _gpt(1_047_576, 32_768, images.NANO)),
    ("gpt-5", _gpt(400_000, 128_000, images.GPT_5, 272_000)),
    ("gpt-5-chat", _gpt(128_000, 16_384, images.GPT_5)), ("gpt-5-1-chat", _gpt(128_000, 16_384, images.GPT_5)),
    ("gpt-5-2-chat", _gpt(128_000, 16_384, images.GPT_5)), ("gpt-5-3-chat", _gpt(128_000, 16_384, images.GPT_5)),
    ("gpt-5-mini", _gpt(400_000, 128_000, images.MINI, 272_000)),
    ("gpt-5-nano", _gpt(400_000, 128_000, images.NANO, 272_000)),
    # A 1.2 multiplier of gpt-5.2's image tokens was billed and not documented: charged by the newer, dearer rule.
    ("gpt-5-2", _gpt(400_000, 128_000, images.GPT_5_4, 272_000)),
    ("gpt-5-3", _gpt(400_000, 128_000, images.GPT_5_4, 272_000)),
    ("gpt-5-4", _gpt(1_050_000, 128_000, images.GPT_5_4, 922_000)),
    ("gpt-5-4-mini", _gpt(400_000, 128_000, images.GPT_5_4, 272_000)),
    ("gpt-5-4-nano", _gpt(400_000, 128_000, images.GPT_5_4, 272_000)),
    ("gpt-5-5", _gpt(1_050_000, 128_000, images.GPT_5_4, 922_000)),
    ("gpt-5-6", _gpt(1_050_000, 128_000, images.GPT_5_4, 922_000)),
    ("gpt-5-6-cyber", _gpt(400_000, 128_000, images.GPT_5_4, 272_000)),
    ("gpt-6*", _gpt(1_050_000, 128_000, images.GPT_6, 922_000)),
    ("gpt-oss", _gpt(131_072, 32_768, images.UNKNOWN)),
    ("o1", _gpt(200_000, 100_000, images.O1_O3)), ("o1-preview", _gpt(128_000, 32_768, images.O1_O3)),
    ("o1-mini", _gpt(128_000, 65_536, images.O1_O3)), ("o3", _gpt(200_000, 100_000, images.O1_O3)),
    ("o4-mini", _gpt(200_000, 100_000, images.O4_MINI)), ("codex-mini", _gpt(200_000, 100_000, images.O4_MINI)),
    # Anthropic. A name that is not listed is assumed to be new, and small.
    ("claude*", ModelLimits(200_000, 64_000, estimates.CLAUDE_4_7)),
    ("claude-2", ModelLimits(100_000, 4_096, estimates.CLAUDE_3)), ("claude-instant", ModelLimits(100_000, 4_096, estimates.CLAUDE_3)),
    ("claude-3", ModelLimits(200_000, 4_096, estimates.CLAUDE_3)), ("claude-3-5", ModelLimits(200_000, 8_192, estimates.CLAUDE_3)),
    ("claude-3-7", ModelLimits(200_000, 64_000, estimates.CLAUDE_3)), ("claude-4", ModelLimits(200_000, 32_000, estimates.CLAUDE_3)),
    ("claude-opus-4", ModelLimits(200_000, 32_000, estimates.CLAUDE_3)), ("claude-sonnet-4", ModelLimits(200_000, 64_000, estimates.CLAUDE_3)),
    ("claude-haiku-4", ModelLimits(200_000, 64_000, estimates.CLAUDE_3)), ("claude-opus-4-5", ModelLimits(200_000, 64_000, estimates.CLAUDE_3)),
    ("claude-opus-4-6", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_3)), ("claude-sonnet-4-6", ModelLimits(1_000_000, 64_000, estimates.CLAUDE_3)),
    ("claude-opus-4-7", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_4_7)),
    ("claude-opus-4-8", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_4_7)),
    ("claude-opus-5", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_4_7)), ("claude-sonnet-5", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_4_7)),
    ("claude-haiku-5", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_4_7)), ("claude-fable", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_4_7)),
    ("claude-mythos", ModelLimits(1_000_000, 128_000, estimates.CLAUDE_4_7)),
    # Google.
    ("gemini*", ModelLimits(1_048_576, 65_536, estimates.GEMINI_3_ESTIMATE)),
    ("gemini-1-5", ModelLimits(1_000_000, 8_192, estimates.GEMINI_2_ESTIMATE)), ("gemini-pro", ModelLimits(32_768, 8_192, estimates.GEMINI_2_ESTIMATE)),
    ("gemini-2", ModelLimits(1_048_576, 8_192, estimates.GEMINI_2_ESTIMATE)), ("gemini-2-5", ModelLimits(1_048_576, 65_536, estimates.GEMINI_2_ESTIMATE)),
    ("gemini-pro-latest", ModelLimits(1_048_576, 65_536, estimates.GEMINI_3_ESTIMATE)),
    ("gemini-2-5-computer-use", ModelLimits(128_000, 64_000, estimates.GEMINI_2_ESTIMATE)),
    ("gemma-2", _open_model(8_192, 4_096, "gemma2")), ("gemma2", _open_model(8_192, 4_096, "gemma2")),
    ("gemma-3", _open_model(128_000, 8_192, "gemma3")), ("gemma3", _open_model(128_000, 8_192, "gemma3")),
    ("gemma-4", _open_model(131_072, 8_192, "gemma4")), ("gemma4", _open_model(131_072, 8_192, "gemma4")),
    # xAI: no public vocabulary since Grok 1.
    ("grok*", ModelLimits(131_072, 32_768, estimates.GROK_ESTIMATE)), ("grok-4", ModelLimits(256_000, 64_000, estimates.GROK_ESTIMATE)),
    ("grok-4-fast", ModelLimits(1_000_000, 64_000, estimates.GROK_ESTIMATE)), ("grok-4-1-fast", ModelLimits(1_000_000, 64_000, estimates.GROK_ESTIMATE)),
    ("grok-4-20", ModelLimits(1_000_000, 64_000, estimates.GROK_ESTIMATE)), ("grok-4-3", ModelLimits(1_000_000, 64_000, estimates.GROK_ESTIMATE)),
    ("grok-4-7", ModelLimits(500_000, 64_000, estimates.GROK_ESTIMATE)), ("grok-code", ModelLimits(256_000, 64_000, estimates.GROK_ESTIMATE)),
    # Open models.
    ("deepseek*", _open_model(65_536, 8_192, "deepseek_v3", 0.1)), ("deepseek-chat", _open_model(131_072, 8_192, "deepseek_v3")),
    ("deepseek-reasoner", _open_model(131_072, 65_536, "deepseek_v3")), ("deepseek-v3-1", _open_model(128_000, 8_192, "deepseek_v3")),
    ("deepseek-v3-2", _open_model(128_000, 32_768, "deepseek_v3")),
    ("deepseek-v4", _open_model(1_000_000, 393_216, "deepseek_v3", 0.1)),
    ("deepseek-flash", _open_model(1_000_000, 393_216, "deepseek_v3", 0.1)),
    ("deepseek-r1-distill-llama", _open_model(131_072, 32_768, "llama3")),
    ("deepseek-r1-distill-qwen", _open_model(131_072, 32_768, "qwen3")),
    ("llama-2", _open_model(4_096, 2_048, "llama2")), ("llama2", _open_model(4_096, 2_048, "llama2")),
    ("llama-3", _open_model(8_192, 4_096, "llama3")), ("llama3", _open_model(8_192, 4_096, "llama3")),
    *((f"{stem}-{minor}", _open_model(128_000, 8_192, "llama3"))
      for stem in ("llama-3", "llama3", "llama-v3") for minor in (1, 2, 3)),
    ("llama-4", _open_model(131_072, 8_192, "llama3", 0.1)), ("llama4", _open_model(131_072, 8_192, "llama3", 0.1)),
    ("qwen*", _open_model(32_768, 8_192, "qwen3", 0.1)), ("qwen2-5", _open_model(32_768, 8_192, "qwen3")),
    ("qwen3", _open_model(32_768, 8_192, "qwen3")), ("qwen-3", _open_model(32_768, 8_192, "qwen3")),
    ("qwen-plus", _open_model(129_024, 16_384, "qwen3")), ("qwen-turbo", _open_model(129_024, 8_192, "qwen3")),
    ("qwen-max", _open_model(30_720, 8_192, "qwen3")), ("qwen3-max", _open_model(258_048, 65_536, "qwen3")),
    ("qwen3-coder", _open_model(131_072, 65_536, "qwen3")), ("qwen3-next", _open_model(262_144, 32_768, "qwen3")),
    ("qwen3-vl", _open_model(131_072, 32_768, "qwen3")),
    *((f"qwen3-{minor}", _open_model(131_072, 32_768, "qwen3", 0.1)) for minor in (5, 6, 7, 8)),
    *((f"qwen3-{minor}-{size}", _open_model(991_808, 65_536, "qwen3", 0.1))
      for minor in (5, 6, 7, 8) for size in ("plus", "max", "flash") if (minor, size) != (6, "max")),
    ("qwen3-6-max", _open_model(262_144, 65_536, "qwen3", 0.1)),
    ("kimi*", _open_model(131_072, 32_768, "kimi_k2")), ("kimi-k2-5", _open_model(262_144, 32_768, "kimi_k2")),
    ("kimi-k2-6", _open_model(262_144, 32_768, "kimi_k2")), ("kimi-k2-7", _open_model(229_376, 16_384, "kimi_k2")),
    ("kimi-k2-thinking", _open_model(229_376, 32_768, "kimi_k2")), ("kimi-k3", _open_model(1_000_000, 65_536, "kimi_k2")),
    ("glm*", _open_model(128_000, 32_000, "glm4", 0.1)), ("glm-4-5", _open_model(128_000, 32_000, "glm4")),
    ("glm-4-6", _open_model(200_000, 128_000, "glm4", 0.1)), ("glm-4-7", _open_model(200_000, 128_000, "glm4", 0.1)),
    ("glm-4-5v", _open_model(65_536, 16_384, "glm4", 0.1)), ("glm-4-6v", _open_model(128_000, 32_000, "glm4", 0.1)),
    ("glm-5", _open_model(200_000, 128_000, "glm4", 0.1)), ("glm-5-2", _open_model(1_000_000, 128_000, "glm4", 0.1)),
    ("glm-5-3", _open_model(1_000_000, 128_000, "glm4", 0.1)),
    ("mistral*", _open_model(32_000, 8_192, "mistral_v3", 0.1)), ("mistral-7b", _open_model(32_000, 8_192, "mistral_v2")),
    ("mixtral", _open_model(32_000, 8_192, "mistral_v1")), ("mixtral-8x22b", _open_model(65_536, 8_192, "mistral_v2")),
    ("mistral-nemo", _open_model(65_536, 8_192, "mistral_v3")), ("open-mistral-nemo", _open_model(65_536, 8_192, "mistral_v3")),
    ("mistral-large", _open_model(128_000, 16_384, "mistral_v3", 0.1)),
    ("mistral-large-4", _open_model(524_288, 65_536, "mistral_v3", 0.1)),
    ("mistral-medium", _open_model(131_072, 16_384, "mistral_v3", 0.1)),
    ("mistral-small", _open_model(32_000, 8_192, "mistral_v3", 0.1)),
    ("mistral-small-3-1", _open_model(128_000, 16_384, "mistral_v3", 0.1)),
    ("mistral-small-3-2", _open_model(128_000, 16_384, "mistral_v3", 0.1)),
    ("mistral-small-latest", _open_model(128_000, 16_384, "mistral_v3", 0.1)),
    ("ministral", _open_model(128_000, 8_192, "mistral_v3", 0.1)), ("magistral", _open_model(128_000, 40_000, "mistral_v3", 0.1)),
    ("codestral", _open_model(32_000, 8_192, "mistral_v3", 0.1)), ("devstral", _open_model(128_000, 32_000, "mistral_v3", 0.1)),
    ("pixtral", _open_model(128_000, 16_384, "mistral_v3", 0.1)),
    ("phi-4", _open_model(16_384, 4_096, "phi4")), ("olmo-2", _open_model(4_096, 2_048, "olmo2")),
    ("nova-micro", ModelLimits(128_000, 10_000)), ("nova-lite", ModelLimits(300_000, 10_000)), ("nova-pro", ModelLimits(300_000, 10_000)),
    ("nova-premier", ModelLimits(1_000_000, 10_000)), ("nova-2", ModelLimits(1_000_000, 64_000)),
    ("command-r", ModelLimits(128_000, 4_096)), ("command-a", ModelLimits(128_000, 8_000)),
    ("minimax-m2", ModelLimits(196_000, 8_192)), ("minimax-m3", ModelLimits(512_000, 65_536)),
))  # fmt: skip
"""The known models."""

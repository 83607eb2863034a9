"""What each model holds: its window, its longest output, how its tokens are counted. One table, and how to extend it.

    table = MODELS.extended({"my-finetune": Model(window=65_536, output=4_096, counter=Encoding("qwen3"))})
    counter_for("my-finetune", table=table), budget_for("my-finetune", table=table)

A name is read without its provider, region, date and version: ``openai/gpt-4o-2024-08-06``,
``us.anthropic.claude-sonnet-4-5-20250929-v1:0`` and ``models/gemini-3-pro-preview`` are all found. What a host says
of its own deployment is better than any table: ``budget_for(..., window=)`` always wins.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pagein.tokens import Budget, TokenCounter, images
from pagein.tokens.encodings import Encoding
from pagein.tokens.estimates import (
    ANY_ESTIMATE,
    CLAUDE_3,
    CLAUDE_4_7,
    GEMINI_2_ESTIMATE,
    GEMINI_3_ESTIMATE,
    GROK_ESTIMATE,
)

MOST_RESERVE = 32_000
"""No more than this is kept free for output unless the provider itself caps the input lower, or the host asks."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model's limits in tokens, and its counter. ``window`` is input and output together.

    ``input`` is the most input the provider takes, where that is less than window minus what is reserved.
    """

    window: int
    output: int
    counter: TokenCounter = ANY_ESTIMATE
    input: int = 0

    @property
    def reserve(self) -> int:
        """Tokens to keep free for the answer: the longest output, at most 32,000 and at most a quarter of the window."""
        asked = min(self.output, MOST_RESERVE, self.window // 4)
        return max(asked, self.window - self.input) if self.input else asked


UNKNOWN = Model(window=32_768, output=4_096)
"""For a model that is not in the table. 32,768 because a window taken too small costs compactions, and one taken too
large costs the run; every model made for agents since 2024 holds that much."""


@dataclass(frozen=True, slots=True)
class ModelTable:
    """Patterns and the models they stand for. A value: ``extended`` returns another one.

    A pattern matches a name that equals it, or goes on with ``-``; one that ends in ``*`` matches every name that
    begins so. The longest match wins, of equal ones the last.
    """

    rows: tuple[tuple[str, Model], ...]
    unknown: Model = UNKNOWN

    def find(self, name: str) -> Model | None:
        """The model of that name, or None."""
        plain = plain_name(name)
        best: tuple[int, Model] | None = None
        for pattern, model in self.rows:
            stem = pattern.removesuffix("*")
            ends = stem != pattern or plain[len(stem) : len(stem) + 1] in ("", "-")
            if ends and plain.startswith(stem) and (best is None or len(stem) >= best[0]):
                best = len(stem), model
        return best[1] if best else None

    def get(self, name: str) -> Model:
        """The model of that name, or the one for names that are not known. Says nothing; ``counter_for`` warns."""
        return self.find(name) or self.unknown

    def extended(self, rows: Mapping[str, Model]) -> ModelTable:
        """A table with these rows too; a pattern that is there already is replaced."""
        return replace(self, rows=(*self.rows, *((plain_name(name), model) for name, model in rows.items())))


# Not deepseek: Bedrock's "deepseek.r1" has its maker's name nowhere else.
_MAKER = re.compile(
    r"^(?:(?:us|eu|apac|global|regional|jp|au|ca|sa|us-gov)\.)?"
    r"(?:(?:anthropic|openai|google|meta|mistral|qwen|moonshotai|moonshot|zai|xai|minimax|amazon|cohere|nvidia)\.)?"
)


def plain_name(name: str) -> str:
    """The model's name without provider, region, tag and dots.

    >>> plain_name("bedrock/us.anthropic.claude-3.5-sonnet-20241022-v2:0")
    'claude-3-5-sonnet-20241022-v2'
    """
    last = name.strip().lower().rpartition("/")[2].removeprefix("ft:")
    bare = re.split(r"[:@]", _MAKER.sub("", last), maxsplit=1)[0].removeprefix("meta-")
    return re.sub(r"[._\s]+", "-", re.sub(r"(?<=\d)p(?=\d)", "-", bare))


def counter_for(model: str, *, table: ModelTable | None = None) -> TokenCounter:
    """The counter for a model. For a name that is not known: an estimate for any model, and a warning in the log.

    One call, one warning: whoever keeps the counter is told once, and nothing is remembered here.
    """
    table = MODELS if table is None else table
    found = table.find(model)
    if found is None:
        logging.getLogger("pagein").warning(
            "the model %r is not known: its tokens are estimated (to %.0f %%) and its window is taken to be %d. "
            "Say what it is: budget=..., counter=..., or MODELS.extended({%r: Model(window=..., output=...)})",
            model, 100 * table.unknown.counter.margin, table.unknown.window, model,
        )  # fmt: skip
    return (found or table.unknown).counter


def budget_for(
    model: str,
    *,
    window: int | None = None,
    output: int | None = None,
    tools: int = 0,
    margin: float | None = None,
    table: ModelTable | None = None,
) -> Budget:
    """The budget for a model: its window less the answer's reserve, the tools' schemas and a margin. Never warns.

    What is passed wins over the table. The margin is 2 % under an exact counter, for what its provider adds unseen, and
    5 % under an estimate, which leans upwards by itself. Raises BudgetError when nothing is left.
    """
    known = (MODELS if table is None else table).get(model)
    if window is not None:
        # A larger window than the table's means that the table is out of date, and so is its cap on the input.
        known = replace(known, window=window, input=known.input if window <= known.window else 0)
    capped = known.window - known.input if 0 < known.input < known.window else 0
    return Budget(
        window=known.window,
        output=known.reserve if output is None else max(output, capped),
        tools=tools,
        margin=(0.05 if known.counter.margin > 0.02 else 0.02) if margin is None else margin,
    )


def _gpt(window: int, output: int, rule: images.ImageRule, input: int = 0) -> Model:
    return Model(window, output, Encoding("o200k_base", rule), input)


def _open(window: int, output: int, encoding: str, margin: float = 0.02) -> Model:
    """An open model. 2 %: splintr's vocabulary was not cross-checked here; more where it is a relative's."""
    return Model(window, output, Encoding(encoding, margin=margin))


_OLD_GPT = Encoding("cl100k_base", images.GPT_4O)

# Windows and outputs: litellm 1.109.1 (model_prices_and_context_window) and genai-prices 0.2.3, both of November 2026,
# compared; where they differ, and where hosts of an open model differ, the smaller. Vocabularies: the makers' own
# statements; a margin of 0.1 marks a model counted by its predecessor's.
MODELS = ModelTable((
    # OpenAI. gpt-5 to 5.3 and their minis take 272,000 tokens of input in a window of 400,000.
    ("gpt-3-5*", Model(16_385, 4_096, _OLD_GPT)), ("gpt-35*", Model(16_385, 4_096, _OLD_GPT)),
    ("gpt-4", Model(8_192, 4_096, _OLD_GPT)), ("gpt-4-32k", Model(32_768, 4_096, _OLD_GPT)),
    ("gpt-4-turbo", Model(128_000, 4_096, _OLD_GPT)), ("gpt-4-1106", Model(128_000, 4_096, _OLD_GPT)),
    ("gpt-4-0125", Model(128_000, 4_096, _OLD_GPT)), ("gpt-4-vision", Model(128_000, 4_096, _OLD_GPT)),
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
    # Anthropic. A name that is not listed is taken to be new, and small.
    ("claude*", Model(200_000, 64_000, CLAUDE_4_7)),
    ("claude-2", Model(100_000, 4_096, CLAUDE_3)), ("claude-instant", Model(100_000, 4_096, CLAUDE_3)),
    ("claude-3", Model(200_000, 4_096, CLAUDE_3)), ("claude-3-5", Model(200_000, 8_192, CLAUDE_3)),
    ("claude-3-7", Model(200_000, 64_000, CLAUDE_3)), ("claude-4", Model(200_000, 32_000, CLAUDE_3)),
    ("claude-opus-4", Model(200_000, 32_000, CLAUDE_3)), ("claude-sonnet-4", Model(200_000, 64_000, CLAUDE_3)),
    ("claude-haiku-4", Model(200_000, 64_000, CLAUDE_3)), ("claude-opus-4-5", Model(200_000, 64_000, CLAUDE_3)),
    ("claude-opus-4-6", Model(1_000_000, 128_000, CLAUDE_3)), ("claude-sonnet-4-6", Model(1_000_000, 64_000, CLAUDE_3)),
    ("claude-opus-4-7", Model(1_000_000, 128_000, CLAUDE_4_7)),
    ("claude-opus-4-8", Model(1_000_000, 128_000, CLAUDE_4_7)),
    ("claude-opus-5", Model(1_000_000, 128_000, CLAUDE_4_7)), ("claude-sonnet-5", Model(1_000_000, 128_000, CLAUDE_4_7)),
    ("claude-haiku-5", Model(1_000_000, 128_000, CLAUDE_4_7)), ("claude-fable", Model(1_000_000, 128_000, CLAUDE_4_7)),
    ("claude-mythos", Model(1_000_000, 128_000, CLAUDE_4_7)),
    # Google.
    ("gemini*", Model(1_048_576, 65_536, GEMINI_3_ESTIMATE)),
    ("gemini-1-5", Model(1_000_000, 8_192, GEMINI_2_ESTIMATE)), ("gemini-pro", Model(32_768, 8_192, GEMINI_2_ESTIMATE)),
    ("gemini-2", Model(1_048_576, 8_192, GEMINI_2_ESTIMATE)), ("gemini-2-5", Model(1_048_576, 65_536, GEMINI_2_ESTIMATE)),
    ("gemini-pro-latest", Model(1_048_576, 65_536, GEMINI_3_ESTIMATE)),
    ("gemini-2-5-computer-use", Model(128_000, 64_000, GEMINI_2_ESTIMATE)),
    ("gemma-2", _open(8_192, 4_096, "gemma2")), ("gemma2", _open(8_192, 4_096, "gemma2")),
    ("gemma-3", _open(128_000, 8_192, "gemma3")), ("gemma3", _open(128_000, 8_192, "gemma3")),
    ("gemma-4", _open(131_072, 8_192, "gemma4")), ("gemma4", _open(131_072, 8_192, "gemma4")),
    # xAI: no public vocabulary since Grok 1.
    ("grok*", Model(131_072, 32_768, GROK_ESTIMATE)), ("grok-4", Model(256_000, 64_000, GROK_ESTIMATE)),
    ("grok-4-fast", Model(1_000_000, 64_000, GROK_ESTIMATE)), ("grok-4-1-fast", Model(1_000_000, 64_000, GROK_ESTIMATE)),
    ("grok-4-20", Model(1_000_000, 64_000, GROK_ESTIMATE)), ("grok-4-3", Model(1_000_000, 64_000, GROK_ESTIMATE)),
    ("grok-4-7", Model(500_000, 64_000, GROK_ESTIMATE)), ("grok-code", Model(256_000, 64_000, GROK_ESTIMATE)),
    # Open models.
    ("deepseek*", _open(65_536, 8_192, "deepseek_v3", 0.1)), ("deepseek-chat", _open(131_072, 8_192, "deepseek_v3")),
    ("deepseek-reasoner", _open(131_072, 65_536, "deepseek_v3")), ("deepseek-v3-1", _open(128_000, 8_192, "deepseek_v3")),
    ("deepseek-v3-2", _open(128_000, 32_768, "deepseek_v3")),
    ("deepseek-v4", _open(1_000_000, 393_216, "deepseek_v3", 0.1)),
    ("deepseek-flash", _open(1_000_000, 393_216, "deepseek_v3", 0.1)),
    ("deepseek-r1-distill-llama", _open(131_072, 32_768, "llama3")),
    ("deepseek-r1-distill-qwen", _open(131_072, 32_768, "qwen3")),
    ("llama-2", _open(4_096, 2_048, "llama2")), ("llama2", _open(4_096, 2_048, "llama2")),
    ("llama-3", _open(8_192, 4_096, "llama3")), ("llama3", _open(8_192, 4_096, "llama3")),
    *((f"{stem}-{minor}", _open(128_000, 8_192, "llama3"))
      for stem in ("llama-3", "llama3", "llama-v3") for minor in (1, 2, 3)),
    ("llama-4", _open(131_072, 8_192, "llama3", 0.1)), ("llama4", _open(131_072, 8_192, "llama3", 0.1)),
    ("qwen*", _open(32_768, 8_192, "qwen3", 0.1)), ("qwen2-5", _open(32_768, 8_192, "qwen3")),
    ("qwen3", _open(32_768, 8_192, "qwen3")), ("qwen-3", _open(32_768, 8_192, "qwen3")),
    ("qwen-plus", _open(129_024, 16_384, "qwen3")), ("qwen-turbo", _open(129_024, 8_192, "qwen3")),
    ("qwen-max", _open(30_720, 8_192, "qwen3")), ("qwen3-max", _open(258_048, 65_536, "qwen3")),
    ("qwen3-coder", _open(131_072, 65_536, "qwen3")), ("qwen3-next", _open(262_144, 32_768, "qwen3")),
    ("qwen3-vl", _open(131_072, 32_768, "qwen3")),
    *((f"qwen3-{minor}", _open(131_072, 32_768, "qwen3", 0.1)) for minor in (5, 6, 7, 8)),
    *((f"qwen3-{minor}-{size}", _open(991_808, 65_536, "qwen3", 0.1))
      for minor in (5, 6, 7, 8) for size in ("plus", "max", "flash") if (minor, size) != (6, "max")),
    ("qwen3-6-max", _open(262_144, 65_536, "qwen3", 0.1)),
    ("kimi*", _open(131_072, 32_768, "kimi_k2")), ("kimi-k2-5", _open(262_144, 32_768, "kimi_k2")),
    ("kimi-k2-6", _open(262_144, 32_768, "kimi_k2")), ("kimi-k2-7", _open(229_376, 16_384, "kimi_k2")),
    ("kimi-k2-thinking", _open(229_376, 32_768, "kimi_k2")), ("kimi-k3", _open(1_000_000, 65_536, "kimi_k2")),
    ("glm*", _open(128_000, 32_000, "glm4", 0.1)), ("glm-4-5", _open(128_000, 32_000, "glm4")),
    ("glm-4-6", _open(200_000, 128_000, "glm4", 0.1)), ("glm-4-7", _open(200_000, 128_000, "glm4", 0.1)),
    ("glm-4-5v", _open(65_536, 16_384, "glm4", 0.1)), ("glm-4-6v", _open(128_000, 32_000, "glm4", 0.1)),
    ("glm-5", _open(200_000, 128_000, "glm4", 0.1)), ("glm-5-2", _open(1_000_000, 128_000, "glm4", 0.1)),
    ("glm-5-3", _open(1_000_000, 128_000, "glm4", 0.1)),
    ("mistral*", _open(32_000, 8_192, "mistral_v3", 0.1)), ("mistral-7b", _open(32_000, 8_192, "mistral_v2")),
    ("mixtral", _open(32_000, 8_192, "mistral_v1")), ("mixtral-8x22b", _open(65_536, 8_192, "mistral_v2")),
    ("mistral-nemo", _open(65_536, 8_192, "mistral_v3")), ("open-mistral-nemo", _open(65_536, 8_192, "mistral_v3")),
    ("mistral-large", _open(128_000, 16_384, "mistral_v3", 0.1)),
    ("mistral-large-4", _open(524_288, 65_536, "mistral_v3", 0.1)),
    ("mistral-medium", _open(131_072, 16_384, "mistral_v3", 0.1)),
    ("mistral-small", _open(32_000, 8_192, "mistral_v3", 0.1)),
    ("mistral-small-3-1", _open(128_000, 16_384, "mistral_v3", 0.1)),
    ("mistral-small-3-2", _open(128_000, 16_384, "mistral_v3", 0.1)),
    ("mistral-small-latest", _open(128_000, 16_384, "mistral_v3", 0.1)),
    ("ministral", _open(128_000, 8_192, "mistral_v3", 0.1)), ("magistral", _open(128_000, 40_000, "mistral_v3", 0.1)),
    ("codestral", _open(32_000, 8_192, "mistral_v3", 0.1)), ("devstral", _open(128_000, 32_000, "mistral_v3", 0.1)),
    ("pixtral", _open(128_000, 16_384, "mistral_v3", 0.1)),
    ("phi-4", _open(16_384, 4_096, "phi4")), ("olmo-2", _open(4_096, 2_048, "olmo2")),
    ("nova-micro", Model(128_000, 10_000)), ("nova-lite", Model(300_000, 10_000)), ("nova-pro", Model(300_000, 10_000)),
    ("nova-premier", Model(1_000_000, 10_000)), ("nova-2", Model(1_000_000, 64_000)),
    ("command-r", Model(128_000, 4_096)), ("command-a", Model(128_000, 8_000)),
    ("minimax-m2", Model(196_000, 8_192)), ("minimax-m3", Model(512_000, 65_536)),
))  # fmt: skip
"""What is known, without extensions."""

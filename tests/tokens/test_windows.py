"""Names are found however they are spelled; an unknown one gets a stated default and one warning."""

from __future__ import annotations

import logging

import pytest

from pagein.errors import BudgetError
from pagein.tokens import images
from pagein.tokens.encodings import Encoding
from pagein.tokens.estimates import ANY_ESTIMATE, CLAUDE_3, CLAUDE_4_7
from pagein.tokens.windows import MODELS, UNKNOWN, ModelLimits, ModelTable, budget_for, counter_for, plain_name


@pytest.mark.parametrize(
    ("name", "window", "counter"),
    [
        ("gpt-4o", 128_000, "o200k_base"),
        ("openai/gpt-4o-2024-08-06", 128_000, "o200k_base"),
        ("ft:gpt-4o-mini-2024-07-18:acme::x1", 128_000, "o200k_base"),
        ("gpt-4", 8_192, "cl100k_base"),
        ("gpt-4-0613", 8_192, "cl100k_base"),
        ("gpt-4-1106-preview", 128_000, "cl100k_base"),
        ("gpt-4.1-mini-2025-04-14", 1_047_576, "o200k_base"),
        ("gpt-3.5-turbo-0125", 16_385, "cl100k_base"),
        ("azure/gpt-35-turbo", 16_385, "cl100k_base"),
        ("gpt-5-2025-08-07", 400_000, "o200k_base"),
        ("gpt-5.2-pro-2025-12-11", 400_000, "o200k_base"),
        ("gpt-5.4-mini", 400_000, "o200k_base"),
        ("gpt-5.5", 1_050_000, "o200k_base"),
        ("gpt-6.1-sol", 1_050_000, "o200k_base"),
        ("o1-2024-12-17", 200_000, "o200k_base"),
        ("o3-mini", 200_000, "o200k_base"),
        ("o4-mini", 200_000, "o200k_base"),
        ("claude-3-5-sonnet-20241022", 200_000, CLAUDE_3.name),
        ("anthropic/claude-3.5-sonnet:beta", 200_000, CLAUDE_3.name),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, CLAUDE_3.name),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-7-v1:0", 1_000_000, CLAUDE_4_7.name),
        ("claude-sonnet-4@20250514", 200_000, CLAUDE_3.name),
        ("claude-opus-4-6", 1_000_000, CLAUDE_3.name),
        ("claude-opus-5-5", 1_000_000, CLAUDE_4_7.name),
        ("~anthropic/claude-opus-latest", 200_000, CLAUDE_4_7.name),
        ("gemini-3-pro-preview", 1_048_576, "gemini estimate"),
        ("models/gemini-2.5-flash", 1_048_576, "gemini estimate"),
        ("deepseek/deepseek-chat", 131_072, "deepseek_v3"),
        ("us.deepseek.r1-v1:0", 65_536, "deepseek_v3"),
        ("accounts/fireworks/models/deepseek-v3p2", 128_000, "deepseek_v3"),
        ("deepseek-v4-pro", 1_000_000, "deepseek_v3"),
        ("meta-llama/Llama-3.3-70B-Instruct", 128_000, "llama3"),
        ("meta.llama3-1-8b-instruct-v1:0", 128_000, "llama3"),
        ("Meta-Llama-3_3-70B-Instruct", 128_000, "llama3"),
        ("ollama/llama3.1:8b", 128_000, "llama3"),
        ("Qwen/Qwen2.5-72B-Instruct", 32_768, "qwen3"),
        ("qwen.qwen3-coder-480b-a35b-v1:0", 131_072, "qwen3"),
        ("qwen3.8-max-0902", 991_808, "qwen3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 32_000, "mistral_v1"),
        ("mistral.mistral-large-2407-v1:0", 128_000, "mistral_v3"),
        ("moonshotai/Kimi-K2-Instruct", 131_072, "kimi_k2"),
        ("zai-org/GLM-4.7", 200_000, "glm4"),
        ("x-ai/grok-4-0709", 256_000, "grok estimate"),
        ("xai/grok-4.20-beta-0309-reasoning", 1_000_000, "grok estimate"),
        ("openai/gpt-oss-120b", 131_072, "o200k_base"),
    ],
)
def test_a_model_is_found_under_the_names_it_goes_by(name, window, counter):
    model = MODELS.find(name)
    assert model is not None
    assert (model.window, model.counter.name) == (window, counter)


@pytest.mark.parametrize(
    "name", ["", "   ", "my-finetune", "openrouter/auto", "gpt", "o9", "gpt-44", "gp", "llama", "/", ":", "😀"]
)
def test_what_is_not_known_is_not_found(name):
    assert MODELS.find(name) is None
    assert MODELS.get(name) is UNKNOWN


def test_a_name_that_only_begins_alike_is_not_taken_for_another():
    table = ModelTable((("gpt-4", ModelLimits(1, 1)), ("gpt-4o", ModelLimits(2, 1)), ("kimi*", ModelLimits(3, 1))))
    assert table.find("gpt-4o").window == 2
    assert table.find("gpt-4-0613").window == 1
    assert table.find("gpt-4x") is None
    assert ModelTable(table.rows[:1]).find("gpt-4o") is None
    assert table.find("kimix").window == 3


def test_every_row_of_the_table_is_possible_and_found_by_its_own_name():
    for pattern, model in MODELS.rows:
        assert plain_name(pattern) == pattern, "a row that no name can reach"
        assert 0 < model.reserve < model.window
        assert 0 <= model.input < model.window
        assert budget_for(pattern.removesuffix("*")).limit > 0
        assert MODELS.find(pattern.removesuffix("*")) is not None


def test_no_pattern_stands_twice():
    patterns = [pattern for pattern, _ in MODELS.rows]
    assert len(patterns) == len(set(patterns))


def test_an_extended_table_is_another_table_and_its_rows_win():
    mine = ModelLimits(65_536, 4_096, Encoding("qwen3"))
    table = MODELS.with_models({"Acme/My.Tune": mine, "gpt-4o": mine, "acme-*": mine})
    assert table.find("acme/my-tune-v2") is mine
    assert table.find("openai/gpt-4o-2024-08-06") is mine
    assert table.find("acme-x1") is mine
    assert table.find("gpt-4o-mini").window == 128_000
    assert counter_for("my.tune", table=table).name == "qwen3"
    assert MODELS.find("my-tune") is None


def test_one_memory_that_asks_for_its_counter_and_its_budget_hears_one_warning(caplog):
    with caplog.at_level(logging.WARNING, "pagein"):
        counter, budget = counter_for("nobody-knows"), budget_for("nobody-knows")
    assert counter is ANY_ESTIMATE
    assert budget.window == 32_768
    assert [record.name for record in caplog.records] == ["pagein"]
    assert "nobody-knows" in caplog.text
    assert "32768" in caplog.text
    with caplog.at_level(logging.WARNING, "pagein"):
        counter_for("nobody-knows")  # another memory is told too: nothing is remembered
    assert len(caplog.records) == 2


def test_a_known_model_is_not_warned_of(caplog):
    counter_for("gpt-4o")
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("gpt-4o", int((128_000 - 16_384) * 0.98)),
        ("gpt-5", int(272_000 * 0.98)),  # the provider takes no more input, whatever the answer needs
        ("gpt-5.4", int(922_000 * 0.98)),
        ("claude-sonnet-4-5", int((200_000 - 32_000) * 0.95)),
        ("gpt-4", int((8_192 - 2_048) * 0.98)),
        ("qwen3-32b", int((32_768 - 8_192) * 0.98)),
        ("nobody-knows", int((32_768 - 4_096) * 0.95)),
    ],
)
def test_the_budget_is_the_window_less_its_reserves(name, limit):
    assert budget_for(name).limit == limit


def test_what_the_host_says_wins_over_the_table():
    assert budget_for("gpt-4o", window=32_768).window == 32_768
    assert budget_for("gpt-4o", window=32_768).limit < 32_768
    assert budget_for("gpt-4o", output=1_000, tools=500, margin=0.0).limit == 126_500
    assert budget_for("gpt-5", output=1_000, margin=0.0).limit == 272_000
    assert budget_for("gpt-5", window=400_000, margin=0.0).limit == 272_000
    assert budget_for("gpt-5", window=200_000, margin=0.0).limit == 168_000
    assert budget_for("gpt-5", window=2_000_000, margin=0.0).limit == 1_968_000
    assert budget_for("nobody-knows", window=200_000, output=0, margin=0.0).limit == 200_000


def test_a_budget_with_nothing_left_is_refused():
    with pytest.raises(BudgetError):
        budget_for("gpt-4", tools=9_000)


def test_images_are_charged_by_the_models_own_rule():
    assert MODELS.get("gpt-4o-mini").counter.images is images.GPT_4O_MINI
    assert MODELS.get("gpt-4.1-nano").counter.images is images.NANO
    assert MODELS.get("claude-opus-4-8").counter.images is images.CLAUDE_HIGH

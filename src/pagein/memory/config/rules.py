"""What each key may be, and what it is for, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pagein.context.compaction.ladder import RUNGS
from pagein.context.compaction.registry import POLICIES
from pagein.log.paged_log import SYNCHRONOUS
from pagein.memory.options import MOST_SHARE, SHARE

TOKENS = 100_000_000
"""The most that any number of tokens may be; no window comes near."""

MANY = 1_000_000
"""The most that any other count may be."""

DAYS, DAY = 36_500, 86_400
NAME = r".*\S.*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line on a key, its range, and what its owner's types do not tell.

    ``above``: ``least`` itself is too little. ``form`` says in words what ``pattern`` asks of a text. ``kind`` and
    ``default`` stand where the owner has none. ``guarded``: a value with this in it says where a run or a key is sent,
    and is not taken from a file that nobody named.
    """

    says: str
    least: float = 0
    most: float = 1
    above: bool = False
    choices: tuple[str, ...] = ()
    form: str = ""
    pattern: str = r".*"
    kind: Literal["number", "switch", "text", "path", "list"] | None = None
    default: Any = None
    guarded: str = ""


def _share(says: str, *, above: bool = False) -> Rule:
    return Rule(says, above=above)


def _tokens(says: str, least: int = 0) -> Rule:
    return Rule(says, least, TOKENS)


def _count(says: str, least: int = 0) -> Rule:
    return Rule(says, least, MANY)


def _owner(says: str) -> Rule:
    return Rule(says, form="a name that is not empty", pattern=NAME)


_OPTIONS = {
    "session": Rule("The session that is recorded; names that begin with `pagein:facts:` are taken.", form="a name that does not begin with pagein:facts:", pattern=r"(?!pagein:facts:).*"),
    "tenant": Rule("Whose store it is; nothing of another tenant is ever seen."),
    "readonly": Rule("Write nothing; what leaves the view is remembered by this memory only."),
    "timeout": Rule("Seconds to wait for a busy store.", 0, DAY),
    "synchronous": Rule("How surely a write is on the disk when it returns.", choices=SYNCHRONOUS),
    "model": Rule("The run's model, which tokens are counted for; without it exactly, in o200k_base.", kind="text", form="the name of a model", pattern=NAME),
    "prompts": Rule("A folder of prompts in place of ours, beside the file that names it.", kind="path", form="the path of a folder", pattern=NAME),
    "page_in": Rule("Share of the budget for what left the view and comes back by itself; 0 for none.", 0, MOST_SHARE, default=SHARE),
    "embedder": Rule("Who finds by meaning; without one, by words.", kind="text", form="none, auto, minilm or openai:MODEL, which may go on as @URL#DIMENSION", pattern=r"none|auto|minilm|openai:\S+", default="none", guarded="@"),
    "user": _owner("Whose facts are read and shown."),
    "project": _owner("The project of the user whose facts are read and shown too."),
    "task": _owner("The task of the session whose facts are read and shown too."),
    "format": Rule("How requests are spelled.", choices=("openai", "anthropic", "openai-responses", "langchain"), default="openai"),
    "resume": Rule("Whether calls that were in flight are closed as unknown; fresh has the view start anew from here too.", kind="switch", choices=("fresh",), default=False),
}  # fmt: skip

_BUDGET = {
    "budget.window": _tokens("Tokens of the window, all of them the view's unless reserves are set; without it `model`'s, less its reserves.", 1),
    "budget.output": _tokens("Tokens kept for the answer."),
    "budget.tools": _tokens("Tokens kept for the tools' schemas."),
    "budget.margin": Rule("Share kept for counts that are estimates.", 0, 0.99),
    "budget.high": _share("Share of the limit above which a view is compacted.", above=True),
    "budget.low": _share("Share of the limit that it is compacted to; without it by the limit's size.", above=True),
    "budget.soft": _share("Share of the limit above which a model begins to write what will leave; without it half way.", above=True),
}  # fmt: skip

_POLICY = {
    "policy.name": Rule("What leaves, and in which order; without it tiers where a model writes summaries, else ladder.", kind="text", choices=tuple(POLICIES)),
    "policy.ladder.rungs": Rule("The policies it goes through, in this order.", kind="list", choices=tuple(each for each in POLICIES if each != "ladder"), default=tuple(each.name for each in RUNGS)),
    "policy.clip.share": _share("Share of the budget above which an observation is clipped.", above=True),
    "policy.mask.keep": _count("Actions whose observations stay."),
    "policy.mask.alone": Rule("Act only where masking brings the view down by itself; true as a rung of the ladder."),
    "policy.window.keep": _count("Actions that stay."),
    "policy.window.always": Rule("Act at every call, not only above the high mark."),
    "policy.prune.keep_last_n": _count("Actions whose observations stay."),
    "policy.prune.max_length": _count("Characters that older observations keep."),
    "policy.users.share": _share("Share of the limit that the user's earlier messages may have.", above=True),
    "policy.users.least": _share("Share of the limit that each of them keeps.", above=True),
    "policy.chat.share": _share("Share of the limit that many short messages may have.", above=True),
    "policy.chat.kept": _share("Share of the limit that the user's newest words keep.", above=True),
    "policy.chat.extract": _share("Share of the limit that the extract of the older ones has.", above=True),
    "policy.projection.recent": _share("Share of what is left that the newest steps keep.", above=True),
    "policy.rounds.tokens": _tokens("Tokens above which closed rounds become summaries.", 1),
    "policy.rounds.longest": _tokens("The most tokens of one summary.", 1),
    "policy.short_long.short": _share("Share for the newest steps; with `long` at most 1.", above=True),
    "policy.short_long.long": _share("Share for the summary."),
    "policy.rolling.every": _count("Actions after which the older ones are folded.", 1),
    "policy.rolling.keep": _count("Actions that stay."),
    "policy.rolling.share": _share("Share of the limit that all summaries have.", above=True),
    "policy.relevance.keep": _count("Actions that stay, where they are not too long."),
    "policy.relevance.share": _share("Share of the room for what is old that the extract of it has.", above=True),
    "policy.tiers.fewest": _count("Actions that stay whole after a compaction; at most `most`.", 1),
    "policy.tiers.most": _count("Actions that stay whole before one.", 1),
    "policy.tiers.episodes": _count("Episodes above which they become one archive.", 1),
    "policy.tiers.share": _share("Share of the limit that an episode's summary has.", above=True),
    "policy.tiers.relevant": _share("Share of the limit for steps behind the window that have most to do with now; 0 keeps none."),
}  # fmt: skip

_FACTS = {
    "facts.enabled": Rule("Facts on or off; without it on where a user, a project, a task or any key here is set.", kind="switch"),
    "facts.extract": Rule("Who takes facts from a run: a model where there is one, else rules; or nobody."),
    "facts.min_confidence": _share("Candidates below it are dropped."),
    "facts.debounce": Rule("Seconds without a new turn before a model is asked.", 0, 3_600),
    "facts.close_wait": Rule("Seconds for which closing waits for it.", 0, 3_600),
    "facts.tools": Rule("Read what tools returned too."),
    "facts.scopes": Rule("For whom extraction may state facts; never for the tenant.", choices=("task", "session", "project", "user")),
    "facts.categories": Rule("Categories beside those there are.", form="a list of short names", pattern=r"\s*\S.*"),
    "facts.placement": Rule("Where the block stands: in the run, where it came to matter; or at the head, chosen at the start of a run and at each compaction."),
    "facts.max_injection_tokens": _tokens("The most tokens of the block."),
    "facts.guaranteed": Rule("Categories that are shown before all others.", form="a list of categories", pattern=r"\s*\S.*"),
    "facts.guaranteed_share": _share("Share of the block that only they may have."),
    "facts.stale_days": Rule("Days after which a fact is to be looked at again.", 1, DAYS),
    "facts.weights.similarity": _share("Weight of similarity; with `confidence` 1."),
    "facts.weights.confidence": _share("Weight of confidence."),
    "facts.weights.recency": Rule("What a fresh confirmation adds at most, as a share.", 0, 0.5),
    "facts.weights.use": Rule("What being looked up often adds at most, as a share.", 0, 0.5),
    "facts.weights.half_life": Rule("Days after which a confirmation counts half.", 0, DAYS, above=True),
    "facts.capacity.max_facts": _count("Facts that one owner may have; 0 for no end."),
    "facts.capacity.confidence": _share("What confidence counts for staying; with `freshness` and `use` 1."),
    "facts.capacity.freshness": _share("What freshness counts for staying."),
    "facts.capacity.use": _share("What use counts for staying."),
    "facts.capacity.half_life": Rule("Days after which freshness is half.", 0, DAYS, above=True),
    "facts.capacity.protected": _share("Share of all that corrections and constraints may be and still leave last."),
}  # fmt: skip

_SUMMARIZER = {
    "summarizer.model": Rule("The model that writes summaries and facts.", kind="text", form="maker:model, as openai:gpt-4o-mini", pattern=r"[^:\s]+:\s*\S.*"),
    "summarizer.base_url": Rule("Another server for it.", form="an address that begins with http:// or https://", pattern=r"https?://\S+", guarded="."),
    "summarizer.window": _tokens("Tokens of its window; 0 looks its name up."),
    "summarizer.key_variable": Rule("The environment variable that holds its key. Never the key.", form="the name of an environment variable, in capitals", pattern=r"[A-Z_][A-Z0-9_]{0,99}", guarded="."),
    "summarizer.stream": Rule("Ask for a stream, for servers that cut a silent connection."),
    "summarizer.options": Rule("Fields of each request's body, as `temperature`; as JSON in its variable."),
    "summarizer.waits.attempts": Rule("Attempts in all.", 1, 100),
    "summarizer.waits.first": Rule("Seconds of the first pause.", 0, DAY),
    "summarizer.waits.factor": Rule("How many times as long each pause is as the one before.", 1, 100),
    "summarizer.waits.most": Rule("The most seconds of a pause.", 0, DAY),
    "summarizer.waits.longest": Rule("Seconds that a provider may ask us to wait; beyond it the ask ends.", 0, DAY),
    "summarizer.waits.attempt": Rule("The most seconds of one attempt; without it all that is left.", 0, DAY, above=True),
    "summarizer.breaker.failures": _count("Asks that fail in a row until the model is left alone.", 1),
    "summarizer.breaker.cool_down": Rule("Seconds for which it is left alone.", 0, DAY),
    "summarizer.spending.tokens": Rule("The most tokens a memory may spend on it, input and output.", 0, 10**12),
    "summarizer.spending.money": Rule("The most money, in the currency of its price.", 0, 10**9),
    "summarizer.price.input": Rule("Money for a million tokens of input.", 0, MANY),
    "summarizer.price.output": Rule("Money for a million tokens of output.", 0, MANY),
    "summarizer.price.cached": Rule("Money for a million tokens of input that were cached; without it as other input.", 0, MANY),
}  # fmt: skip

_CHECKPOINTS = {
    "checkpoints.every": _count("Steps after which one is made unasked; 0 for never."),
    "checkpoints.compaction": Rule("Make one behind each compaction."),
    "checkpoints.close": Rule("Make one at close, where something was recorded."),
}  # fmt: skip

RULES: Mapping[str, Rule] = MappingProxyType(
    {**_OPTIONS, **_BUDGET, **_POLICY, **_FACTS, **_SUMMARIZER, **_CHECKPOINTS}
)
"""The rule of every key, under its name."""

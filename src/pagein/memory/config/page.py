"""``docs/configuration.md``, written from the keys: nothing of it is kept by hand."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from pagein.memory.config.keys import IN_CODE, KEYS, SHORT, Key

EXAMPLE = """\
model = "gpt-4o"
embedder = "auto"
user = "alice"
budget = 80_000

[policy]
name = "tiers"
tiers.most = 12

[facts]
max_injection_tokens = 1_500
weights = { similarity = 0.7, confidence = 0.3 }

[summarizer]
model = "openai:gpt-4o-mini"
waits.attempts = 3
spending.tokens = 500_000
"""
"""A file that shows every way to say something; a test loads it."""

_HEAD = f"""\
# Configuration

Written by `pagein config --docs` from the code; a test holds it to that.

Everything that can be set has a key, in a `pagein.toml` or under `[tool.pagein]` in a `pyproject.toml`:

```text
{EXAMPLE}```

```python
from pathlib import Path

from pagein import AgentMemory
from pagein.memory.config import load

Path("pagein.toml").write_text('budget = 8_000\\npolicy = "window"\\n')
config = load(environ={{"PAGEIN_BUDGET_HIGH": "0.9"}})
with AgentMemory.open(":memory:", **config.options()) as memory:
    assert (memory.budget.window, memory.budget.high) == (8_000, 0.9)
```

* **Which file.** `load(path)` reads that one. `load()` looks from the working folder upwards, in each folder for
  `pagein.toml`, then for `[tool.pagein]`; the first one holds, alone. No file is no error. `AgentMemory.open` reads none
  by itself; `pagein view`, `replay`, `recall` and `facts` take what they are not told from it.
* **Over it, the environment**: `PAGEIN_` and the key in capitals with `_` for each dot, as `PAGEIN_BUDGET_WINDOW`. A
  list is separated by commas. A variable that is empty is not set; one whose name is near to a key's is refused, any
  other is not ours.
* **One value for a section**: {{short}}.
* **All or nothing.** An unknown key names the nearest; a wrong value is a `ConfigurationError` with the file or the
  variable, the key, the value and what it may be. Nothing is taken from a file with an error in it.
* **No keys.** API keys, passwords and tokens are read from the environment by who needs them; in a file they are refused.
  And a file that was only found may not say where keys and runs are sent: `summarizer.base_url`,
  `summarizer.key_variable` and an embedder's `@URL` need a file that is named, or their variable.
* `pagein config` shows what holds, and from where; `--json` for machines.

```sh
pagein config
```
"""

_TITLES = {
    "": ("The memory", ""),
    "budget": ("Budget", "Without `window` the rest is taken over from the window of `model`."),
    "policy": (
        "Policy",
        "`[policy.NAME]` is for the policy of that name, whether it is alone or a rung of the ladder.",
    ),
    "facts": ("Facts", "Any key but `enabled = false` turns facts on."),
    "summarizer": (
        "Summarizer",
        "A spend limit is for one memory. `price` is for `spending.money`.",
    ),
    "checkpoints": ("Checkpoints", ""),
}


def page() -> str:
    """The whole page, as Markdown."""
    short = ",\n  ".join(f"`{name} = ...` is `{long} = ...`" for name, long in SHORT.items())
    parts = [_HEAD.replace("{short}", short)]
    for section, keys in groupby(KEYS.values(), lambda key: key.name.rpartition(".")[0].partition(".")[0]):
        title, says = _TITLES[section]
        parts.append("\n".join([f"## {title}", "", *([says, ""] if says else []), *_table(keys), ""]))
    rest = "\n".join(f"* `{name}`: {says}." for name, says in IN_CODE.items())
    parts.append(
        "## In code only\n\n"
        f"{rest}\n* Objects in place of names: a policy, a model, an embedder of your own.\n"
    )
    return "\n".join(parts)


def _table(keys: Iterable[Key]) -> list[str]:
    rows = [
        f"| `{key.name}` | {key.rule.says} | {key.allowed} | {told(key.default) or 'none'} |" for key in keys
    ]
    return ["| key | | may be | default |", "|---|---|---|---|", *rows]


def told(value: Any) -> str:
    """A value in one line, as a file has it, texts without their quotes; "" for none."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)

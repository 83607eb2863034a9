"""Render ``docs/configuration.md`` from the keys."""

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
"""An example with every form of a setting; a test loads it."""

_HEAD = f"""\
# Configuration

This page lists every option, with its allowed values and its default. `pagein config --docs` prints it. Write options in a
`pagein.toml`, or under `[tool.pagein]` in a `pyproject.toml`:

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

* **Which file.** `load(path)` reads that file. `load()` searches from the working folder upwards, in each folder for
  `pagein.toml`, then for `[tool.pagein]` in `pyproject.toml`. Only the first file found is used. A file is optional.
  The commands take defaults from it. `AgentMemory.open` reads no file by itself.
* **The environment overrides the file.** A variable is `PAGEIN_` and the key in capitals, with `_` for each dot, such as
  `PAGEIN_BUDGET_WINDOW`. Commas separate the items of a list. An empty variable counts as unset. A misspelled PAGEIN_
  variable raises an error. Other variables are ignored.
* **One value for a section**: {{short}}.
* **Errors.** The error for an unknown key suggests the nearest one. A wrong value raises `ConfigurationError` with the
  file or variable, the key, the value and the allowed values. If a file has an error, nothing in it is used.
* **No secrets.** API keys, passwords and tokens are refused in a file: set them in the environment. A file that was found
  by search may not say where keys and runs are sent: set `summarizer.base_url`, `summarizer.key_variable` and an
  embedder's `@URL` in a file that you name, or in their variables.
* `pagein config` shows each value and its source; `--json` prints it for programs.

```sh
pagein config
```
"""

_TITLES = {
    "": ("The memory", ""),
    "budget": ("Budget", "Without `window`, the window of `model` less its reserves is used."),
    "policy": ("Policy", "`[policy.NAME]` configures the policy of that name, alone or as part of the ladder."),
    "facts": ("Facts", "Every key but `enabled = false` turns facts on."),
    "summarizer": ("Summarizer", "A spend limit applies to one memory. `price` requires `spending.money`."),
    "tool_rules": ("Rules for tools", "`clip` is a table, `clip = { search = 500 }`; in the environment it is JSON."),
    "checkpoints": ("Checkpoints", ""),
    "server": (
        "Server",
        "For `pagein serve`, see [proxy.md](proxy.md). `--upstream` and the other flags override them.",
    ),
}


def render_page() -> str:
    """Render the whole page as Markdown."""
    short = ",\n  ".join(f"`{name} = ...` is `{long} = ...`" for name, long in SHORT.items())
    parts = [_HEAD.replace("{short}", short)]
    for section, keys in groupby(KEYS.values(), lambda key: key.name.rpartition(".")[0].partition(".")[0]):
        title, note = _TITLES[section]
        parts.append("\n".join([f"## {title}", "", *([note, ""] if note else []), *_table(keys), ""]))
    rest = "\n".join(f"* `{name}`: {doc}." for name, doc in IN_CODE.items())
    parts.append(f"## In code only\n\n{rest}\n* Objects instead of names: your own policy, model or embedder.\n")
    return "\n".join(parts)


def _table(keys: Iterable[Key]) -> list[str]:
    rows = [
        f"| `{key.name}` | {key.doc} | {key.constraint.allowed_values} | {format_value(key.default) or 'none'} |"
        for key in keys
    ]
    return ["| key | | allowed | default |", "|---|---|---|---|", *rows]


def format_value(value: Any) -> str:
    """Format a value as a file has it, on one line, texts without quotes; "" for None."""
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

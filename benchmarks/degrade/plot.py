"""Success and cost against the budget share, by policy, as a picture. Needs matplotlib, which is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.degrade.contexts import FULL, RIVALS, SLIDING
from benchmarks.degrade.measure import Played, averages
from pagein.errors import ConfigurationError

CURE: Final = "pip install 'pagein[plot]'"
PANELS: Final = (
    ("success", "runs that succeed, of all", "{:.0%}"),
    ("steps", "steps, with full context = 1", "{:.2f}"),
    ("cost", "cost without a cache, full context = 1", "{:.2f}"),
    ("cost_cached", "cost with a prompt cache, full context = 1", "{:.2f}"),
)
"""What each panel shows, and how its axis is called."""


def check_plot(path: Path) -> None:
    """Raises ConfigurationError where no picture could be written there: no matplotlib, no folder, another kind of file."""
    if find_spec("matplotlib") is None:
        raise ConfigurationError(f"--plot needs matplotlib: {CURE}")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ConfigurationError(f"--plot writes .png, .svg or .pdf, not {path.name!r}")
    if not path.parent.is_dir():
        raise ConfigurationError(f"--plot: there is no folder {path.parent}")


def write_plot(played: Sequence[Played], path: Path) -> None:
    """Write the picture: one line for each policy in each panel. Raises ConfigurationError."""
    check_plot(path)
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and slow to import

    figure = Figure(figsize=(12, 9), layout="constrained")
    panels = figure.subplots(2, 2)
    shares = sorted({each.share for each in played if each.policy != FULL}, reverse=True)
    policies = list(dict.fromkeys(each.policy for each in played if each.policy != FULL))
    for axes, (figure_name, title, form) in zip(panels.flat, PANELS, strict=True):
        axes.axhline(1.0, color="black", linewidth=1, linestyle=":", label=FULL)
        for number, policy in enumerate(policies):
            values = [_value(played, policy, share, figure_name) for share in shares]
            # Beside one another, so that equal policies are all seen.
            places = [at + (number - len(policies) / 2) * 0.014 for at in range(len(shares))]
            axes.plot(places, values, label=policy, **_look(policy, number, policies))
        _dress(axes, shares, title, form)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    figure.suptitle(_caption(played))
    figure.savefig(path, dpi=110)


def _value(played: Sequence[Played], policy: str, share: float, name: str) -> float | None:
    return averages(each for each in played if (each.policy, each.share) == (policy, share)).get(name)


def _look(policy: str, number: int, policies: Sequence[str]) -> dict[str, Any]:
    """Dashed grey-scale for what others do, colour for ours, bold for the default."""
    theirs = (SLIDING, *RIVALS)
    markers = "osD^vP*Xhp<>"
    if policy in theirs:
        shade = ("0.25", "0.45", "0.62")[theirs.index(policy)]
        return {"color": shade, "linestyle": "--", "marker": markers[theirs.index(policy)], "markersize": 5}
    ours = [policy for policy in policies if policy not in theirs]
    return {
        "color": f"C{ours.index(policy) % 10}",
        "linewidth": 3 if policy == "ladder" else 1.4,
        "marker": markers[number % len(markers)],
        "markersize": 6,
        "zorder": 3 if policy == "ladder" else 2,
    }


def _dress(axes: Any, shares: Sequence[float], title: str, form: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xticks(range(len(shares)), [f"1/{1 / share:g}" for share in shares])
    axes.set_xlim(-0.15, max(0.5, len(shares) - 1 + 0.15))
    if title.startswith("cost with a"):
        # Without a stable prefix it is many times as dear: only a logarithm shows the rest as well.
        axes.set_yscale("log")
        axes.set_yticks([0.25, 0.5, 1, 2, 4, 8, 16])
        axes.minorticks_off()
    else:
        axes.set_ylim(bottom=-0.02)
    axes.yaxis.set_major_formatter(lambda value, _: form.format(value))
    axes.set_xlabel("budget, of the longest request with full context")
    axes.grid(axis="y", alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _caption(played: Sequence[Played]) -> str:
    lengths = sorted({each.length for each in played})
    worlds = list(dict.fromkeys(each.world for each in played))
    runs = sum(each.policy == FULL for each in played)
    return f"Scripted agents, {', '.join(worlds)}; lengths {', '.join(map(str, lengths))}; {runs} runs a point"

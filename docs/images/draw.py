"""Draw the pictures of the docs: ``python docs/images/draw.py`` writes the SVG files beside it.

A picture is a list of boxes, labels and arrows, in pixels. Colours are readable on a white and on a dark page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent
FONT = "font-family='Helvetica, Arial, sans-serif'"
PAINT: Mapping[str, str] = {
    "system": "#c9b8f0", "user": "#a9c9f5", "step": "#d9dde3", "old": "#eceef1", "extract": "#f6d58a",
    "pagein": "#a8dcb5", "fact": "#f3b8b0", "log": "#d9dde3",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle with a text in its middle."""

    x: int
    y: int
    width: int
    height: int
    text: str
    paint: str = "step"


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; ``weight`` bold for a title."""

    x: int
    y: int
    text: str
    weight: Literal["normal", "bold"] = "normal"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A straight arrow from one point to another."""

    x1: int
    y1: int
    x2: int
    y2: int


Shape = Box | Label | Arrow


def draw_shape(shape: Shape) -> str:
    """One shape as SVG."""
    match shape:
        case Box():
            middle = f"x='{shape.x + shape.width // 2}' y='{shape.y + shape.height // 2 + 4}'"
            return (
                f"<rect x='{shape.x}' y='{shape.y}' width='{shape.width}' height='{shape.height}' rx='4' "
                f"fill='{PAINT[shape.paint]}' stroke='#8a9099'/>"
                f"<text {middle} {FONT} font-size='12' text-anchor='middle' fill='#1c2026'>{escape(shape.text)}</text>"
            )
        case Label():
            return (
                f"<text x='{shape.x}' y='{shape.y}' {FONT} font-size='13' font-weight='{shape.weight}' "
                f"fill='#1c2026'>{escape(shape.text)}</text>"
            )
        case Arrow():
            ends = f"x1='{shape.x1}' y1='{shape.y1}' x2='{shape.x2}' y2='{shape.y2}'"
            return f"<line {ends} stroke='#5b626c' stroke-width='1.5' marker-end='url(#tip)'/>"
    assert_never(shape)


def draw_picture(title: str, width: int, height: int, shapes: Sequence[Shape]) -> str:
    """A picture on a white ground, with its title for readers that do not see it."""
    tip = (
        "<marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' orient='auto'>"
        "<path d='M0 0 L8 4 L0 8 z' fill='#5b626c'/></marker>"
    )
    body = "\n".join(draw_shape(shape) for shape in shapes)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        f"role='img'>\n<title>{escape(title)}</title>\n<defs>{tip}</defs>\n"
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>\n{body}\n</svg>\n"
    )


def stack(x: int, y: int, width: int, rows: Sequence[tuple[int, str, str]]) -> list[Shape]:
    """Boxes on top of one another: the height, the text and the paint of each."""
    shapes: list[Shape] = []
    for height, text, paint in rows:
        shapes.append(Box(x, y, width, height, text, paint))
        y += height + 3
    return shapes


def draw_request() -> str:
    """The request of examples/openai_loop.py before and after."""
    before = [(22, "system prompt", "system"), (22, "task", "user")]
    before += [(24, f"page {page}", "step") for page in (1, 2, 3)]
    before += [(70, "pages 4 to 37", "step")] + [(24, f"page {page}", "step") for page in (38, 39, 40)]
    after = [(22, "system prompt", "system"), (22, "task", "user")]
    after += [(60, "pages 1 to 37: one extract, with handles", "extract")]
    after += [(40, "pages 38 to 40 and the newest step", "step"), (24, "page-in: lines needed now", "pagein")]
    return draw_picture(
        "A request before and after: 15,710 tokens of history become a request of 5,283 tokens",
        700, 330,
        [
            Label(20, 26, "Recorded: 15,710 tokens", "bold"),
            *stack(20, 40, 250, before),
            Label(400, 26, "Sent: 5,283 tokens (budget 6,000)", "bold"),
            *stack(400, 40, 280, after),
            Arrow(275, 150, 395, 150), Label(300, 140, "each turn"),
            Label(400, 252, "The model's window never overflows."), Label(400, 272, 'Nothing is deleted: expand("s6")'),
            Label(400, 292, "gives page 3 back, word for word."),
        ],
    )  # fmt: skip


def draw_log_and_view() -> str:
    """The log is append-only; the view is computed from it."""
    return draw_picture(
        "Every step is appended to the log; the view is computed from the log and fits the budget",
        700, 190,
        [
            Label(20, 26, "The log: every step, on disk, never changed", "bold"),
            *[Box(20 + 62 * step, 40, 56, 34, f"s{step}", "log") for step in range(10)],
            Box(644, 40, 36, 34, "+", "old"),
            Label(20, 112, "The view: what the model is sent", "bold"),
            Box(20, 126, 56, 34, "s0", "system"), Box(82, 126, 300, 34, "extract of s1-6", "extract"),
            Box(392, 126, 56, 34, "s7", "step"), Box(454, 126, 56, 34, "s8", "step"), Box(516, 126, 56, 34, "s9", "step"),
            Box(578, 126, 102, 34, "page-in", "pagein"),
            Arrow(230, 78, 230, 122), Arrow(420, 78, 420, 122), Arrow(482, 78, 482, 122), Arrow(544, 78, 544, 122),
        ],
    )  # fmt: skip


def draw_tiers() -> str:
    """What leaves first when a view grows over the budget."""
    names = [
        ("1  clip results that are very long", "step"), ("2  drop the thinking of finished turns", "step"),
        ("3  clip the user's longest old words", "user"), ("4  fold the oldest talk into one extract", "extract"),
        ("5  fold older steps into one extract", "extract"), ("6  the fallback, which always fits", "old"),
    ]  # fmt: skip
    shapes: list[Shape] = [Label(20, 26, "Cheap before dear, all in one pass", "bold")]
    shapes += [Box(20 + 30 * at, 40 + 36 * at, 330, 30, text, paint) for at, (text, paint) in enumerate(names)]
    shapes += [
        Label(460, 60, "Stop as soon as the view"),
        Label(460, 78, "is at the low mark."),
        Label(20, 290, "Every step that leaves keeps a handle."),
    ]
    return draw_picture("The default policy works through six levels until the view is small enough", 700, 310, shapes)


def draw_page_in() -> str:
    """How an old step comes back."""
    return draw_picture(
        "Old lines that are likely needed are added behind the newest step, and stay there until the next compaction",
        700, 190,
        [
            Label(20, 26, "Steps left the view, or the user asked", "bold"),
            Box(20, 40, 200, 40, "the newest step and words", "step"), Arrow(222, 60, 268, 60),
            Box(270, 40, 150, 40, "search and scoring", "old"), Arrow(422, 60, 468, 60),
            Box(470, 40, 210, 40, "lines, names, whole turns", "pagein"),
            Box(270, 120, 150, 40, "the log", "log"), Arrow(345, 118, 345, 84),
            Arrow(575, 84, 575, 118), Box(470, 120, 210, 40, "end of the request", "step"),
            Label(20, 130, "It stays where it was first shown"), Label(20, 148, "until the next compaction, so the"),
            Label(20, 166, "provider's cache keeps it."),
        ],
    )  # fmt: skip


def draw_ledger() -> str:
    """What was said once and still holds."""
    return draw_picture(
        "Rules, decisions and values stay in a block of the view when their steps leave; a newer value replaces the old one",
        700, 220,
        [
            Label(20, 26, "Said in the run", "bold"),
            *stack(20, 40, 270, [
                (30, 's3 user: "Never push to main."', "user"), (30, 's9 user: "The limit is 500 euros."', "user"),
                (30, "s10 to s80: other talk", "old"), (30, 's81 user: "Make the limit 700."', "user"),
            ]),
            Arrow(294, 104, 376, 104),
            Label(380, 26, "The ledger, once these steps left", "bold"),
            *stack(380, 40, 300, [
                (30, "s3 Never push to main.", "fact"), (30, "s81 Make the limit 700. (replaces s9)", "fact"),
            ]),
            Label(380, 130, "The words stay as they were said."), Label(380, 150, "What a tool or a pasted text says"),
            Label(380, 170, "never gets in."),
            Label(20, 200, "It has a share of the budget of its own. unpin(handle) drops an entry."),
        ],
    )  # fmt: skip


COST_TOKENS = (1.6, 2.4, 3.2, 4.0, 4.8, 5.6, 3.0, 3.8, 4.6, 5.4, 3.1, 3.9)
"""Thousands of tokens of the requests in the picture of the cost; where they fall there was a compaction."""


def draw_cost() -> str:
    """Requests of a run: what the provider's cache has, and what it must read."""
    shapes: list[Shape] = [Label(20, 26, "Tokens of each request", "bold")]
    bottom, scale, before = 190, 25, 0.0
    for at, tokens in enumerate(COST_TOKENS):
        is_compaction = tokens < before
        cached = 0.9 if is_compaction else before
        height, cached_height = int(tokens * scale), int(cached * scale)
        x = 20 + 34 * at
        shapes.append(Box(x, bottom - height, 28, height - cached_height, "", "extract" if is_compaction else "step"))
        if cached_height:
            shapes.append(Box(x, bottom - cached_height, 28, cached_height, "", "pagein"))
        before = tokens
    shapes += [
        Box(460, 52, 28, 20, "", "pagein"), Label(498, 67, "begins like the request before:"),
        Label(498, 84, "cached, a tenth of the price"),
        Box(460, 102, 28, 20, "", "step"), Label(498, 117, "new since then"),
        Box(460, 140, 28, 20, "", "extract"), Label(498, 155, "a compaction: written again once,"),
        Label(498, 172, "then every request is shorter"),
    ]  # fmt: skip
    return draw_picture(
        "Each request begins with the previous one until a compaction, which makes the later requests shorter",
        720,
        210,
        shapes,
    )


def draw_facts() -> str:
    """What outlives a run."""
    return draw_picture(
        "Facts are read from what a user says, belong to that user, and are shown in later runs",
        700, 170,
        [
            Label(20, 26, "Monday's run", "bold"), Box(20, 40, 200, 40, '"I prefer pytest."', "user"),
            Arrow(222, 60, 258, 60), Box(260, 40, 180, 40, "fact of user alice", "fact"), Arrow(442, 60, 478, 60),
            Label(480, 26, "Tuesday's run", "bold"), Box(480, 40, 200, 40, "<memory> block", "fact"),
            Label(20, 120, "A pin lasts for the run and stays word for word. A ledger entry is a rule or value that was said"),
            Label(20, 140, "in the run. A fact outlives the run and belongs to a user, project, task or tenant."),
        ],
    )  # fmt: skip


PICTURES = {
    "request": draw_request, "log-and-view": draw_log_and_view, "tiers": draw_tiers, "page-in": draw_page_in,
    "ledger": draw_ledger, "facts": draw_facts, "cost": draw_cost,
}  # fmt: skip


def main() -> None:
    """Write every picture."""
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()

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
        "Old lines that match the newest words are added at the end of the request",
        700, 190,
        [
            Box(20, 40, 200, 40, "the newest step and words", "step"), Arrow(222, 60, 268, 60),
            Box(270, 40, 150, 40, "search and scoring", "old"), Arrow(422, 60, 468, 60),
            Box(470, 40, 210, 40, "lines, names, whole turns", "pagein"),
            Box(270, 120, 150, 40, "the log", "log"), Arrow(345, 118, 345, 84),
            Arrow(575, 84, 575, 118), Box(470, 120, 210, 40, "end of the request", "step"),
            Label(20, 26, "Each request", "bold"), Label(20, 140, "It is computed again for each"),
            Label(20, 158, "request and never recorded."),
        ],
    )  # fmt: skip


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
    "facts": draw_facts,
}  # fmt: skip


def main() -> None:
    """Write every picture."""
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()

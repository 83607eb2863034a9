"""Measure the readability of the code: names, docstrings, sizes, files entered by a call.

Run ``python -m tests._support.shape``.
"""

from __future__ import annotations

import ast
import functools
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pagein

SOURCE = Path(pagein.__file__).parent

PARTICIPLES = frozenset(
    """
    asked answered applied begun born bound broken brought built called carried caught chosen cleaned closed come
    composed counted covered cut dated derived done drawn drawn_up dropped due embedded emptied ended erased expanded
    extracted failed fallen fed felt filled filtered fitted folded followed forgotten formed found framed fused gathered
    given gone grown grouped guessed handed healed heard held hidden hooked indexed joined judged kept known laid learnt
    led left lessened let linked listed loaded looked lost made mapped marked masked matched measured meant mended merged
    met missed moved named needed normalised noted numbered observed offered opened ordered owed packed paged paired
    parsed parted passed paused picked placed planned played pruned put quoted ranked read reached recalled recorded
    redacted relinked rendered repaired replayed reported restored resumed retained returned reworded rewritten ruled run
    said sampled saved scored scrubbed sealed seen sent set settled shaped shared shortened shown shrunk sorted spelled
    split spoken stated stored stood stripped stubbed summarised swapped taken taught tested thought thrown tiled told
    tried trimmed turned typed undone unheard unmarked unpacked unpinned unsaid used verified walked wanted warned
    watched weighed withdrawn worked wrapped written undisturbed thrown_away dumped checked
    """.split()  # noqa: SIM905 - easier to read
)
"""Participles: as the whole name of a function, they say neither its action nor its result."""

VAGUE = frozenset(
    """
    each found held given kept made told said asked done gone known left laid seen shown spoken stood taken heard drawn
    chosen wanted looked put written sent met begun
    """.split()  # noqa: SIM905 - easier to read
)
"""Names of locals that do not name their element."""

QUESTIONS = ("What", "Whether", "Who", "How", "Where", "Which", "When")
"""First words of docstrings that do not name their subject."""


@functools.cache
def tree(path: Path) -> ast.Module:
    """Parse a file."""
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's tree: several figures look at all of them."""
    return tuple(ast.walk(tree(path)))


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(SOURCE.rglob("*.py"))


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function and method of the package, with its file."""
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def is_participle(name: str) -> bool:
    """True for a name that consists of one participle."""
    bare = name.strip("_")
    return bare in PARTICIPLES or (
        "_" not in bare and bare.endswith("ed") and bare not in ("need", "speed", "feed", "seed", "embed")
    )


def participle_share() -> float:
    """The share of functions named by a bare participle."""
    names = [node.name for _, node in functions()]
    return sum(map(is_participle, names)) / len(names)


def vague_share() -> float:
    """The share of names read that are vague locals."""
    names = [
        node.id
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    return sum(name in VAGUE for name in names) / len(names)


def docstrings() -> Iterator[tuple[Path, str]]:
    """Yield every docstring, with its file."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in modules():
        for node in nodes(path):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield path, text


def question_share() -> float:
    """The share of docstrings that begin with a question word."""
    texts = [text for _, text in docstrings()]
    return sum(text.split()[0].strip(",.:") in QUESTIONS for text in texts) / len(texts)


def repeated_classes() -> dict[str, list[str]]:
    """Classes defined more than once, with their modules, outside evaluation and testing."""
    places = defaultdict(list)
    for path in modules():
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(("evaluation/", "testing/")):
            continue
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    return {name: modules for name, modules in sorted(places.items()) if len(modules) > 1}


def lines() -> int:
    """The number of lines of Python in the wheel."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in modules())


def unread_constants() -> set[str]:
    """The constants of modules that no code of the package reads: an edit may leave one, and its docs, behind."""
    constants, read = set[str](), set[str]()
    for path in SOURCE.rglob("*.py"):
        targets = (target for node in tree(path).body if isinstance(node, ast.Assign) for target in node.targets)
        constants |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
        for node in nodes(path):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read.add(node.id)
            elif isinstance(node, ast.Attribute | ast.alias):
                read.add(node.attr if isinstance(node, ast.Attribute) else node.name)
    return {name for name in constants - read if not name.startswith("__")}


def top_entries() -> list[str]:
    """The top-level folders and modules of the package, without ``__init__`` and ``__main__``."""
    ignored = ("__init__.py", "__main__.py", "py.typed", "__pycache__")
    return sorted(path.name for path in SOURCE.iterdir() if path.name not in ignored)


def files_entered(call: Callable[[], object]) -> list[str]:
    """Run a call; return the files of the package that it enters."""
    entered: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "call":
            entered[frame.f_code.co_filename] += 1

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(str(Path(file).relative_to(SOURCE)) for file in entered if file.startswith(str(SOURCE)))


def warm_memory(folder: Path) -> pagein.AgentMemory:
    """Open a memory on a file with a few turns, so that later calls load nothing for the first time."""
    memory = pagein.AgentMemory.open(folder / "run.db", budget=8_000)
    memory.record(pagein.SystemPromptStep("You are terse."), pagein.TaskStep("Fix the failing test."))
    for number in range(4):
        call = pagein.ToolCall(f"call-{number}", "run", '{"command":"pytest"}')
        memory.record(pagein.ActionStep("I run it.", (call,), (pagein.Observation(f"call-{number}", "1 failed"),)))
        memory.view()
    return memory


def figures() -> dict[str, str]:
    """All measurements, by description."""
    top = top_entries()
    with tempfile.TemporaryDirectory() as folder, warm_memory(Path(folder)) as memory:
        recording = files_entered(lambda: memory.record(pagein.TaskStep("And now?")))
        viewing = files_entered(memory.view)
    return {
        "entries at the top / loose modules": f"{len(top)} / {sum(name.endswith('.py') for name in top)}",
        "functions named by a bare participle": f"{participle_share():.3f}",
        "vague locals of all names": f"{vague_share():.3f}",
        "docstrings that begin with a question word": f"{question_share():.3f}",
        "class names with two meanings": f"{len(repeated_classes())}",
        "files entered by recording a message / by a view": f"{len(recording)} / {len(viewing)}",
        "lines in the wheel": f"{lines():,}",
    }


if __name__ == "__main__":
    for description, figure in figures().items():
        print(f"{description:55} {figure}")  # noqa: T201
    if "--classes" in sys.argv:
        for class_name, class_modules in repeated_classes().items():
            print(class_name, *class_modules)  # noqa: T201

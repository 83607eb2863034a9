"""A debugging hunt: many suspects, misleading leads, one culprit, which is found last whoever looks.

A suspect that was probed without effect is ruled out; probing it again is a repeated dead end. The task says what may
never be probed, and what the repair has to name; the failing case is shown at the start and needed at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from benchmarks.degrade.prose import Score, Writer, opening
from benchmarks.degrade.reader import Act, Decision, Patterns, ReadFacts
from pagein.evaluation.requests import Wire

_NAME = r"([a-z]+/[a-z]+_\d+\.c)"

PATTERNS: Patterns = (
    ("ticket", re.compile(r"Every repair names the ticket (TCK-\d+)")),
    ("frozen", re.compile(r"Never probe a file under ([a-z]+)/")),
    ("suspect", re.compile(rf"^(?:[>!] )?suspect {_NAME}")),
    ("case", re.compile(r"failing case is (case-\d+)")),
    ("looked", re.compile(rf"\bsource {_NAME}$")),
    ("lead", re.compile(rf"the same state as {_NAME}")),
    ("lead", re.compile(rf"blamed {_NAME}")),
    ("lead", re.compile(rf"suspicious: {_NAME}")),
    ("out", re.compile(rf"\bprobe {_NAME}$")),
    ("out", re.compile(rf"still fails without {_NAME}")),
    ("out", re.compile(rf"{_NAME} is ruled out")),
    ("gone", re.compile(rf"failure is gone without {_NAME}")),
)

SYSTEM = (
    "You debug a program written in C. Use the tool `shell`; its commands are `reproduce`, `suspects`, `source FILE`, "
    "`probe FILE` (builds the program without the file's last change, and runs the test) and "
    "`repair FILE CASE TICKET`."
)


@dataclass(slots=True)
class Hunt:
    """The program: its suspects, what their sources show, and what was tried so far."""

    task: str
    suspects: tuple[str, ...]
    sources: dict[str, str]
    logs: dict[str, tuple[str, ...]]
    listing: str
    report: str
    case: str
    ticket: str
    frozen: str
    score: Score = field(default_factory=Score)
    probed: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    culprit: str = ""

    @property
    def opening(self) -> tuple[Wire, ...]:
        """The first messages of a run."""
        return opening(SYSTEM, self.task)

    @property
    def is_finished(self) -> bool:
        """True once something was repaired: there is nothing left to do."""
        return any(each.startswith("repair") for each in self.done)

    def act(self, act: Act) -> str:
        """Run a command and return its output."""
        command = act.arguments.get("command", "")
        verb, *rest = command.split()
        known = command in self.done
        self.done.add(command)
        match verb, rest:
            case "probe", [name] if name in self.logs:
                return self._probe(name, known=known)
            case "repair", [name, case, *ticket]:
                self.score.drift += ticket != [self.ticket]
                self.score.success = (name, case, ticket) == (self.culprit, self.case, [self.ticket])
                return "The repair was handed in."
            case "source", [name] if name in self.sources:
                result = self.sources[name]
            case "suspects", []:
                result = self.listing
            case "reproduce", []:
                result = self.report
            case _:
                return f"No such command or file: {command}"
        self.score.again += known
        return result

    def answer(self, text: str) -> None:
        """Take an answer; none is asked for."""

    def _probe(self, name: str, *, known: bool) -> str:
        self.score.drift += name.startswith(self.frozen)
        if known and name != self.culprit:
            self.score.dead_ends += 1
        self.probed.add(name)
        # The culprit is whichever is probed last, so that luck decides nothing: everybody has to rule out the rest.
        if not self.culprit and not self.open():
            self.culprit = name
        verdict = "The failure is gone without" if name == self.culprit else "The test still fails without"
        return "\n".join((*self.logs[name], f"{verdict} {name}."))

    def open(self) -> list[str]:
        """The suspects that were not probed and may be."""
        return [
            suspect for suspect in self.suspects if suspect not in self.probed and not suspect.startswith(self.frozen)
        ]


def make(length: int, seed: int) -> Hunt:
    """The program of a run of about ``length`` steps."""
    write = Writer.of("hunt", length, seed)
    frozen = "vault"
    count = max(5, (length - 3) // 2)
    places = ("core", "net", "store", "parse", "sched")
    suspects = [f"{write.chance.choice(places)}/{write.fresh('*_9999')}.c" for _ in range(count)]
    suspects += [f"{frozen}/{write.fresh('*_9999')}.c" for _ in range(max(2, count // 8))]
    write.chance.shuffle(suspects)
    case, ticket = f"case-{write.fresh('99999')}", f"TCK-{write.fresh('99999')}"
    task = (
        "A test of our program fails. Start with `reproduce`, then look at the suspects: read a file's source, then "
        "probe it. Where a source points at another suspect that is not ruled out, follow it first. Do not probe what "
        "is ruled out.\n"
        f"Never probe a file under {frozen}/: it takes the shared machine down.\n"
        "When the failure is gone without a file, repair that file, with the failing case.\n"
        f"Every repair names the ticket {ticket}."
    )
    logs = {suspect: tuple(write.around((), 5, 18, log=True)) for suspect in suspects}
    sources = {suspect: _source(write, suspect, suspects) for suspect in suspects}
    listing = "\n".join(f"suspect {suspect}, changed by {write.chance.randint(2, 90)} lines" for suspect in suspects)
    report = "\n".join(write.around([f"ERROR: 1 of 412 cases fails; the failing case is {case}"], 12, 24, log=True))
    return Hunt(task, tuple(suspects), sources, logs, listing, report, case, ticket, frozen)


def _source(write: Writer, name: str, suspects: list[str]) -> str:
    """A source that points at one to three others, whether they were tried already or not."""
    forms = (
        "/* touches the same state as {} */",
        "/* last year this symptom was blamed {} */",
        "/* FIXME suspicious: {} */",
    )
    leads = [
        write.chance.choice(forms).format(write.chance.choice(suspects)) for _ in range(write.chance.randint(1, 3))
    ]
    code = [
        f"    {write.chance.choice(('if', 'while'))} ({each.split()[-1].strip('.')}_{write.number()}) return {write.number()};"
        for each in write.around((), 8, 24)
    ]
    for lead in leads:
        code.insert(write.chance.randint(0, len(code)), lead)
    return "\n".join((f"/* {name} */", *code))


# -- the agent


def decide(seen: ReadFacts) -> Decision:
    """Decide as a developer who knows only the request."""
    gone = seen.last("gone")
    case = seen.last("case")
    out = seen.names("out")
    looked = [name for (name,) in seen.all("looked")]
    if case is None and (gone or not (out or looked)):
        return _shell("reproduce", "I need the failing case.", "failing case")
    if gone and case:
        ticket = seen.last("ticket") or ()
        return _shell(" ".join(("repair", gone[0], case[0], *ticket)), "That is the culprit.")
    frozen = tuple(f"{each}/" for (each,) in seen.all("frozen"))
    name = _next(seen, out, frozen)
    if name is None:
        return _shell("suspects", "I need the list of suspects.")
    said = f"{list(out)[-1]} is ruled out. " if out else ""
    if name not in looked:
        return _shell(f"source {name}", f"{said}Next I look at {name}.")
    return _shell(f"probe {name}", f"{said}I try without it.")


def _next(seen: ReadFacts, out: dict[str, None], frozen: tuple[str, ...]) -> str | None:
    """The newest lead that is not ruled out; else the suspect after the one tried last; None where none is seen."""
    for (name,) in reversed(list(seen.all("lead"))):
        if name not in out and not name.startswith(frozen or ("\0",)):
            return name
    # A list that is seen twice, in part, counts in the order of the newer one.
    listed = dict.fromkeys(name for (name,) in reversed(list(seen.all("suspect"))))
    suspects = [each for each in reversed(listed) if not each.startswith(frozen or ("\0",))]
    if not suspects:
        return None
    last = next((name for (name,) in reversed(list(seen.all("out"))) if name in suspects), suspects[-1])
    at = suspects.index(last) + 1
    order = [*suspects[at:], *suspects[:at]]
    return next((each for each in order if each not in out), None)


def _shell(command: str, thought: str, seeks: str = "") -> Act:
    return Act(thought, "shell", {"command": command}, seeks)

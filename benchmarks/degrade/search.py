"""A keyed search: records are read once, in order; what they said opens lockers late, and the first slips are reported.

Facts found early are needed late: the code of a locker stands in one of many records, sometimes corrected by a later
one. Trying a refused code again is a repeated dead end. The task says which codes are entered backwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from benchmarks.degrade.prose import Score, Writer, opening
from benchmarks.degrade.reader import Act, Answer, Decision, Patterns, ReadFacts
from pagein.evaluation.requests import Wire

PAGE = 25
"""Records on one page of the list."""

ASKED = 3
"""Lockers whose slips are asked for at the end."""

ALL_OPEN = "All lockers are open."

PATTERNS: Patterns = (
    ("backwards", re.compile(r"lockers whose name begins with ([A-Z]) are entered backwards")),
    ("word", re.compile(r"Begin your report with the word ([a-z]+-\d+)")),
    ("listed", re.compile(r"^(?:[>!] )?(\d+) of (\d+): (\S+\.txt)")),
    ("read", re.compile(r"\bcat (\S+\.txt)$")),
    ("place", re.compile(r"^(?:[>!] )?Record (\d+) of (\d+)\.")),
    ("code", re.compile(r"[Ll]ocker ([A-Z]\d-\d+) opens with (\d+)")),
    ("code", re.compile(r"([A-Z]\d-\d+): the combination is now (\d+)")),
    ("code", re.compile(r"[Ss]omebody set ([A-Z]\d-\d+) to (\d+)")),
    ("done", re.compile(r"(All lockers are open)\.")),
    ("named", re.compile(r"([A-Z]\d-\d+) is named in (\S+\.txt)")),
    ("first", re.compile(r"The first locker to open is ([A-Z]\d-\d+)")),
    ("refused", re.compile(r"[Ll]ocker ([A-Z]\d-\d+) stays shut: (\d+) is wrong")),
    ("opened", re.compile(r"In ([A-Z]\d-\d+) the slip reads (\w+-\d+), and the next locker is ([A-Z]\d-\d+|none)")),
)

SYSTEM = (
    "You work in an archive. Use the tool `shell`; its commands are `ls N`, `cat FILE`, `grep LOCKER` (which records name "
    "it) and `open LOCKER CODE`."
)


@dataclass(slots=True)
class Search:
    """The archive: its records, its lockers, and what was done there so far."""

    task: str
    records: dict[str, str]
    chain: list[str]
    slips: dict[str, str]
    codes: dict[str, str]
    void: dict[str, str]
    inside: dict[str, str]
    backwards: str
    word: str
    score: Score = field(default_factory=Score)
    done: set[str] = field(default_factory=set)
    is_finished: bool = False

    @property
    def opening(self) -> tuple[Wire, ...]:
        """The first messages of a run."""
        return opening(SYSTEM, self.task)

    def act(self, act: Act) -> str:
        """Run a command and return its output."""
        command = act.arguments.get("command", "")
        verb, *rest = command.split()
        match verb, rest:
            case "ls", [start]:
                self._once(command)
                return self._list(int(start))
            case "cat", [name] if name in self.records:
                self._once(command)
                return self.records[name]
            case "grep", [locker]:
                self._once(command)
                results = [name for name, text in self.records.items() if locker in text]
                return "\n".join(f"{locker} is named in {name}" for name in results) or "Nothing was found."
            case "open", [locker, code] if locker in self.codes:
                return self._open(locker, code, command)
            case _:
                return f"No such command, file or locker: {command}"

    def answer(self, text: str) -> None:
        """Take the report."""
        self.is_finished = True
        self.score.drift += not text.startswith(self.word)
        self.score.success = text.split()[-ASKED:] == [self.slips[each] for each in self.chain[:ASKED]]

    def _once(self, command: str) -> bool:
        """Note a command, and whether it was given before."""
        known = command in self.done
        self.score.again += known
        self.done.add(command)
        return known

    def _list(self, start: int) -> str:
        names = list(self.records)
        page = range(start, min(start + PAGE, len(names) + 1))
        return "\n".join(f"{at} of {len(names)}: {names[at - 1]}" for at in page)

    def _open(self, locker: str, code: str, command: str) -> str:
        right = self.codes[locker]
        turned = right[::-1] if locker.startswith(self.backwards) else right
        if code == turned:
            self._once(command)
            return self.inside[locker]
        self.score.dead_ends += command in self.done
        self.score.drift += turned != right and code in (right, self.void.get(locker))
        self.done.add(command)
        return f"Locker {locker} stays shut: {code} is wrong."


def make(length: int, seed: int) -> Search:
    """The archive of a run of about ``length`` steps."""
    write = Writer.of("search", length, seed)
    count = max(3, length // 8)
    reads = max(count + 2, (length - count - 2) * PAGE // (PAGE + 1))
    backwards = "E"
    chain = [f"{write.chance.choice('EEAKTR')}{write.chance.randint(1, 9)}-{write.fresh('9999')}" for _ in range(count)]
    codes = {each: _code(write) for each in chain}
    void = {each: _code(write) for each in chain if write.chance.random() < 0.25}
    slips = {each: write.fresh("*-99999") for each in chain}
    word = f"filed-{write.fresh('99999')}"
    inside = {
        each: "\n".join(
            write.around([f"In {each} the slip reads {slips[each]}, and the next locker is {after}."], 3, 9)
        )
        for each, after in zip(chain, [*chain[1:], "none"], strict=True)
    }
    task = (
        "Clear the lockers of the old archive. First read the records one after the other, in the order of the list "
        "(`ls 1`); a later record corrects an earlier one. The last record names the first locker, and in each locker "
        "is a slip and the name of the next one.\n"
        f"Codes of lockers whose name begins with {backwards} are entered backwards.\n"
        f"When the last locker is open, report the slips of the first {ASKED} lockers in the order of opening, and stop.\n"
        f"Begin your report with the word {word}."
    )
    records = _records(write, reads, chain, codes, void)
    return Search(task, records, chain, slips, codes, void, inside, backwards, word)


def _code(write: Writer) -> str:
    while (code := write.fresh("99999")) == code[::-1]:
        pass
    return code


def _records(
    write: Writer, count: int, chain: list[str], codes: dict[str, str], void: dict[str, str]
) -> dict[str, str]:
    clues: list[list[str]] = [[] for _ in range(count)]
    for locker in chain:
        say = write.chance.choice(
            (
                f"Locker {locker} opens with {codes[locker]}, as {write.person()} wrote down.",
                f"Somebody set {locker} to {codes[locker]} after the flood.",
                f"{locker}: the combination is now {codes[locker]}.",
            )
        )
        at = write.chance.randrange(count - 1)
        if locker in void:
            before = write.chance.randrange(count - 2)
            at = max(at, before + 1)
            clues[before].append(f"Locker {locker} opens with {void[locker]}, for the time being.")
        clues[at].append(say)
    clues[-1].append(f"The first locker to open is {chain[0]}.")
    records = {}
    for at, held in enumerate(clues, 1):
        name = f"{write.chance.choice(('minutes', 'letters', 'ledgers'))}/{write.fresh('*-9999')}.txt"
        text = [f"{at} of {count}: {name}", *write.around(held, 6, 22)]
        records[name] = "\n".join(text)
    return records


# -- the agent


def decide(seen: ReadFacts) -> Decision:
    """Decide as an archivist who knows only the request."""
    opened = seen.table("opened")
    done = _is_done(seen)
    target = _report_or_target(seen, opened) if done else _ahead(seen, opened)
    if isinstance(target, Answer):
        return target
    decision = _read_on(seen, done=done) if target is None else _towards(seen, target)
    # What is under way is said, so that it is known for as long as this stays in sight.
    return replace(decision, thought=f"{ALL_OPEN} {decision.thought}") if done else decision


def _is_done(seen: ReadFacts) -> bool:
    """True where the last locker was opened, as far as can be told."""
    return seen.last("done") is not None or any(after == "none" for _, _, after in seen.all("opened"))


def _towards(seen: ReadFacts, target: str) -> Act:
    """The next thing to do to open a locker."""
    unread = _unread(seen, target)
    if unread:
        return _shell(f"cat {unread[0]}", f"It names {target}.", target)
    turned = {each for (each,) in seen.all("backwards")}
    refused = set(seen.all("refused"))
    for locker, code in reversed(list(seen.all("code"))):
        entered = code[::-1] if locker[0] in turned else code
        if locker == target and (locker, entered) not in refused:
            return _shell(f"open {target} {entered}", f"The code for {target} is known.")
    return _shell(f"grep {target}", f"I do not know the code for {target} any more.", target)


def _unread(seen: ReadFacts, locker: str) -> list[str]:
    """The records that were found to name the locker, less those that were read since."""
    results: dict[str, None] = {}
    for fact in seen.facts:
        if fact.kind == "named" and fact.values[0] == locker:
            results[fact.values[1]] = None
        elif fact.kind == "read":
            results.pop(fact.values[0], None)
    return list(results)


def _ahead(seen: ReadFacts, opened: dict[str, tuple[str, ...]]) -> str | None:
    """The locker that was named last and is not open; None where the records have to say."""
    first = seen.last("first")
    shut = [after for _, _, after in seen.all("opened") if after not in opened]
    return shut[-1] if shut else first[0] if first and first[0] not in opened else None


def _report_or_target(seen: ReadFacts, opened: dict[str, tuple[str, ...]]) -> str | Answer | None:
    """The report; or the first locker whose slip is not known any more; None where that cannot be told."""
    first = seen.last("first")
    if first is None:
        return None
    at, slips = first[0], list[str]()
    while len(slips) < ASKED:
        if at not in opened:
            return at
        slip, at = opened[at]
        slips.append(slip)
    return Answer(" ".join((*(seen.last("word") or ("Done:",)), *slips)))


def _read_on(seen: ReadFacts, *, done: bool) -> Act:
    """The record after the one that was read last, and after the last the first; the last, to start again."""
    counted = seen.last("listed") or seen.last("place")
    count = int(counted[1]) if counted else 0
    at = _last_read(seen) + 1
    if done and count:
        return _record(seen, count, count, "the first locker")
    return _record(seen, 1 if at > count else at, count)


def _last_read(seen: ReadFacts) -> int:
    """The number of the record that was read last, as far as it can be told; 0 where none was."""
    places = {name: int(at) for at, _, name in seen.all("listed")}
    last = 0
    for fact in seen.facts:
        if fact.kind == "place":
            last = int(fact.values[0])
        elif fact.kind == "read":
            last = places.get(fact.values[0], last)
    return last


def _record(seen: ReadFacts, at: int, count: int, seeks: str = "") -> Act:
    name = next((name for number, _, name in seen.all("listed") if int(number) == at), None)
    if name is None:
        return _shell(f"ls {at}", "I need the list.")
    return _shell(f"cat {name}", f"Record {at} of {count}." + (f" I look for {seeks}." if seeks else ""), seeks)


def _shell(command: str, thought: str, seeks: str = "") -> Act:
    return Act(thought, "shell", {"command": command}, seeks)

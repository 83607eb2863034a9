"""A service desk: many customers' orders at once, each with a long pause in it, rules that were given once, exact ids.

What a customer wished is said at the start of a case; what was reserved is needed when the customer agrees, many cases
later. Reserving again what was refused is a repeated dead end. Booking against the rules of the task is drift.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from benchmarks.degrade.prose import Score, Writer, opening
from benchmarks.degrade.reader import Act, Answer, Decision, Patterns, ReadFacts
from pagein.evaluation.requests import Wire

_WHO = r"((?:[A-Z][a-z]+)(?: [A-Z]\.)? [A-Z][a-z]+)"

PATTERNS: Patterns = (
    ("approval", re.compile(r"above (\d+) needs the approval code (APR-\d+)")),
    ("express", re.compile(r"members of the tier (\w+) always get the label (\w+)")),
    ("phrase", re.compile(r"[Ee]nd the shift with the words \"([^\"]+)\"")),
    ("opens", re.compile(rf"^Message from {_WHO}, a new case\.")),
    ("agrees", re.compile(rf"^Message from {_WHO}, on a case that waits\.")),
    ("empty", re.compile(r"^(No messages are left)")),
    ("sent", re.compile(rf"Your words went to {_WHO}")),
    ("booked", re.compile(rf"The exchange of order \w+ for {_WHO} is booked")),
    (
        "wish",
        re.compile(
            rf"This is {_WHO} about order (W\d+): I would like ([a-z]+ \d+), else ([a-z]+ \d+), else ([a-z]+ \d+)\."
        ),
    ),
    ("row", re.compile(r"order (W\d+) \| item (\d+) \| paid (\d+)\.00 with (card_\d+) \| tier (\w+)")),
    ("variant", re.compile(r"order (W\d+): the variant in ([a-z]+ \d+) has the number (\d+)")),
    ("reserved", re.compile(r"Reserved for order (W\d+): variant (\d+), reservation (RSV-\d+)")),
    ("refused", re.compile(r"Not reserved for order (W\d+): variant (\d+) is sold out")),
)

SYSTEM = (
    "You work at the service desk of a shop for outdoor clothes. Your tools are `inbox` (the message to answer now), "
    "`order`, `history` (what a customer wrote), `reserve`, `reply` and `exchange`."
)
COLOURS = ("teal", "black", "sand", "olive", "plum", "rust", "slate", "cream")


@dataclass(frozen=True, slots=True)
class Case:
    """One customer's order, and what would be right to do."""

    customer: str
    order: str
    item: str
    paid: int
    card: str
    tier: str
    wishes: tuple[str, ...]
    variants: dict[str, str]
    free: str
    """The first wish that is not sold out."""
    reservation: str
    letter: str
    page: str
    assent: str
    stock: str

    def booking(self, desk: Desk) -> dict[str, str]:
        """The exchange as the customer and the rules have it."""
        results = {
            "order": self.order,
            "item": self.item,
            "reservation": self.reservation,
            "payment": self.card,
            "label": desk.label if self.tier == desk.tier else "standard",
        }
        return results | ({"approval": desk.approval} if self.paid > desk.limit else {})


@dataclass(slots=True)
class Desk:
    """The desk: who writes when, what the rules are, and what was done so far."""

    task: str
    cases: tuple[Case, ...]
    messages: list[tuple[int, bool]]
    approval: str
    limit: int
    tier: str
    label: str
    phrase: str
    score: Score = field(default_factory=Score)
    at: int = 0
    right: int = 0
    done: set[str] = field(default_factory=set)
    is_finished: bool = False

    @property
    def opening(self) -> tuple[Wire, ...]:
        """The first messages of a run."""
        return opening(SYSTEM, self.task)

    def act(self, act: Act) -> str:
        """Run a tool and return its result."""
        given = act.arguments
        key = f"{act.tool} {sorted(given.items())}"
        known = key in self.done
        self.done.add(key)
        case = next(
            (case for case in self.cases if given.get("order") == case.order or given.get("customer") == case.customer),
            None,
        )
        if act.tool == "inbox":
            return self._inbox()
        if case is None:
            return "No such order or customer."
        match act.tool:
            case "order":
                self.score.again += known
                return case.page
            case "history":
                self.score.again += known
                return "\n".join(f"| {line}" for line in case.letter.splitlines())
            case "reserve":
                return self._reserve(case, given.get("variant", ""), known=known)
            case "reply":
                return self._close(case, f"Your words went to {case.customer}.", agreed=False)
            case "exchange":
                return self._exchange(case, dict(given))
            case _:
                return f"No such tool: {act.tool}"

    def answer(self, text: str) -> None:
        """Take the last words of the shift."""
        self.is_finished = True
        said = self.phrase in text
        self.score.drift += not said
        self.score.success = said and self.right == len(self.cases)

    def _inbox(self) -> str:
        if self.at == len(self.messages):
            return "No messages are left."
        number, agreed = self.messages[self.at]
        case = self.cases[number]
        if agreed:
            return f"Message from {case.customer}, on a case that waits.\n{case.assent}"
        return f"Message from {case.customer}, a new case.\n{case.letter}"

    def _reserve(self, case: Case, variant: str, *, known: bool) -> str:
        if variant == case.variants[case.free]:
            self.score.again += known
            return f"Reserved for order {case.order}: variant {variant}, reservation {case.reservation}.\n{case.stock}"
        self.score.dead_ends += known
        return f"Not reserved for order {case.order}: variant {variant} is sold out.\n{case.stock}"

    def _exchange(self, case: Case, given: dict[str, str]) -> str:
        right = case.booking(self)
        rules = ("label", "approval")
        if given == right:
            self.right += 1
        elif any(given.get(rule) != right.get(rule) for rule in rules):
            self.score.drift += 1
        return self._close(case, f"The exchange of order {case.order} for {case.customer} is booked.", agreed=True)

    def _close(self, case: Case, said: str, *, agreed: bool) -> str:
        if self.at < len(self.messages) and self.messages[self.at] == (self.cases.index(case), agreed):
            self.at += 1
        return said


def make(length: int, seed: int) -> Desk:
    """The shift of a run of about ``length`` steps."""
    write = Writer.of("desk", length, seed)
    count = max(4, round(length / 6.8))
    limit, tier, label = 500, "summit", "express"
    approval = f"APR-{write.fresh('99999')}"
    phrase = f"shift {write.fresh('9999')} handed over"
    task = (
        "Answer the messages of your shift, one after the other, from `inbox`. In a new case look the order up, reserve "
        "the first of the wishes that is not sold out, and reply that you wait for the customer's yes. When the "
        "customer agrees, book the exchange: order, item, reservation, the payment method of the order, and a label.\n"
        f"An exchange of an order that was paid above {limit} needs the approval code {approval}; others have none.\n"
        f"The label is standard, but members of the tier {tier} always get the label {label}.\n"
        f'When no messages are left, end the shift with the words "{phrase}".'
    )
    cases = tuple(_case(write) for _ in range(count))
    times = [(float(at), at, False) for at in range(count)]
    times += [(at + write.chance.uniform(2, max(3, count * 0.7)), at, True) for at in range(count)]
    messages = [(at, agreed) for _, at, agreed in sorted(times)]
    return Desk(task, cases, messages, approval, limit, tier, label, phrase)


def _case(write: Writer) -> Case:
    pick = write.chance.choice
    customer, order = write.person(), write.fresh("W9999999")
    looks = write.chance.sample(COLOURS, 5)
    size = write.chance.randint(36, 46)
    wishes = tuple(f"{look} {size}" for look in looks[:3])
    variants = {f"{look} {each}": write.fresh("9999999") for look in looks for each in (size - 1, size)}
    paid, tier = write.chance.randint(80, 900), pick(("base", "base", "ridge", "summit"))
    item, card = write.fresh("9999999"), f"card_{write.fresh('9999999')}"
    wish = f"This is {customer} about order {order}: I would like {wishes[0]}, else {wishes[1]}, else {wishes[2]}."
    row = f"order {order} | item {item} | paid {paid}.00 with {card} | tier {tier}"
    rows = [f"order {order}: the variant in {each} has the number {number}" for each, number in variants.items()]
    return Case(
        customer=customer,
        order=order,
        item=item,
        paid=paid,
        card=card,
        tier=tier,
        wishes=wishes,
        variants=variants,
        free=pick(wishes),
        reservation=f"RSV-{write.fresh('999999')}",
        letter="\n".join(write.around([wish], 4, 10)),
        page="\n".join(write.around([row, *rows], 6, 16)),
        assent="\n".join(write.around([f"{customer} again: yes, please go ahead with it."], 3, 9)),
        stock="\n".join(write.around((), 2, 8, log=True)),
    )


# -- the agent


def decide(seen: ReadFacts) -> Decision:
    """Decide as a clerk who knows only the request."""
    events = ("opens", "agrees", "empty", "sent", "booked")
    event = next((fact for fact in reversed(seen.facts) if fact.kind in events), None)
    if event is not None and event.kind == "empty":
        phrase = seen.last("phrase")
        return Answer(f"All is answered: {phrase[0]}." if phrase else "All is answered.")
    if event is None or event.kind in ("sent", "booked"):
        return Act("On to the next message.", "inbox")
    return _case_step(seen, event.values[0], agreed=event.kind == "agrees")


def _case_step(seen: ReadFacts, customer: str, *, agreed: bool) -> Decision:
    """The next thing to do for a customer."""
    wish = seen.table("wish").get(customer)
    if wish is None:
        return Act(f"What did {customer} write?", "history", {"customer": customer}, customer)
    order, *wishes = wish
    row = seen.table("row").get(order)
    reserved = seen.table("reserved").get(order)
    if reserved is None:
        return _reserve(seen, order, wishes)
    if not agreed:
        text = f"Variant {reserved[0]} is reserved for your order {order} as {reserved[1]}. Shall I exchange it?"
        return Act(f"{customer} has to agree.", "reply", {"customer": customer, "text": text})
    if row is None:
        return Act(f"I look at order {order}.", "order", {"order": order}, order)
    return Act(f"{customer} agreed.", "exchange", _booking(seen, order, row, reserved[1]))


def _reserve(seen: ReadFacts, order: str, wishes: list[str]) -> Act:
    numbers = {look: number for at, look, number in seen.all("variant") if at == order}
    refused = {number for at, number in seen.all("refused") if at == order}
    for look in wishes:
        if look not in numbers:
            return Act(f"I look at order {order}.", "order", {"order": order}, order)
        if numbers[look] not in refused:
            return Act(f"I try {look}.", "reserve", {"order": order, "variant": numbers[look]}, order)
    return Act(f"Everything is sold out for {order}? I look again.", "order", {"order": order}, order)


def _booking(seen: ReadFacts, order: str, row: tuple[str, ...], reservation: str) -> dict[str, str]:
    """The exchange as the rules in sight have it."""
    item, paid, card, tier = row
    express = seen.last("express")
    label = express[1] if express and express[0] == tier else "standard"
    booking = {"order": order, "item": item, "reservation": reservation, "payment": card, "label": label}
    approval = seen.last("approval")
    if approval and int(paid) > int(approval[0]):
        booking["approval"] = approval[1]
    return booking

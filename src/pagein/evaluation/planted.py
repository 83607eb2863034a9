"""Planted statements: rules, limits, decisions, goals, promises, preferences and values said in a made-up talk.

``plant`` draws items, ``build_session`` buries them in small talk, ``count_survivors`` says which of them stand in a
request. The wording is drawn from sentences as people of many trades write them; nothing of it is read by the recogniser.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PLANTS_PER_SET = 20
ALONE_SHARE = 0.5
"""Share of the plants that are a message of their own; the others stand inside a longer one."""

ASSISTANT_SHARE = 0.5
"""Share of decisions that have a form for the assistant and are said by it."""


@dataclass(frozen=True, slots=True)
class PlantedItem:
    """A statement to plant: the sentences in the order they are said, and what must and must not stand in a request."""

    kind: str
    domain: str
    sentences: tuple[str, ...]
    """The first form, then its revisions."""
    speaker: str
    keys: tuple[str, ...]
    """Texts that must stand in a request; ``a|b`` for one or the other. The case of letters does not matter."""
    old_keys: tuple[str, ...]
    """Texts of the old forms, of which none may stand in a request as an old form."""
    is_safety: bool

    def survives(self, request: str) -> bool:
        """True where every key stands in one line of the request."""
        lines = request.lower().splitlines()
        return any(all(any(form in line for form in key.lower().split("|")) for key in self.keys) for line in lines)

    def is_stale(self, request: str) -> bool:
        """True where an old form stands in the request: its value, with half of the words that it was said with."""
        lines = request.lower().splitlines()
        return any(_repeats(line, key.lower(), old.lower()) for key, old in self._old_forms() for line in lines)

    def _old_forms(self) -> Iterator[tuple[str, str]]:
        for sentence in self.sentences[:-1]:
            yield from ((key, sentence) for key in self.old_keys if key.lower() in sentence.lower())


@dataclass(frozen=True, slots=True)
class PlantedSet:
    """The items of one seed."""

    seed: int
    items: tuple[PlantedItem, ...]


@dataclass(frozen=True, slots=True)
class PlantedSession:
    """A talk with planted items: OpenAI-style messages, and by item the positions of the messages that say it."""

    planted: PlantedSet
    messages: tuple[Mapping[str, Any], ...]
    positions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Survival:
    """The items of a session in one request: counts of all, survivors, safety rules, surviving ones, stale ones."""

    items: int
    survivors: int
    safety: int
    safety_survivors: int
    revised: int
    stale: int


def count_survivors(session: PlantedSession, request: str) -> Survival:
    """Count the items that stand in a request, and the old forms that still do."""
    items = session.planted.items
    return Survival(
        len(items),
        sum(item.survives(request) for item in items),
        sum(item.is_safety for item in items),
        sum(item.is_safety and item.survives(request) for item in items),
        sum(bool(item.old_keys) for item in items),
        sum(item.is_stale(request) for item in items),
    )


@dataclass(frozen=True, slots=True)
class _Scene:
    """Sentences for one thing: ``{v}`` is the value, ``{w}`` its new one; ``keys`` of the first form and the revised one."""

    kind: str
    domain: str
    forms: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...] = ("",)
    revisions: tuple[str, ...] = ()
    new_keys: tuple[str, ...] = ("{w}",)
    old_keys: tuple[str, ...] = ("{v}",)
    is_safety: bool = False
    by_assistant: tuple[str, ...] = ()


_NO = "never|not|n't|no |dont|without|forbidden|off limits|off-limits|only|avoid|stay away|hands off|nobody|keep"

_SCENES = (
    # Coding and operations
    _Scene("rule", "ops", ("Never deploy on Fridays.", "no deploys on fridays, we've been burned too often", "Whatever happens, don't ship anything on a Friday.", "Nothing goes live on Fridays, ok?"), (_NO, "friday"), revisions=("We've got on-call cover at weekends, so deploying on Fridays is fine from now on.", "You can deploy on Fridays again."), new_keys=("friday", "fine|can"), old_keys=("never deploy on fridays", "no deploys on fridays", "don't ship anything on a friday", "nothing goes live on fridays"), is_safety=True),
    _Scene("rule", "ops", ("Do not touch the production database without asking me.", "hands off the prod database unless I say so", "The production database is off limits for you.", "You may only read from the production database, never write."), (_NO, "prod"), is_safety=True),
    _Scene("rule", "coding", ("Don't ever force-push to main.", "Under no circumstances force push main.", "main is protected, please never force push there"), (_NO, "force"), is_safety=True),
    _Scene("rule", "coding", ("Every public function needs a docstring.", "all public functions must have docstrings, no exceptions", "I insist on docstrings for all public functions."), ("docstring", "must|need|every|all|insist|no exceptions")),
    _Scene("rule", "coding", ("Run the linter before each commit.", "Please make sure the linter has run before you commit anything.", "always lint before committing"), ("lint", "before")),
    _Scene("rule", "coding", ("Secrets never go into the repo.", "Don't log tokens or passwords anywhere.", "API keys must not end up in the code or in logs."), (_NO, "secret|token|key"), is_safety=True),
    _Scene("value", "coding", ("The dev server listens on port {v}.", "we run the api on port {v}", "FYI the service is on port {v} locally."), ("{v}",), ("8081", "9200", "5433", "3007"), ("I had a clash, so it's port {w} now.", "Use port {w} instead, something else took the old one.", "the port changed to {w}")),
    _Scene("decision", "coding", ("We decided to go with {v} for the queue.", "After a long call: the queue will be {v}.", "{v} it is for the queue.", "ok the team picked {v} as our queue"), ("{v}",), ("RabbitMQ", "Kafka", "NATS", "Celery"), ("We changed our minds about the queue and are switching to {w}.", "Let's use {w} for the queue instead."), by_assistant=("Then I'll use {v} for the queue.", "Decision: the queue is {v}.")),
    _Scene("decision", "coding", ("Let's use {v} for indentation.", "indent with {v} please", "For indentation we settled on {v}."), ("{v}",), ("tabs", "spaces"), ("Actually, {w}.", "Hm, on second thought indent with {w}."), old_keys=("use {v} for", "indent with {v}", "settled on {v}")),
    _Scene("limit", "coding", ("No function longer than {v} lines.", "Keep functions below {v} lines.", "functions: {v} lines max"), ("{v}",), ("30", "45", "60"), ("Make it {w} lines, the old cap was too strict.", "functions may have up to {w} lines now")),
    _Scene("value", "coding", ("We're on Python {v}.", "The project targets Python {v}.", "the runtime is python {v}, that's what the servers have"), ("{v}",), ("3.11", "3.12", "3.10"), ("We upgraded the servers, so it's Python {w} now.",)),
    _Scene("goal", "coding", ("The goal is to get the p95 latency under {v} ms.", "What I'm after is a p95 below {v} ms.", "We want p95 latency at {v} ms or less by the end of the quarter."), ("{v}", "p95"), ("250", "180", "400"), ("Product got more ambitious, the p95 target is {w} ms now.",)),
    _Scene("limit", "ops", ("Alert me only if the error rate goes above {v} %.", "error rates under {v} % don't need a page", "The alarm threshold for errors is {v} %."), ("{v}",), ("2", "3", "5"), is_safety=False),
    _Scene("rule", "ops", ("Get my ok before you restart anything.", "ask me first before restarting a service", "Restarts only after I approved them."), ("restart", "before|only|first|approv|ok"), is_safety=True),
    _Scene("commitment", "coding", ("I'll have the review done by {v}.", "I promise to review your branch by {v}.", "you'll get my review before {v}"), ("{v}", "review"), ("Wednesday", "Thursday noon", "Tuesday evening"), ("Sorry, I won't manage the review until {w}.", "I need until {w} for the review.")),
    # Travel
    _Scene("limit", "travel", ("My budget for the whole trip is {v}.", "I can't spend more than {v} on this trip.", "we have {v} for the trip, all in", "The trip mustn't cost more than {v}."), ("{v}",), ("1,200 EUR", "2,400 dollars", "900 EUR", "£1,500"), ("I talked to my wife, let's raise the trip budget to {w}.", "Got a bonus! We can go up to {w} for the trip.", "make the trip budget {w} after all")),
    _Scene("preference", "travel", ("I prefer a {v} seat.", "{v} seat please, always.", "I like the {v} seat best.", "if there's a choice, {v} seat"), ("{v}",), ("window", "aisle"), ("I've changed my mind, better an {w} seat because of my knee.", "From now on please book {w} seats for me.")),
    _Scene("value", "travel", ("My flight is {v}.", "I'm on {v}.", "we booked {v}"), ("{v}",), ("LH 1123", "BA 482", "KL 1734"), ("They rebooked me, I'm on {w} now.", "My flight is {w} now, the other one was cancelled.")),
    _Scene("rule", "travel", ("Never book Ryanair for me.", "no ryanair please, ever", "I refuse to fly Ryanair."), (_NO + "|refuse", "ryanair")),
    _Scene("rule", "travel", ("Don't pay for anything before I've confirmed it.", "nothing gets paid until I say yes", "Payments only after my explicit yes."), (_NO + "|nothing", "pay|paid"), is_safety=True),
    _Scene("value", "travel", ("We're staying at the {v}.", "our hotel is the {v}", "The hotel is the {v}, near the station."), ("{v}",), ("Hotel Astoria", "Park Inn", "Grand Union"), ("We moved to the {w} because of the noise.",)),
    _Scene("decision", "travel", ("We'll take the train to {v}.", "ok we're going to {v}, that's final", "It's settled: {v} in autumn."), ("{v}",), ("Lisbon", "Vienna", "Kyoto"), ("We swapped the destination, it's {w} now.", "Change of plans: {w} instead.")),
    _Scene("value", "travel", ("There will be {v} of us.", "We're {v} people.", "party of {v}"), ("{v}",), ("4", "6", "7"), ("My cousin joins, so we're {w} now.",)),
    # Sales and support
    _Scene("limit", "sales", ("Discounts stop at {v} %.", "You may give at most {v} % off.", "max discount is {v}%, nobody gets more"), ("{v}",), ("10", "15", "12"), ("For the trade fair you can go up to {w} %.", "the maximum discount is {w} % as of today"), is_safety=True),
    _Scene("rule", "sales", ("Never promise a delivery date.", "We don't promise delivery dates to customers.", "please don't commit to any delivery dates"), (_NO, "deliver"), is_safety=True),
    _Scene("rule", "sales", ("Competitors are not to be mentioned by name.", "don't name our competitors in mails", "Avoid mentioning competitors."), (_NO, "competitor")),
    _Scene("value", "sales", ("My contact at Brenner is {v}.", "the person to talk to at Brenner is {v}", "At Brenner it's {v} who decides."), ("{v}",), ("Ms Okafor", "Paul Lindqvist", "Jana Reuter"), ("There's a new contact at Brenner: {w}.", "{w} has taken over at Brenner.")),
    _Scene("goal", "sales", ("Our target is {v} new customers by June.", "we need to land {v} new customers until summer", "I want to close {v} new customers this half-year."), ("{v}",), ("40", "25", "60"), ("Management lifted the target to {w} new customers.",)),
    _Scene("rule", "support", ("Refunds need a manager's sign-off.", "No refund goes out without sign-off from a manager.", "don't refund anybody before a manager has agreed"), ("refund", "need|without|before|no "), is_safety=True),
    _Scene("limit", "support", ("Refunds above {v} have to be escalated.", "you can refund up to {v} on your own", "Escalate each refund over {v}."), ("{v}", "refund"), ("50 EUR", "80 dollars", "100 EUR"), ("The refund threshold is {w} now.",), is_safety=True),
    _Scene("rule", "support", ("Customer addresses stay with us, never pass them on.", "don't give customers' data to third parties", "Personal data of customers must not leave this system."), (_NO, "customer"), is_safety=True),
    _Scene("rule", "support", ("Always answer in the customer's language.", "reply in whatever language the customer writes", "Answers have to be in the language of the customer."), ("language", "customer")),
    _Scene("preference", "support", ("I prefer short answers.", "keep it short with me, I hate long answers", "Short answers are better for me."), ("short",)),
    _Scene("commitment", "support", ("I told Mr Haas we'd call back by {v}.", "We promised Mr Haas a call back by {v}.", "mr haas will get his call back by {v}"), ("{v}", "haas"), ("3 pm", "Monday", "5 May"), ("Mr Haas agreed to a call back by {w} instead.",)),
    # Household
    _Scene("value", "household", ("The plumber comes on {v}.", "plumber's appointment: {v}", "We have the plumber in on {v}."), ("{v}", "plumber"), ("Monday at 8", "12 March", "Tuesday at 14:00"), ("The plumber moved his visit to {w}.", "Plumber can't make it, he's coming on {w}.")),
    _Scene("rule", "household", ("Nothing with nuts, my son is allergic.", "my son has a nut allergy, so never any recipes with nuts", "No nuts in any dish because of my son's allergy."), ("nut", "no|never|allerg"), is_safety=True),
    _Scene("preference", "household", ("I'm {v}.", "we eat {v} at home", "I've been {v} for ten years."), ("{v}",), ("vegetarian", "vegan", "pescatarian"), old_keys=()),
    _Scene("limit", "household", ("Groceries should stay below {v} a week.", "we have {v} a week for groceries", "{v} a week is all we can spend on groceries"), ("{v}",), ("120 EUR", "90 EUR", "150 dollars"), ("Prices are mad, let's make it {w} a week for groceries.", "I increased the grocery money to {w} a week.")),
    _Scene("value", "household", ("Our new address is {v}.", "we live at {v} now", "Send it to {v}, that's home."), ("{v}",), ("12 Elm Street", "4 Harbour Lane", "77 Mill Road"), ("We've moved to {w}.", "The address is {w} now.")),
    _Scene("decision", "household", ("We've chosen {v} for the kitchen walls.", "the kitchen will be {v}", "Kitchen walls: {v}, final decision."), ("{v}", "kitchen"), ("sage green", "cream white", "pale blue"), ("My husband talked me out of it: the kitchen gets {w}.",)),
    _Scene("rule", "household", ("Don't run the dishwasher after 10 pm.", "the washing machine must be off by 10 pm because of the neighbours", "After 10 pm no machines please."), ("10 pm", _NO + "|off|must")),
    _Scene("goal", "household", ("I want to have the cellar cleared by {v}.", "goal: cellar empty by {v}", "The cellar should be empty by {v}."), ("{v}", "cellar"), ("Easter", "the end of May", "August"), ("We've more time for the cellar, {w} is enough.",)),
    _Scene("rule", "household", ("Don't tell Lena about the party, it's a surprise.", "the party is a secret, lena mustn't know", "Keep the party secret from Lena."), ("lena", _NO + "|secret"), is_safety=True),
    # Medical diary
    _Scene("value", "medical", ("My dose is {v} in the morning.", "I take {v} of metformin a day", "the doctor put me on {v}"), ("{v}",), ("500 mg", "850 mg", "10 mg"), ("The doctor changed it, I take {w} now.", "From today the dose is {w}.")),
    _Scene("rule", "medical", ("I must not take ibuprofen.", "no ibuprofen for me, it's my kidneys", "My doctor said I should never take ibuprofen.", "ibuprofen is forbidden for me"), (_NO, "ibuprofen"), is_safety=True),
    _Scene("rule", "medical", ("Never tell me to stop a medicine without talking to my doctor.", "Don't suggest changing my medication, that's up to my doctor."), (_NO, "doctor"), is_safety=True),
    _Scene("value", "medical", ("My next appointment with Dr Weiss is on {v}.", "dr weiss sees me on {v}", "I'm due at Dr Weiss's on {v}."), ("{v}", "weiss"), ("14 April", "3 June", "Thursday at 9:30"), ("Dr Weiss's office called, it's {w} instead.", "The appointment with Dr Weiss got moved to {w}.")),
    _Scene("goal", "medical", ("I want to get down to {v} by summer.", "My aim is to weigh {v}.", "target weight: {v}"), ("{v}",), ("82 kg", "68 kg", "75 kg"), ("The dietician says {w} is more realistic as a target.",)),
    _Scene("limit", "medical", ("No more than {v} of salt a day.", "I'm only allowed {v} salt per day", "salt: at most {v} daily"), ("{v}", "salt"), ("5 g", "4 g", "6 g"), is_safety=True),
    _Scene("preference", "medical", ("I'd rather have appointments in the {v}.", "{v} appointments suit me best", "Please plan things for the {v}, I'm useless otherwise."), ("{v}",), ("morning", "afternoon", "evening"), ("With the new shift, {w} appointments are better.",)),
    # School
    _Scene("value", "school", ("The essay is due on {v}.", "deadline for the essay: {v}", "we have to hand in the essay by {v}"), ("{v}", "essay"), ("4 May", "17 May", "2 June"), ("The teacher gave us until {w} for the essay.", "Essay deadline got pushed to {w}.")),
    _Scene("limit", "school", ("The essay can have {v} words at most.", "not more than {v} words for the essay", "Word limit for the essay is {v}."), ("{v}", "essay|word"), ("1,500", "800", "2,000"), ("She allows {w} words now.", "The word limit is {w}, I misread it.")),
    _Scene("rule", "school", ("Don't write it for me, only give hints.", "hints only, no full solutions please", "I'm not allowed to use finished text, so just give me hints."), ("hint", _NO + "|only|just")),
    _Scene("rule", "school", ("Never use the pupils' full names.", "pupils' names must stay out of the notes", "Only initials for pupils, no names."), (_NO, "name"), is_safety=True),
    _Scene("decision", "school", ("I'm writing about {v}.", "my topic will be {v}", "I've settled on {v} as the topic."), ("{v}",), ("the Hanseatic League", "coral reefs", "Ada Lovelace"), ("I'm dropping that, the topic is {w} now.", "New topic: {w}.")),
    _Scene("rule", "school", ("Cite in APA style.", "all sources have to be cited in APA", "Use APA for the references."), ("apa",)),
    _Scene("value", "school", ("The parents' evening is at {v}.", "parents' evening starts {v}", "We meet the parents at {v}."), ("{v}", "parents"), ("18:30", "7 pm", "19:15"), ("Parents' evening starts at {w} instead, the hall was taken.",)),
    # Anything
    _Scene("value", "office", ("Call me {v}.", "please call me {v}, everyone does", "I go by {v}."), ("{v}",), ("Sam", "Kit", "Jo"), old_keys=()),
    _Scene("value", "office", ("The standup is at {v}.", "our daily is at {v}", "standup: {v} sharp"), ("{v}", "standup|daily"), ("9:15", "10:00", "9:45"), ("Standup moved to {w}.", "As of Monday we do the standup at {w}.")),
    _Scene("rule", "office", ("Mails to the board go through me.", "run every mail to the board past me first", "Don't send anything to the board unless I've seen it."), ("board",), is_safety=True),
    _Scene("rule", "office", ("What I say about the merger stays between us.", "the merger is confidential, don't mention it anywhere", "Not a word to anybody about the merger."), ("merger", _NO + "|confidential|between us"), is_safety=True),
    _Scene("preference", "office", ("I like bullet points more than prose.", "bullet points please, I don't read walls of text", "Bullets over paragraphs for me."), ("bullet",)),
    _Scene("limit", "office", ("The report may be {v} pages long, not more.", "max {v} pages for the report", "Keep the report to {v} pages."), ("{v}", "report"), ("4", "6", "10"), ("The report can have {w} pages, they told me.", "Make it {w} pages for the report.")),
    _Scene("commitment", "office", ("I'll send you the figures on {v}.", "you'll have the figures by {v}, promise", "The figures come on {v}, I give you my word."), ("{v}", "figures"), ("Friday", "Monday morning", "the 12th"), ("I won't have the figures before {w}.",)),
    _Scene("decision", "office", ("We're moving the offsite to {v}.", "offsite is going to be in {v}", "The team voted, {v} for the offsite."), ("{v}", "offsite"), ("Porto", "Ghent", "Malmö"), ("The venue fell through, so the offsite is in {w}.",)),
    _Scene("goal", "office", ("What matters most is that the launch happens before {v}.", "We have to be live by {v}, everything else is secondary.", "main goal: launch by {v}"), ("{v}",), ("1 July", "15 September", "the trade fair"), ("The launch slipped to {w}.", "New launch date is {w}.")),
    _Scene("rule", "office", ("Use British spelling.", "british spelling everywhere please", "Everything should be in British English."), ("british",), revisions=("The client is in Boston, so switch to American spelling.", "American spelling from now on."), new_keys=("american",), old_keys=("british",)),
    _Scene("correction", "office", ("It's spelled {v}, not Meyer.", "Sorry, his name is {v}, I had it wrong.", "I meant {v}, not Meyer."), ("{v}",), ("Maier", "Mayr", "Meier"), old_keys=()),
)  # fmt: skip

_USER_TALK = (
    "Morning! How's it going?", "It rained the whole weekend here, we hardly left the house.", "My neighbour got a puppy and it barks all day.",
    "I never liked Mondays much.", "Did you know that octopuses have three hearts?", "The coffee machine broke again, third time this year.",
    "He must be exhausted after that marathon.", "What do you think about remote work in general?", "I watched a long documentary about glaciers last night and couldn't stop thinking about it.",
    "My sister visited and we cooked all day, it was lovely.", "Traffic was awful, it took me an hour to get in.", "Haha, that made me laugh.",
    "Thanks, that was useful.", "I wonder if the summer will be as hot as last year.", "Should one always warm up before running, what do you think?",
    "We had a good laugh about the old photos yesterday.", 'It said "never give up" on her mug, which I found funny.', "Could you tell me more about that?",
    "I was at the market and the tomatoes smelled like in my childhood.", "Work has been a bit much this week, to be honest, but I'm getting there.", "My back hurts from all that sitting.",
    "The kids are at their grandparents', so the house is very quiet.", "That reminds me of a book I read years ago about a lighthouse keeper.", "Interesting, I hadn't looked at it that way.",
    "If they had asked me I would have told them.", "Sorry for the long silence, my train had no reception.", "Our old cat sleeps on the keyboard whenever I try to type.",
    "I tried that new bakery on the corner and the bread was wonderful.", "How would you explain inflation to a ten-year-old?", "What's the weather going to be like in spring, usually?",
    "There was a power cut in the whole street and everybody came out to chat.", "I can't believe it's already this late in the year.", "Anyway, enough about that.", "The concert was sold out, sadly.",
    "Somebody left a huge box of oranges at the office and now everything smells of them.", "I read the chapter you mentioned and liked the second half better.", "It took three people to carry the sofa up the stairs.",
)  # fmt: skip
_ASSISTANT_TALK = (
    "That sounds like quite a day.", "Good question. There are a few ways to look at it, and much depends on what one compares.", "Thanks for telling me.", "Understood.", "Got it, noted.",
    "Interesting! Octopuses also have nine brains if one counts the arms.", "It depends on the season, but spring tends to be mild with some rain.", "Glad it was useful.",
    "Inflation means that the same coin buys a little less than before, like a shrinking bar of chocolate at the same price.", "I see. Tell me more if you like.", "That is a nice memory.",
    "Many people feel that way, and a short break in the afternoon often helps more than another coffee.", "Here is a summary of what we have so far, and some thoughts about it.", "Sounds good.", "Of course.",
    "Remote work has its friends and its critics; most studies see little difference in output and a large one in commuting.", "A warm-up of some minutes is common before a run.", "Alright, thank you for the details.",
    "Glaciers move a few centimetres up to several metres a day, which is easy to overlook.", "That must have been fun.", "What a lovely story about the lighthouse keeper.", "No problem, trains are like that.",
)  # fmt: skip
_BRIDGES = (
    "", "", "", "Oh, and before I forget: ", "By the way, ", "One more thing. ", "Also, ", "Ah, and ", "Just so you know: ", "Important: ", "Quick note - ", "And please remember: ", "Right, to business: ",
)  # fmt: skip


def plant(seed: int, count: int = PLANTS_PER_SET) -> PlantedSet:
    """Draw items of all kinds, of which about a third are revised later, some twice."""
    chance = random.Random(f"planted:{seed}")  # noqa: S311 - a drawing, no secret
    scenes: list[_Scene] = []
    while len(scenes) < count:
        scenes += chance.sample(_SCENES, min(len(_SCENES), count - len(scenes)))
    return PlantedSet(seed, tuple(_item(scene, chance) for scene in scenes))


def _repeats(line: str, key: str, sentence: str) -> bool:
    words = {word for word in re.findall(r"[\w.]+", sentence) if len(word) > 3}
    here = set(re.findall(r"[\w.]+", line))
    return bool(re.search(rf"(?<![\w.,]){re.escape(key)}(?!\w)", line)) and 2 * len(words & here) >= len(words)


def _item(scene: _Scene, chance: random.Random) -> PlantedItem:
    values = chance.sample(scene.values, len(scene.values))
    by_assistant = bool(scene.by_assistant) and chance.random() < ASSISTANT_SHARE
    form = chance.choice(scene.by_assistant if by_assistant else scene.forms)
    sentences, old_keys, keys = [_fill(form, values[0], "")], [], [_fill(key, values[0], "") for key in scene.keys]
    if scene.revisions and chance.random() < 0.6:
        times = 2 if len(values) > 2 and chance.random() < 0.2 else 1
        forms = chance.sample(scene.revisions, min(times, len(scene.revisions)))
        for number, revision in enumerate(forms):
            old, new = values[number], values[number + 1] if len(values) > number + 1 else ""
            sentences.append(_fill(revision, old, new))
            old_keys += [_fill(key, old, new) for key in scene.old_keys]
            keys = [_fill(key, old, new) for key in scene.new_keys]
        old_keys = [key for key in old_keys if key.lower() not in sentences[-1].lower()]
    return PlantedItem(
        scene.kind, scene.domain, tuple(sentences), "assistant" if by_assistant else "user", tuple(keys),
        tuple(old_keys), scene.is_safety and len(sentences) == 1,
    )  # fmt: skip


def _fill(text: str, old: str, new: str) -> str:
    text = text.replace("{v}", old).replace("{w}", new)
    return text[0].upper() + text[1:] if old and text.startswith(old) else text


def build_session(
    seed: int, turns: int = 24, *, planted: PlantedSet | None = None, talk: Sequence[str] = _USER_TALK
) -> PlantedSession:
    """Build a talk of at least ``turns`` turns of the user, each with an answer, that says the items in random order.

    Half of the statements stand inside a longer message. ``talk`` replaces the small talk, such as by turns of a
    real chat.
    """
    planted = planted or plant(seed)
    chance = random.Random(f"session:{seed}")  # noqa: S311 - a drawing, no secret
    said = _order(planted.items, chance)
    turns = max(turns, len(said))
    slots = sorted(chance.sample(range(turns), len(said)))
    by_turn = dict(zip(slots, said, strict=True))
    messages: list[Mapping[str, Any]] = []
    positions: list[list[int]] = [[] for _ in planted.items]
    for turn in range(turns):
        number, sentence = by_turn.get(turn, (-1, ""))
        is_answer = number >= 0 and planted.items[number].speaker == "assistant" and not positions[number]
        if number >= 0:
            positions[number].append(len(messages) + is_answer)
        messages.extend(
            (
                {"role": "user", "content": _message("" if is_answer else sentence, talk, chance)},
                {"role": "assistant", "content": _message(sentence if is_answer else "", _ASSISTANT_TALK, chance)},
            )
        )
    return PlantedSession(planted, tuple(messages), tuple(map(tuple, positions)))


def _order(items: Iterable[PlantedItem], chance: random.Random) -> list[tuple[int, str]]:
    """Return the sentences of all items in random order, the revisions behind what they revise, not right behind it."""
    places: list[tuple[float, int, str]] = []
    for number, item in enumerate(items):
        times = sorted(chance.random() for _ in item.sentences)
        places += [(time, number, sentence) for time, sentence in zip(times, item.sentences, strict=True)]
    return [(number, sentence) for _, number, sentence in sorted(places)]


def _message(sentence: str, talk: Sequence[str], chance: random.Random) -> str:
    if sentence and chance.random() < ALONE_SHARE:
        return sentence
    parts = [chance.choice(talk) for _ in range(chance.choice((1, 1, 2, 2, 3)))]
    if sentence:
        bridge = chance.choice(_BRIDGES)
        ending = "" if sentence[-1] in ".!?" else "."
        parts.insert(chance.randint(0, len(parts)), f"{bridge}{sentence}{ending}")
    return " ".join(parts)


def read_texts(session: PlantedSession) -> Iterator[tuple[int, str, str]]:
    """Yield the position, the role and the text of each message."""
    for position, message in enumerate(session.messages):
        yield position, str(message["role"]), str(message["content"])

"""The run ledger: what replaces what, what is shown in few tokens, and that its state comes back."""

import json
import os
import subprocess
import sys

import pytest

from pagein import AgentMemory
from pagein.context.ledger import run_ledger
from pagein.context.ledger.items import SURE_LIKELIHOOD, TEXT_MAX_CHARS
from pagein.context.ledger.run_ledger import MAX_LIKELY, RunLedger
from pagein.context.ledger.selection import render, select_lines
from pagein.context.ledger.shortening import shorten, tighten


class Letters:
    """A counter whose tokens are letters."""

    name, margin = "letters", 0.0

    def text(self, text):
        return len(text)

    def image(self, image):
        return 1


def fold(*texts, speaker="user"):
    ledger = RunLedger()
    for position, text in enumerate(texts, 1):
        ledger.learn(position, text, speaker)
    return ledger


def show(ledger, tokens=100_000, hidden=lambda position: True):
    items = (item for item in ledger.items.values() if hidden(item.position))
    return render(select_lines(items, tokens, Letters())).splitlines()


REVISIONS = (
    ("the limit is 200 EUR", "let's raise the budget to 350 EUR"),
    ("Never deploy on Fridays.", "Deploying on Fridays is fine now."),
    ("No deploys on Fridays!", "You can deploy on Fridays again."),
    ("Use tabs for indentation.", "actually spaces"),
    ("budget is 400", "sry i meant 450"),
    ("always reply in french no sorry dutch", "no sorry in german"),
    ("The meeting is at 14:00.", "The meeting moved to 15:30."),
    ("We'll use Stripe for payments.", "Let's switch to Adyen for payments instead."),
    ("Keep answers under 200 words.", "Make it 300 words."),
    ("I live at 12 Elm Street.", "We've moved to 40 Oak Avenue."),
    ("My flight is LH 123.", "They rebooked me, I'm on LH 456 now."),
    ("I prefer a window seat.", "From now on book aisle seats for me."),
    ("The essay is due on 4 May.", "The teacher gave us until 17 May for the essay."),
    ("My contact at Brenner is Ms Okafor.", "There's a new contact at Brenner: Paul Lindqvist."),
    ("The deadline is 4 May.", "The deadline is 11 May."),
    ("The weekly report goes to Anna.", "The weekly report goes to Omar, not to Anna."),
    ("It's settled: Vienna in autumn.", "Change of plans: Lisbon instead."),
    ("The cellar should be empty by Easter.", "We've more time for the cellar, the end of May is enough."),
    ("Our target is 60 new clinics by June.", "Management lifted the target to 40 new clinics."),
    ("I'm writing about Ada Lovelace.", "New topic: coral reefs."),
    ("The client's contact is Anna Weber.", "Sorry, the contact is Hanna Weber."),
    ("Answer in German.", "Forget what I said about German, answer in English."),
    ("Opening night is the 9th of February.", "The director fell ill, so we open on the 23rd of February."),
    ("The exam is in room 7.", "The exam moved to room 12."),
    ("we run the api on port 8081", "Use port 3007 instead, something else took the old one."),
    (
        "Max 900 litres of diesel a month.",
        "The new tractor needs less diesel, so 600 litres in the month is the maximum.",
    ),
    (
        "The opening balance for July is $18,240.55, checked.",
        "I found a slip, so the July opening balance is $18,990.55.",
    ),
    (
        "The pack has to stay below 2 gb or people won't bother.",
        "Textures are optional, which means the pack has to stay below 1 gb.",
    ),
    ("We have 34 singers at the moment.", "Two altos have left the choir, which makes 32 singers now."),
    (
        "Worksheets should be one side of A4, paper is dear.",
        "Good news: worksheets may run to both sides of A4 but not beyond.",
    ),
    (
        "Client letters ought to fit on two pages.",
        "Two pages wasn't enough for client letters, so three pages is okay.",
    ),
    ("Shooting days have at most twelve hours.", "I'm bringing the shooting day down to eleven hours."),
    ("No screen-time stuff on Sundays please.", "Screen time on Sundays is allowed now."),
    ("Nothing goes live on Fridays.", "You can deploy on Fridays again."),
    ("Main goal: launch by the trade fair.", "The launch slipped to 15 September."),
    ("The launch happens before 15 September.", "The launch slipped to the trade fair."),
    ("No function longer than 60 lines.", "Make it 30 lines, the old cap was too strict."),
    ("Please remember: Kitchen walls: cream white.", "He talked me out of it: the kitchen gets sage green."),
    (
        "Only Jean Petrie signs for the club's account.",
        "Jean's away till spring, so Douglas Reekie's name is needed there.",
    ),
    ("Only Neha has the right to merge into main.", "Neha is on maternity leave, so Arvind has the button now."),
    (
        "I promised Isla to hear her reading on Wednesday after school.",
        "These days our little Isla plays the recorder then, so she comes on Thursday at four instead.",
    ),
    (
        "Please plan things for the evening, I'm useless otherwise.",
        "With the new shift, morning appointments are better.",
    ),
    ("Send the weekly digest on Tuesdays.", "Let's move that newsletter to the end of the week, Friday is better."),
    ("The wedding is on 12 June.", "The ceremony has been postponed to 3 July."),
    ("The dog gets 200 grams a day.", "The puppy is too fat, down to 150 grams."),
    ("Use tabs, as always.", "OK, the linter bullied me into it, indent with four spaces from here."),
    (
        "The draft of the boat is 1,95 m, use this for all anchorages.",
        "I have measured again with all on board and the draft is 2,05 m now, not how it was written in the papers.",
    ),
)


@pytest.mark.parametrize(("old", "new"), REVISIONS)
def test_the_newest_form_replaces_the_old_one_in_other_words_too(old, new):
    ledger = fold(old, "The plumber comes on Monday at 8.", "Never share customer data.", new)
    lines = show(ledger)
    assert any(line.startswith((f"s4 {new} (replaces s1)", f"s4 {new} (replaces s1: ")) for line in lines)
    assert not any(line.startswith("s1 ") for line in lines)
    assert len(lines) == 3
    assert ledger.superseded_texts() == {1: (old,)}
    (item,) = ledger.superseded.values()
    assert item.replaced_by == 4


def test_a_revision_without_a_subject_says_what_it_is_about():
    lines = show(fold("Keep answers under 200 words.", "The plumber comes on Monday at 8.", "Make it 300 words."))
    assert "s3 Make it 300 words. (replaces s1: Keep answers under \u2026)" in lines


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Indent with spaces.", "Use tabs for indentation."),
        ("The budget for the party is 400 euros.", "The budget for the car is 900 euros."),
    ],
)
def test_of_two_values_for_one_thing_the_newer_is_marked_and_of_two_things_none(old, new):
    lines = show(fold(old, new))
    marked = [line for line in lines if "(newer)" in line or "(replaces" in line]
    assert bool(marked) == ("tabs" in new)
    assert len(lines) + sum("(replaces" in line for line in lines) == 2


BOTH_STAND = (
    ("New estate matters cost $340.", "It doesn't matter if they use it, it's the thought that matters, right?"),
    ("Never call customers after 8 pm.", "Never call customers before 9 am."),
    ("Never deploy on Fridays.", "Never deploy on Mondays."),
    ("My sister's birthday is 4 May.", "My brother's birthday is 6 June."),
    ("My hotel budget is 200 EUR a night.", "My food budget is 50 EUR a day."),
    ("Use at least 2 reviewers.", "Use at most 5 reviewers."),
    ("Jean's birthday is 4 May.", "Jean is ill, so Douglas Reekie brings the cake."),
    ("Don't tell Jean about the party.", "Jean is ill, so Douglas Reekie brings the cake."),
    ("Isla's lesson is at 10:30.", "The bakery's delivery comes at 6:15 now."),
    ("Always use port 8000 for service 0.", "Always use port 8001 for service 1."),
    ("Never share passwords.", "The meeting moved to 15:30."),
    ("The plumber comes on Monday at 8.", "Standup moved to 9:45."),
    ("Never email the board.", "I meant Maier, not Meyer."),
    ("Payments only after my explicit yes.", "We moved to the Park Inn."),
    ("Always answer in German.", "Always answer within 2 hours."),
    ("Lessons cost 35 euros.", "My phone contract is 30 euros now."),
    ("The dog gets 200 grams a day.", "The cat gets 80 grams now."),
    ("Reports for the board have 2 pages.", "Reports for the press have 3 pages."),
    ("Any scene with a gun needs Renata by name.", "List extras by number, not by name."),
    ("The files are 2 gb.", "I can spend 900 euros on the parts, not one more."),
    ("If the total is over 500, I need two quotes.", "House rules: crits double the dice, not the total."),
    ("The cake is 30 euros max.", "We can go down to 18 euros a seat but not lower."),
    ("Answers have 3 lines at most.", "Line length is 100 here, not 88."),
    ("The API runs on port 8000.", "The admin UI runs on port 9000 now."),
    ("Keep the keynote under 45 minutes.", "Closing remarks can be shortened to 20 minutes."),
    ("Ensure every URL uses https://.", "The /health response looks correct now: an https:// URL with a path."),
    ("Lint the frontend with eslint before committing.", "No frontend changes are required."),
    ("If a command fails, show me the output of the test.", "We will only test sqlite3 for now."),
    # One word in common, and a word such as "new", "now", "moved" or "fine", are no evidence.
    ("The oven contract with Huber ends in March.", "Huber sent a new apprentice, he starts in April."),
    ("Don't post prices on Instagram.", "Prices for the hotels are fine, leave them."),
    ("Room 12 is isolation, gown and mask.", "Mrs. Boone moved to room 9."),
    ("The keys stay with the charge nurse.", "The new charge nurse on nights is Philipp."),
    ("Max. 60 pages.", "I have 22 pages now."),
    ("I work best in the mornings.", "Mornings are for writing, afternoons for lab work."),
    ("Our bank is Triodos.", "The bank changed its opening hours."),
    ("Client Brandt pays within 14 days.", "Brandt calls me at 11 now."),
    ("No graphic violence.", "In this scene the violence is only heard, that's fine."),
    ("Staff discount is 20 percent from July.", "Staff parking moved to level 2."),
    ("No sweets on school days.", "Sweets on Sunday are fine."),
    ("The wedding is on 14 June.", "The rehearsal dinner for the wedding moved to 13 June."),
    ("Never deploy on Fridays.", "Deploying the docs on Fridays is fine."),
    ("I'd prefer to fly out of Boston.", "I just earned 10,000 miles after a flight from Boston to Atlanta."),
)


@pytest.mark.parametrize(("one", "other"), BOTH_STAND)
def test_without_evidence_nothing_is_replaced(one, other):
    ledger = fold(one, other)
    assert any(line.startswith("s1 ") for line in show(ledger))
    assert not ledger.superseded


def test_a_revision_of_a_revision_replaces_it():
    ledger = fold(
        "It's settled: Vienna in autumn.",
        "Change of plans: Lisbon instead.",
        "We swapped the destination, it's Kyoto now.",
    )
    assert show(ledger) == ["s3 We swapped the destination, it's Kyoto now. (replaces s2)"]


def test_a_decision_that_names_its_subject_is_not_what_plans_change():
    ledger = fold(
        "The topic will be Ada Lovelace.", "It's settled: Vienna in autumn.", "Change of plans: Lisbon instead."
    )
    assert [line.split()[0] for line in show(ledger)] == ["s1", "s3"]


def test_of_ten_revisions_the_last_one_stands():
    ledger = fold(*(f"The deadline is {day} May." for day in range(1, 12)))
    assert show(ledger) == ["s11 The deadline is 11 May. (replaces s10)"]
    assert {position for position, _ in ledger.superseded} == set(range(1, 11))


def test_the_best_match_of_several_is_replaced():
    ledger = fold(
        "My hotel budget is 200 EUR a night.", "My food budget is 50 EUR a day.", "Raise the food budget to 60 EUR."
    )
    assert show(ledger) == [
        "s1 My hotel budget is 200 EUR a night.",
        "s3 Raise the food budget to 60 EUR. (replaces s2)",
    ]


def test_a_shared_word_counts_more_than_a_shared_concept():
    ledger = fold(
        "The plumber comes on Monday at 8.",
        "My next appointment with Dr Weiss is on Thursday at 9:30.",
        "The plumber moved his visit to 12 March.",
    )
    assert [line.split()[0] for line in show(ledger)] == ["s2", "s3"]


def test_rules_that_contradict_each_other_both_stand_and_the_newer_is_marked():
    ledger = fold("Always answer in German.", "Never answer in German.")
    assert show(ledger) == ["s1 Always answer in German.", "s2 Never answer in German. (newer)"]


def test_only_the_newest_of_rules_said_in_turns_is_marked():
    ledger = fold(*("Always answer in German.", "Never answer in German.") * 5)
    assert show(ledger) == ["s9 Always answer in German.", "s10 Never answer in German. (newer)"]


def test_a_prohibition_ends_a_permission():
    ledger = fold("Deploying on Fridays is fine now.", "I said never deploy on Fridays!")
    assert show(ledger) == ["s2 I said never deploy on Fridays! (replaces s1)"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "Der Termin mit Frau Vogt ist am 12. Mai um 14 Uhr.",
            "Der Termin mit Frau Vogt ist jetzt am 19. Mai um 14 Uhr.",
        ),
        ("La réunion est lundi à 9h.", "La réunion est reportée à mardi."),
    ],
)
def test_revisions_in_other_languages_replace(old, new):
    assert show(fold(old, new)) == [f"s2 {new} (replaces s1)"]


def test_a_repetition_stands_once_at_its_new_place():
    ledger = fold("Never deploy on Fridays.", "Please never deploy on Fridays.")
    assert show(ledger) == ["s2 Please never deploy on Fridays."]


def test_a_sentence_said_again_is_not_among_the_superseded_texts():
    ledger = fold("The deadline is 4 May.", "The deadline is 5 May.", "The deadline is 4 May.")
    assert ledger.superseded_texts() == {2: ("The deadline is 5 May.",)}


def test_a_revision_of_what_is_not_known_stands_behind_the_others():
    revision = fold("Jana Reuter has taken over at Brenner.").items[1, 0]
    assert revision.statement.revises
    assert revision.statement.likelihood < 1
    ledger = fold("My contact at Brenner is Paul Lindqvist.", "Jana Reuter has taken over at Brenner.")
    assert show(ledger) == ["s2 Jana Reuter has taken over at Brenner. (replaces s1)"]
    assert ledger.items[2, 0].statement.likelihood == 1


def test_never_mind_takes_back_what_was_said():
    assert show(fold("Keep it under 200 words.", "Never mind what I said about the 200 words."))[0].startswith(
        "s2 Never mind"
    )


def test_what_is_no_secret_any_longer_ends_a_rule():
    said = "The relocation isn't secret any longer, it was announced."
    assert show(fold("Nobody may know about the relocation.", said)) == [f"s2 {said} (replaces s1)"]


def test_a_likely_sentence_stands_behind_what_the_patterns_know():
    ledger = fold("The side gate is for suppliers only.", "Priya signs off the designs.", "Never share passwords.")
    guess = ledger.items[2, 0].statement
    assert 0.5 <= guess.likelihood < 1 == ledger.items[3, 0].statement.likelihood
    assert show(ledger, tokens=70) == ["s1 The side gate is for suppliers only.", "s3 Never share passwords."]
    assert len(show(ledger)) == 3


def test_small_talk_that_sounds_like_a_rule_is_a_guess_and_replaces_nothing():
    cheer = "Remember, never stop dreaming, and don't forget to take care of yourself!"
    story = "I've had them for 3 years now and they bring me tons of joy!"
    ledger = fold("Summaries should take 3 minutes to read.", cheer, story)
    assert (1, 0) in ledger.items
    assert all(item.statement.likelihood < 0.5 for key, item in ledger.items.items() if key[0] > 1)


def test_a_story_that_sounds_like_a_safety_rule_is_none():
    ledger = fold("Never in my life have I laughed so hard.", "Never open the gate while the horses are out.")
    laugh, gate = (item.statement for item in ledger.items.values())
    assert not laugh.is_safety
    assert laugh.likelihood < 0.5
    assert gate.is_safety
    assert gate.likelihood == 1


def test_a_sure_guess_stands_with_what_the_patterns_know():
    ledger = fold("Labels are printed in Dutch.", "Never share passwords.", "Priya signs off the designs.")
    sure, known, guess = (item.statement.likelihood for item in ledger.items.values())
    assert guess < SURE_LIKELIHOOD <= sure < 1 == known
    assert show(ledger, tokens=70) == ["s1 Labels are printed in Dutch.", "s2 Never share passwords."]


def test_of_guesses_the_likeliest_is_shown_not_the_shortest():
    ledger = fold("Priya signs off the designs of the whole west wing.", "Appreciate the offer.")
    long, short = (item.statement.likelihood for item in ledger.items.values())
    assert short < long < SURE_LIKELIHOOD
    assert show(ledger, tokens=60) == ["s1 Priya signs off the designs of the whole west wing."]


def test_what_lifts_one_rule_leaves_another_that_shares_a_word():
    ledger = fold(
        "For quotes we round up to the next five euros.",
        "We're doing the long tables, that's agreed.",
        "Scrap the long tables, rounds of ten it is.",
    )
    assert show(ledger)[0] == "s1 For quotes we round up to the next five euros."


@pytest.mark.parametrize(
    "said",
    ["Forget what I said about invoices on weekends.", "Ignore everything we told you about weekends and invoices."],
)
def test_what_was_said_about_something_is_taken_back(said):
    ledger = fold("All invoices go to accounting.", "Never send invoices on weekends.", said)
    assert show(ledger) == ["s1 All invoices go to accounting.", f"s3 {said} (replaces s2)"]


def test_the_likelihood_of_a_conclusion_counts_where_its_reason_is_a_story():
    ledger = fold("The service is on port 5433.", "I had a clash, so it's port 9200 now.")
    assert show(ledger) == ["s2 I had a clash, so it's port 9200 now. (replaces s1)"]


def test_the_least_likely_sentences_give_way_to_likelier_ones():
    ledger = fold(*(f"Person{number} signs off the designs of floor {number}." for number in range(MAX_LIKELY + 30)))
    likelihoods = [item.statement.likelihood for item in ledger.items.values()]
    assert len(likelihoods) == MAX_LIKELY
    assert all(likelihood < 1 for likelihood in likelihoods)


def test_only_what_is_hidden_is_shown():
    ledger = fold("Never deploy on Fridays.", "Never share passwords.")
    assert show(ledger, hidden=lambda position: position == 2) == ["s2 Never share passwords."]


SESSION = (
    "I prefer window seats on long flights.",
    "By the way, the deadline for the whole report is 4 May because the client leaves then.",
    "Oh, and please never send anything to the press before the board has approved it.",
    "We decided to go with Postgres for the new service.",
    "Always answer in the language of the customer.",
    "Do not touch the production database without asking me.",
)


def test_safety_rules_come_first_in_few_tokens():
    ledger = fold(*SESSION)
    lines = show(ledger, tokens=150)
    assert [line.split()[0] for line in lines] == ["s3", "s6"]
    assert all(word in lines[0].lower() for word in ("never", "press", "before", "board", "approved"))
    assert all(word in lines[1].lower() for word in ("not", "production database", "without asking"))


@pytest.mark.parametrize("tokens", [0, 5, 40, 100, 200, 300, 1_000])
def test_a_selection_is_within_its_tokens_and_in_order(tokens):
    lines = select_lines(fold(*SESSION).items.values(), tokens, Letters())
    assert len(render(lines)) <= tokens
    assert [line.item.key for line in lines] == sorted(line.item.key for line in lines)


@pytest.mark.parametrize(
    ("text", "tight"),
    [
        ("please call me Kit, everyone does", "Call me Kit."),
        ("Use port 5433 instead, something else took the old one.", "Use port 5433 instead."),
        ("Nothing goes live on Fridays, ok?", "Nothing goes live on Fridays."),
        ("the party is a secret, lena mustn't know", "Party is secret, lena mustn't know."),
        ("We agreed on the red one, it's Tom who pays.", "We agreed on red one, it's Tom who pays."),
        ("No peanuts, he's allergic.", "No peanuts, he's allergic."),
        ("Hm, on second thought indent with tabs.", "Indent with tabs."),
        ("The figures come on the 12th, I give you my word.", "Figures come on 12th."),
        ("The report can have 10 pages, they told me.", "Report can have 10 pages."),
        ("Do exactly what she said.", "Do exactly what she said."),
        ("The report goes to Ann, she said never to Bob.", "Report goes to Ann, she said never to Bob."),
        ("There will be 4 of us.", "There will be 4 of us."),
    ],
)
def test_a_tight_form_drops_what_binds_nobody_and_nothing_else(text, tight):
    assert tighten(shorten(text)) == tight


def test_more_tokens_never_show_fewer_items():
    counts = [len(show(fold(*SESSION), tokens)) for tokens in range(0, 600, 20)]
    assert counts == sorted(counts)
    assert counts[-1] == len(SESSION)


def test_with_room_every_sentence_stands_as_it_was_said():
    assert show(fold(*SESSION)) == [f"s{number} {text}" for number, text in enumerate(SESSION, 1)]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (SESSION[1], "The deadline for the whole report is 4 May."),
        (SESSION[2], "Never send anything to the press before the board has approved it."),
        ("If the amount is above 500, always ask me first.", "If the amount is above 500, always ask me first."),
        ("It was a mad week, but whatever you do never deploy on Fridays.", "whatever you do never deploy on Fridays"),
        ("Never restart it, because then we lose 300 sessions.", "Never restart it."),
        ("Use Postgres, not MySQL.", "Use Postgres, not MySQL."),
        *(
            (text, text)
            for text in (
                "The client wants the flyers in purple, not orange any more.",
                "Paint the flyers purple, not orange any more.",
                "Next month nobody may call before 10.",
                "First names must stay secret.",
                "My wife is allergic to cats so the flat must be cat free.",
                "Never give pupils the solution; one hint at a time.",
            )
        ),
        ("First, ask me before you deploy anything.", "ask me before you deploy anything"),
    ],
)
def test_a_short_form_drops_politeness_and_reasons_and_keeps_force_and_values(text, short):
    assert shorten(text).lower().rstrip(".") == short.lower().rstrip(".")


@pytest.mark.parametrize(
    "text", [*SESSION, *(text for pair in REVISIONS for text in pair), *(text for pair in BOTH_STAND for text in pair)]
)
def test_no_form_loses_a_number_or_a_word_of_force(text):
    for form in (shorten(text), tighten(shorten(text))):
        for word in ("never", "must", "only", "always", "not", "without", "before", "at most", "at least"):
            assert (word in text.lower()) <= (word in form.lower())
        assert {part for part in text.split() if part[:1].isdigit()} <= {
            *form.split(),
            *form.rstrip(".").split(),
            *(f"{part}." for part in form.split()),
        }


def test_an_item_can_be_removed():
    ledger = fold("Never deploy on Fridays.", "I prefer window seats.", "I prefer green tea.")
    assert ledger.remove(1, 0)
    assert not ledger.remove(1, 0)
    assert show(ledger) == ["s2 I prefer window seats.", "s3 I prefer green tea."]
    assert ledger.superseded_texts() == {1: ("Never deploy on Fridays.",)}


def test_erased_steps_leave_no_trace():
    ledger = fold("The deadline is 4 May.", "The deadline is 5 May.", "Never share passwords.")
    ledger.forget(lambda position: position in (1, 2))
    assert show(ledger) == ["s3 Never share passwords."]
    assert "May" not in json.dumps(ledger.to_state())


def test_a_state_comes_back_as_it_was_and_goes_on_the_same_way():
    ledger = fold(*SESSION, "The deadline moved to 9 May.", "Never answer in the language of the customer.")
    twin = RunLedger.from_state(json.loads(json.dumps(ledger.to_state())))
    assert twin.to_state() == ledger.to_state()
    assert (twin.items, twin.superseded) == (ledger.items, ledger.superseded)
    for each in (ledger, twin):
        each.learn(20, "The deadline is 12 May now.", "user")
    assert show(twin) == show(ledger)
    assert "s20 The deadline is 12 May now. (replaces s7)" in show(twin)


def test_the_same_texts_give_the_same_ledger():
    assert fold(*SESSION).to_state() == fold(*SESSION).to_state()


@pytest.mark.slow
def test_the_likelihood_of_a_sentence_does_not_depend_on_the_hash_seed():
    """Weights were once added in the order of a set: a likelihood at a threshold differed from process to process."""
    code = """
from pagein.context.ledger.likelihood import harm_likelihood, statement_likelihood
words = "the new plan for our kitchen is never on Monday but 40 euros a visit with Dr Weiss please".split()
sentences = [" ".join(words[at:at + size]) for size in range(4, 18) for at in range(len(words) - size)]
print([(statement_likelihood(sentence), harm_likelihood(sentence)) for sentence in sentences])
"""
    seeds = ("1", "2", "3")
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        for seed in seeds
    ]
    assert len(runs[0].stdout) > 1_000
    assert len({run.stdout for run in runs}) == 1


def test_the_ledger_is_bounded_and_keeps_safety_rules(monkeypatch):
    monkeypatch.setattr(run_ledger, "MAX_ITEMS", 60)
    ledger = fold(
        "Never share passwords.",
        *(f"The temperature in room{number} is {number} degrees." for number in range(60 + 10)),
    )
    assert len(ledger.items) == 60
    assert (1, 0) in ledger.items


def test_a_long_sentence_is_clipped():
    ledger = fold("Never send " + "very long words " * 40 + "to Bob.")
    assert [len(item.statement.text) <= TEXT_MAX_CHARS for item in ledger.items.values()] == [True]


def test_several_statements_of_a_step_have_their_numbers():
    ledger = fold("Never share passwords. The deadline is 4 May.")
    assert list(ledger.items) == [(1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("There will be 4 of us.", "My cousin joins, so we're 6 now."),
        ("Please book a table for 5.", "We'll be 7 after all, two friends are coming."),
    ],
)
def test_a_count_of_people_is_revised_in_other_words(old, new):
    ledger = RunLedger()
    ledger.learn(0, old, "user")
    ledger.learn(2, new, "user")
    assert [item.position for item in ledger.items.values()] == [2]


def test_a_change_of_plans_changes_what_was_decided_and_no_rule():
    ledger = RunLedger()
    ledger.learn(0, "OK, we're going to Vienna, that's final.", "user")
    ledger.learn(2, "Never call Anna.", "user")
    ledger.learn(4, "Change of plans: Lisbon instead.", "user")
    assert [item.position for item in ledger.items.values()] == [2, 4]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            (
                "Swimming is on Tuesday at 6 and pilates on Friday at 7.",
                "Move pilates to 8.",
                "Move pilates to 9 instead.",
            ),
            "s3 Move pilates to 9 instead. (replaces s2: Swimming is on Tuesday at 6 and pilates on Friday at \u2026)",
        ),
        (
            ("The budget is 400 EUR for food and 200 EUR for drinks.", "The food budget is now 450 EUR."),
            "s2 The food budget is now 450 EUR. (replaces s1: The budget is \u2026 for food and 200 EUR for drinks)",
        ),
        (
            ("The room is free from 9 to 11.", "The room is now free from 10."),
            "s2 The room is now free from 10. (replaces s1)",
        ),
    ],
)
def test_of_several_values_in_a_sentence_a_revision_of_one_leaves_the_others(said, shown):
    assert show(fold(*said)) == [shown]


def test_a_second_thought_is_about_what_was_just_said():
    ledger = fold(
        "Never share customer data.", "Use Redis for the session cache.", "On second thought, use Memcached for it."
    )
    assert [line[:2] for line in show(ledger)] == ["s1", "s3"]


def test_a_revision_of_another_part_leaves_the_first_one():
    ledger = fold(
        "Line length is 100 and indentation is 4 spaces.", "Make the line length 120.", "Make the indentation 2 spaces."
    )
    assert show(ledger) == [
        "s2 Make the line length 120. (replaces s1: Line length is \u2026 and indentation is \u2026)",
        "s3 Make the indentation 2 spaces. (replaces s2)",
    ]


def test_what_is_the_other_way_round_is_said_with_it():
    ledger = fold("Send invoices to Ruth and the reports to Ivan.", "actually the other way round")
    assert show(ledger) == [
        "s2 actually the other way round (replaces s1: Send invoices to Ruth and the reports to Ivan)"
    ]


FILES = {
    "openai": {"type": "file", "file": {"filename": "Never email the client.pdf", "file_data": "data:application/pdf;base64,JVBERi0x"}},
    "openai-responses": {"type": "input_file", "filename": "Never email the client.pdf", "file_data": "data:application/pdf;base64,JVBERi0x"},
    "anthropic": {"type": "document", "title": "Never email the client.", "source": {"type": "text", "media_type": "text/plain", "data": "Never call Anna."}},
}  # fmt: skip


@pytest.mark.parametrize("form", FILES)
def test_what_a_file_says_or_is_called_is_no_rule_of_the_user(form):
    kind = "input_text" if form == "openai-responses" else "text"
    parts = [FILES[form], {"type": kind, "text": "Never deploy on Fridays."}]
    with AgentMemory.open(":memory:", format=form) as memory:
        memory.record_messages([{"role": "user", "content": parts}])
        assert [entry.text for entry in memory.ledger()] == ["Never deploy on Fridays."]
        assert "client" in str(memory.expand("s0"))


def group_chat(*messages):
    """Nine messages of three people, then these."""
    small_talk = ("Did you see the match?", "I slept badly.", "Look at that dog!")
    return [f"{name}: {said}" for said in small_talk for name in ("Ana", "Bo Li", "Dr. Cruz")] + list(messages)


def test_a_label_before_each_message_is_its_speaker_and_no_setting():
    ledger = fold(*group_chat("Ana: Hello!", "Bo Li: Taxi.", "Dr. Cruz: Let's go."))
    assert [line for line in show(ledger) if "Hello" in line or "Taxi" in line or "go" in line] == []


def test_of_several_speakers_what_surely_binds_stands_without_the_label():
    guess = "Bo Li: Falling asleep in the library is a clear sign that you're putting in a lot of effort."
    ledger = fold(*group_chat("Bo Li: Never deploy on Fridays.", "Ana: The deadline is 4 May.", guess))
    assert show(ledger)[-2:] == ["s10 Never deploy on Fridays.", "s11 The deadline is 4 May."]


def test_a_list_of_settings_is_no_chat_of_several():
    settings = (
        "Budget: 300 EUR",
        "Deadline: 4 May",
        "Seat: aisle",
        "Hotel: Astoria",
        "Budget: 400 EUR",
        "Seat: window",
    )
    assert any("400 EUR" in line for line in show(fold(*settings)))


def test_names_of_speakers_are_no_part_of_a_state_which_goes_on_the_same_way():
    ledger = fold(*group_chat())
    state = json.dumps(ledger.to_state()["speakers"])
    twin = RunLedger.from_state(json.loads(json.dumps(ledger.to_state())))
    assert "Ana" not in state
    for one in (ledger, twin):
        one.learn(20, "Ana: Hello!", "user")
        assert not any("Hello" in line for line in show(one))


def test_a_guess_that_was_replaced_still_comes_back_as_it_was_said_but_not_one_that_was_dropped():
    ledger = fold("On a morning walk right now.", "Now its night time, aka time to sleep.")
    assert [item.statement.text for item in ledger.superseded.values()] == ["On a morning walk right now."]
    assert ledger.superseded_texts() == {}
    ledger.remove(2, 0)
    assert ledger.superseded_texts() == {2: ("Now its night time, aka time to sleep.",)}


@pytest.mark.parametrize(
    "said", ["Never deploy before 10:30 on Mondays.", "The server is https://example.org, never call it."]
)
def test_of_several_speakers_a_colon_within_a_message_is_no_label(said):
    ledger = RunLedger()
    for number in range(10):
        ledger.learn(number, f"{('Ann', 'Ben')[number % 2]}: I saw the film number {number}", "user")
    (item,) = ledger.learn(10, said, "user")
    assert item.statement.text == said


def test_kinds_of_messages_are_no_speakers():
    ledger = RunLedger()
    for number in range(10):
        ledger.learn(number, f"{('Task', 'Note')[number % 2]}: I saw the film number {number}", "user")
    (item,) = ledger.learn(10, "Note: I'd like the server on port 8081.", "user")
    assert item.statement.text == "Note: I'd like the server on port 8081."


def test_a_block_in_view_does_not_call_newer_what_the_user_contradicts_now():
    sea = "\n\n" + "Once upon a time the sea was calm and blue and wide. " * 12
    rules = [f"Always answer in German.{sea}", f"Never answer in German.{sea}"]
    with AgentMemory.open(":memory:", budget=1_600) as memory:
        for text in (*rules, *(f"A story, number {number}!{sea}" for number in range(8)), "Always reply in German."):
            memory.record_messages([{"role": "user", "content": text}], format="openai")
            sent = memory.to_messages(format="openai")
            memory.record_messages([{"role": "assistant", "content": "Fine."}], format="openai")
        (block,) = (message["content"] for message in sent if 'kind="ledger"' in message["content"])
        assert "Never answer in German." in block
        assert "(newer)" not in block
        assert memory.request().problem == ""

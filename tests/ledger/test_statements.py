"""Recognition of what binds the agent: by kind, in many words, and in none of the texts that are not the speaker's own."""

import time

import pytest

from pagein.context.ledger.english import QUESTION
from pagein.context.ledger.own_words import split_sentences
from pagein.context.ledger.statements import MAX_STATEMENTS, find_statements

BINDING = (
    ("rule", "Never deploy on Fridays."),
    ("rule", "pls never email the client directly, cc me always"),
    ("rule", "Do NOT auto-merge dependabot PRs."),
    ("rule", "Under no circumstances should the patient's name show up in the summary."),
    ("rule", "Only Maria can approve purchases."),
    ("rule", "Leave the legacy module alone."),
    ("rule", "Answer me in French, always."),
    ("rule", "Any change to the schema has to be reviewed by Omar."),
    ("rule", "Every invoice gets a PO number."),
    ("rule", "We don't use cloud storage for patient files."),
    ("rule", "The kids must be in bed by eight."),
    ("rule", "My doctor told me to avoid grapefruit."),
    ("rule", "Could you please always cite the source?"),
    ("rule", "If a test fails, never delete it."),
    ("rule", "Nothing goes out on weekends, ok?"),
    ("limit", "Keep replies under 200 words."),
    ("limit", "The whole renovation can't go over 15k."),
    ("limit", "max 3 meetings a day for me"),
    ("limit", "I can't spend more than 60 bucks on the gift."),
    ("limit", "The class can have at most 24 pupils."),
    ("value", "My budget is 1,200 EUR."),
    ("value", "The deadline is 4 May."),
    ("value", "My flight is LH 123."),
    ("value", "The meeting moved to 15:30."),
    ("value", "We're using port 8081."),
    ("value", "My new address is 12 Elm Street."),
    ("value", "Call me Sam."),
    ("value", "The wifi name is sunflower22."),
    ("value", "standup: 9:15"),
    ("decision", "We decided to go with Postgres."),
    ("decision", "Let's stick with REST."),
    ("decision", "The committee chose option B."),
    ("decision", "Decision: monthly payments."),
    ("goal", "The goal is to launch by 1 June."),
    ("goal", "I'm trying to run a half marathon in October."),
    ("goal", "End goal: zero manual steps in the release."),
    ("commitment", "I'll send you the numbers by Friday."),
    ("commitment", "We promised the client a demo next Thursday."),
    ("preference", "I prefer window seats."),
    ("preference", "I'm vegetarian."),
    ("preference", "I can't stand open-plan hotels."),
    ("preference", "I don't eat pork."),
    ("correction", "Not Tuesday but Thursday."),
    ("correction", "Make it 40."),
    ("correction", "Actually, spaces."),
)

NOT_BINDING = (
    "I never liked school.",
    "He must be tired.",
    "That must be so hard for you!",
    "That must\u2019ve been amazing.",
    "Should I never use tabs?",
    "Do we have to deploy on Fridays?",
    "What if we must not use the card?",
    "If we must pay 300 EUR I would rather stay at home.",
    "Suppose the limit is 300 EUR.",
    "Maybe we should use Postgres.",
    "I might go with Redis.",
    "We decided to go to the beach yesterday.",
    "My mom always said never go to bed angry.",
    "She told us we must never look back.",
    "Don't worry about it!",
    "Never mind.",
    "You never know.",
    "No problem at all.",
    "I can't wait to see it.",
    "Let's go!",
    'The song goes "never gonna give you up".',
    'It said "Never enter this room without a badge" on the door.',
    "I had to overcome so many obstacles to get here.",
    "It was like nature was telling me to stop and admire its beauty.",
    "The prospect said they would never buy without a certificate.",
    "The nurse told my flatmate she must always fast before the test.",
    "My boss never lets anyone leave early; he must be the worst manager in town.",
    "A colleague says one should never use inheritance.",
    "According to the bylaws no member may vote twice.",
    "My landlady never answers the phone.",
    "In Japan you must never tip. Is that right?",
    "Suppose you only had one sentence. You must mention the price.",
    "A train must never exceed 80 km/h. How long does it take to Rome?",
    "I wish I could never work again.",
)


@pytest.mark.parametrize(("kind", "text"), BINDING, ids=lambda value: str(value)[:40])
def test_a_sentence_that_binds_is_found_with_its_kind_and_its_words(kind, text):
    (statement,) = find_statements(text, "user")
    assert (statement.kind, statement.text) == (kind, text)


@pytest.mark.parametrize("text", NOT_BINDING)
def test_questions_hypotheses_narration_and_idioms_bind_nobody(text):
    assert find_statements(text, "user") == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("My budget is 1,200 EUR.", "1,200 EUR"),
        ("The deadline is 4 May.", "4 May"),
        ("The meeting moved to 15:30.", "15:30"),
        ("We're using port 8081.", "8081"),
        ("My flight is LH 123.", "LH 123"),
        ("The limit is not 200 but 350 EUR.", "350 EUR"),
        ("Use spaces instead of tabs.", "spaces"),
        ("The owner is Anna Schmidt.", "Anna Schmidt"),
    ],
)
def test_the_value_is_what_the_sentence_sets(text, value):
    assert [item.value for item in find_statements(text, "user")] == [value]


@pytest.mark.parametrize(
    "text",
    [
        "Never delete anything in production.",
        "Don't email customers without my approval.",
        "Ask me before you pay anything.",
        "Secrets never go into the repo.",
        "Refunds above 50 EUR need a manager's sign-off.",
        "I'm allergic to peanuts.",
        "Leave the legacy module alone.",
        "The merger is confidential.",
    ],
)
def test_prohibitions_and_approvals_are_safety_rules(text):
    assert [item.is_safety for item in find_statements(text, "user")] == [True]


@pytest.mark.parametrize(
    "text", ["Use tabs.", "I prefer window seats.", "no emojis in the replies please", "The deadline is 4 May."]
)
def test_style_and_values_are_no_safety_rules(text):
    assert [item.is_safety for item in find_statements(text, "user")] == [False]


FOREIGN = (
    ("rule", "Bitte niemals am Freitag deployen."),
    ("rule", "Du darfst die Datenbank nicht l\u00f6schen."),
    ("rule", "Ne supprime jamais la base de production."),
    ("rule", "Nunca borres la base de datos sin mi permiso."),
    ("rule", "N\u00e3o pode enviar e-mails para os clientes."),
    ("rule", "Non usare mai la carta aziendale."),
    ("rule", "Gebruik nooit mijn priv\u00e9nummer."),
    ("rule", "Nigdy nie wysy\u0142aj maili do klient\u00f3w."),
    (
        "rule",
        "\u041d\u0438\u043a\u043e\u0433\u0434\u0430 \u043d\u0435 \u0443\u0434\u0430\u043b\u044f\u0439 \u0440\u0435\u0437\u0435\u0440\u0432\u043d\u044b\u0435 \u043a\u043e\u043f\u0438\u0438.",
    ),
    ("rule", "\u7edd\u5bf9\u4e0d\u8981\u5220\u9664\u751f\u4ea7\u6570\u636e\u5e93\u3002"),
    (
        "rule",
        "\u672c\u756a\u306e\u30c7\u30fc\u30bf\u306f\u524a\u9664\u3057\u306a\u3044\u3067\u304f\u3060\u3055\u3044\u3002",
    ),
    ("rule", "\uc808\ub300 \uc6b4\uc601 \ub370\uc774\ud130\ub97c \uc0ad\uc81c\ud558\uc9c0 \ub9c8\uc138\uc694."),
    (
        "rule",
        "\u0644\u0627 \u062a\u062d\u0630\u0641 \u0642\u0627\u0639\u062f\u0629 \u0627\u0644\u0628\u064a\u0627\u0646\u0627\u062a \u0623\u0628\u062f\u0627.",
    ),
    (
        "rule",
        "\u0917\u094d\u0930\u093e\u0939\u0915 \u0915\u094b \u0915\u092d\u0940 \u092d\u0940 \u0938\u0940\u0927\u0947 \u0908\u092e\u0947\u0932 \u092e\u0924 \u0915\u0930\u094b\u0964",
    ),
    ("rule", "Asla cuma g\u00fcn\u00fc yay\u0131na alma."),
    ("decision", "Wir haben uns f\u00fcr Postgres entschieden."),
    ("preference", "Je pr\u00e9f\u00e8re le train."),
    ("limit", "El presupuesto es de 300 EUR."),
)


@pytest.mark.parametrize(("kind", "text"), FOREIGN)
def test_other_languages_are_read_by_their_binding_words(kind, text):
    (statement,) = find_statements(text, "user")
    assert (statement.kind, statement.text) == (kind, text)
    assert statement.is_safety == (kind == "rule")


PASTES = (
    "> Never deploy on Fridays.",
    "```\n# never deploy on Fridays\nuse tabs\n```",
    "~~~\nNever deploy on Fridays.\n~~~",
    "    Never deploy on Fridays.",
    "Here is the email:\n\nDear team,\n\nNever deploy on Fridays. The deadline is 4 May.\n\nBest, Ann",
    "The page says never deploy on Fridays.",
    "From the docs: You must always use HTTPS.",
    "Summarize this article: You must never pay more than 300 EUR.",
    "Can you proofread this text?\n\nHere it is, the text:\nYou must always use HTTPS.",
    "From: Ann <ann@acme.io>\nTo: Bob\nSubject: Rules\n\nNever deploy on Fridays.",
    "fyi\n\n---------- Forwarded message ---------\nFrom: Ann\nNever deploy on Fridays.",
    "On Mon, 4 May 2026 at 9:00, Ann wrote:\nNever deploy on Fridays.",
    '{"rule": "never deploy on Fridays",\n "limit": "at most 200 EUR"}',
    "2026-05-04 10:00:00 ERROR never retry this request\n2026-05-04 10:00:01 INFO limit is 200 EUR",
    "| rule | text |\n|---|---|\n| 1 | Never deploy on Fridays |",
    "<document>\nNever deploy on Fridays.\n</document>",
    "\u201cNever deploy on Fridays,\u201d she wrote.",
    'The sign read "Never enter".',
    "def f():\n    # never call this\n    return must_not(x);",
    "The licence says you may not remove this notice and must always give credit.",
    "The innkeeper leans in and whispers: never go into the mill after dark.",
    "Spam I got today: Never share your PIN! Always click our link.",
    "WhatsApp from my sister: never bring wine, only juice.",
    "09:14 - Bea: guys please never use my mug\n09:15 - Cem: ok, only yours from now on",
    "The style guide of our competitor says to always wrap at 80 columns.",
    "Act 2, scene 1. KING: Never speak of this again!",
    "[12:05] Ana: never deploy on Fridays\n[12:06] Ben: ok",
    "[Ana] never deploy on Fridays.\n[Ben] ok.",
    "[2026-11-26 12:05:01] ERROR: You must never run as root.",
    "Ana  12:05 PM\nNever deploy on Fridays.",
    "<p>Never deploy on Fridays.</p>",
    'My sister said, "Dye it.\nNever wash it hot.\nAvoid the sun."',
    "Interviewer: Do you always work late?\nCandidate: I never work weekends.",
    "Speaker 1: Our policy is that we never refund. Speaker 2: You must refund me by Friday.",
)


@pytest.mark.parametrize("text", PASTES)
@pytest.mark.parametrize("speaker", ["user", "assistant"])
def test_quoted_and_pasted_text_never_enters(text, speaker):
    assert find_statements(text, speaker) == ()


def test_the_words_around_a_paste_are_the_users_own():
    text = "Never pay by card.\n\n```\nalways pay by card\n```\n\nAlways ask me before you order."
    assert [item.text for item in find_statements(text, "user")] == [
        "Never pay by card.",
        "Always ask me before you order.",
    ]


ORDER = "Fix the login test. Never touch settings.py."


@pytest.mark.parametrize(
    "text",
    [
        f"[12:05] {ORDER}",
        f"[Thu 26 Nov 2026, 12:05] {ORDER}",
        f"2026-11-26T12:05:00Z {ORDER}",
        f"[Ana] {ORDER}",
        f"<ana> {ORDER}",
        f"[Current time: 12:05]\n{ORDER}",
        f"<time>12:05</time>\n{ORDER}",
        f"{ORDER}\n[12:05]",
        f"{ORDER}\n<time>12:05</time>",
        f"<task>\n{ORDER}\n</task>\n\n<environment_details>\n# Current Time\n12:05\n</environment_details>",
        f"<environment_details>\n# Current Time\n12:05\n</environment_details>\n{ORDER}",
        f"<user_query>{ORDER}</user_query>",
        f"The failing code is below:\n```\nx = 1\n```\n{ORDER}",
        f"Conversation info (untrusted metadata):\n```json\n{{}}\n```\n\n{ORDER}",
    ],
)
def test_what_an_application_writes_around_the_words_leaves_them_the_users(text):
    assert [item.text for item in find_statements(text, "user")] == ["Never touch settings.py."]


@pytest.mark.parametrize("mark", ["", "[12:05] ", "<time>12:05</time>\n", "[Ana] "])
def test_instructions_behind_such_a_mark_are_read_whole(mark):
    text = f"{mark}<rules>\nUse tabs.\nValidate rows where they enter.\n</rules>\nFix the test."
    assert [item.text for item in find_statements(text, "user")] == ["Use tabs.", "Validate rows where they enter."]


def test_a_long_paste_is_read_at_its_ends_only():
    paste = "\n\n".join(
        f"Clause {number}. The tenant must never keep more than {number} goats." for number in range(200)
    )
    found = find_statements(f"Never share this with Bob.\n\n{paste}\n\nThe deadline is 4 May.", "user")
    assert found[0].text == "Never share this with Bob."
    assert found[-1].text == "The deadline is 4 May."
    assert len(found) < 50


def test_lists_and_paragraphs_give_their_sentences():
    text = "Some rules for you:\n- Never use e.g. `eval()`, i.e. no dynamic code.\n2. Always answer in German!\n\nHi. My budget is 300 EUR. Thanks"
    assert [item.text for item in find_statements(text, "user")] == [
        "Never use e.g. `eval()`, i.e. no dynamic code.",
        "Always answer in German!",
        "My budget is 300 EUR.",
    ]


def test_a_sentence_wrapped_over_lines_is_one():
    text = "Please never send any of the quarterly figures to the\npress before the board has seen them."
    assert [item.text for item in find_statements(text, "user")] == [text.replace("\n", " ")]


def test_of_the_assistant_decisions_and_commitments_alone_are_read():
    assert [item.kind for item in find_statements("I'll use Postgres for this.", "assistant")] == ["decision"]
    assert [item.kind for item in find_statements("I won't touch main. I'll always ask before deploying.", "assistant")]
    for text in ("You must never do that.", "My budget is 3 EUR.", "I'll look at the file first.", "Let me check."):
        assert find_statements(text, "assistant") == ()


def test_a_system_prompt_is_read_whole():
    prompt = "\n".join(f"- Never mention product {number}." for number in range(100))
    assert len(find_statements(prompt, "system")) == 100


HOSTILE = {
    "one line": "never " * 34_000,
    "letters": "a" * 200_000,
    "numbers": "1,1" * 70_000,
    "quotes": '"' * 200_000,
    "tags": "<document>" * 20_000,
    "brackets": "(((" * 70_000,
    "colons": "from: to: " * 20_000,
    "no ends": "we must not pay more than the limit of " * 5_000,
    "spaces": " " * 100_000 + "never " + " " * 100_000,
    "lines": "- never do it\n" * 15_000,
    "names": "Ann Bob Cid " * 17_000,
    "fences": "```" * 60_000,
    "comments": "Rules:\n" + "<!--" * 50_000,
    "commas": "a, " * 70_000,
    "nul": "never\x00\x01 deploy" * 10_000,
    "paths": "a/b.c-" * 30_000,
    "wrapped": ("x" * 60 + "\n") * 3_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("speaker", ["user", "system", "assistant"])
def test_hostile_text_is_read_in_bounded_work(text, speaker):
    # A pattern that backtracks takes minutes: the time limit of the suite ends it.
    assert len(find_statements(text, speaker)) <= MAX_STATEMENTS


@pytest.mark.parametrize(
    "text",
    [
        "Show all questions that have no answer.", "Include all messages from Bob in the summary.", "I want you to fix each answer in quiz.json.",
        "Write all the replies to the mails that came today.", "For each message in the queue, call the API once.",
    ],
)  # fmt: skip
def test_messages_of_somebody_or_in_something_are_not_the_answers_of_the_agent(text):
    assert not [item for item in find_statements(text, "user") if item.kind == "rule" and item.likelihood == 1]


@pytest.mark.parametrize(
    "text", ["End each reply with a question.", "Please respond to all messages in the style of Yoda.", "Answer all questions in German."]
)  # fmt: skip
def test_how_answers_are_to_be_is_a_sure_rule(text):
    (item,) = find_statements(text, "user")
    assert (item.kind, item.likelihood) == ("rule", 1)


def test_three_languages_in_one_text():
    text = "Never deploy on Fridays. Bitte niemals die Kunden direkt anrufen. Nunca borres la base de datos."
    assert [item.kind for item in find_statements(text, "user")] == ["rule"] * 3


@pytest.mark.parametrize(
    "text",
    [
        "Schick nichts an die Presse, bevor ich es gesehen habe.",
        "Die neue Adresse ist Lindenweg 12.",
        "Nenn mich bitte Alex.",
        "Je suis allergique aux noix.",
        "Pas d'appels après 20 heures.",
        "La réunion est reportée à jeudi.",
    ],
)
def test_short_sentences_of_other_languages_bind(text):
    (statement,) = find_statements(text, "user")
    assert statement.text == text
    assert statement.likelihood == 1


@pytest.mark.parametrize(
    "text",
    [
        "Das Wetter ist heute wirklich schön.",
        "Erzähl mir etwas über Wien.",
        "Hm, tell me about hotels in region 10.",
        "The sign reads: never feed the ducks.",
    ],
)
def test_small_talk_questions_and_signs_bind_nobody(text):
    assert find_statements(text, "user") == ()


@pytest.mark.parametrize(
    "text",
    [
        "Four calls a day tops in July, last summer I almost passed out in an attic.",
        "Prices at the sale were a joke, the heifers can stay home and we'll put the bull over them.",
        "Lost a week of drawings last winter and there has to be a copy with the date in its name.",
    ],
)
def test_a_clause_that_binds_counts_where_another_tells_of_the_past(text):
    assert find_statements(text, "user")


@pytest.mark.parametrize(
    "text",
    [
        "You must not mow the verge that was sown less than 30 days ago.",
        "I'd like the whole crew through the ladder course by the last Friday of March.",
        "I must have the keys in my hands by Monday noon.",
        "The song sheet is what counts when two lists disagree.",
    ],
)
def test_an_order_may_name_the_past(text):
    assert find_statements(text, "user")


@pytest.mark.parametrize(
    "text",
    [
        "Could you begin each summary with the risks?",
        "Could you always greet Mrs Lund by name?",
        "Would you mind measuring in grams, not ounces?",
        "Can the tide table go at the top of the plan?",
    ],
)
def test_a_wish_that_stands_may_be_put_as_a_question(text):
    (wish,) = find_statements(text, "user")
    assert wish.kind == "preference"
    assert 0.5 <= wish.likelihood < 1


@pytest.mark.parametrize(
    "text",
    [
        "I'd appreciate it if my surname never showed up in public.",
        "It would be lovely if you always gave me two options.",
        "Perhaps it's best we leave the salaries out of the minutes from here on.",
        "Might I ask that you check with Renate before ordering anything?",
        "Could we agree that drafts go to Nina first?",
    ],
)
def test_an_indirect_order_is_a_preference(text):
    assert [statement.kind for statement in find_statements(text, "user")] == ["preference"]


@pytest.mark.parametrize(
    "text",
    [
        "Never decide what my character does.",
        "For refunds above 150 euros you need a sign-off from Katja; below that, just do it.",
        "The site goes live when I say so.",
    ],
)
def test_a_rule_may_have_words_of_stories_and_of_texts(text):
    assert [statement.kind for statement in find_statements(text, "user")] == ["rule"]


def test_what_each_must_have_is_a_rule_and_what_somebody_must_have_done_is_a_guess():
    for text in ("Every file must have a license header.", "The summary should have no more than 100 words."):
        assert [statement.kind for statement in find_statements(text, "user")] in (["rule"], ["limit"])
    for text in ("She must have a cold.", "The dog must have eaten it.", "We should have a picnic sometime!"):
        assert find_statements(text, "user") == ()


def test_what_others_never_do_and_what_should_never_have_been_done_bind_nobody():
    for text in ("Our neighbours never take their bins in.", "My colleague thinks we should never have bought it."):
        assert find_statements(text, "user") == ()


def test_a_chat_leaves_out_apostrophes():
    for text in ("dont call me on weekends pls", "im vegan", "u cant share the client file"):
        assert find_statements(text, "user"), text


@pytest.mark.parametrize("text", ["Always use uv.\n\nThoughts?", "Never rebase shared branches. Agree?"])
def test_a_rule_that_asks_for_an_opinion_is_one(text):
    assert [statement.kind for statement in find_statements(text, "user")] == ["rule"]


@pytest.mark.parametrize(
    "text",
    [
        "Can you show me the first page?",
        "Could you read me the last line again?",
        "Can you recommend a cafe for every budget?",
    ],
)
def test_a_question_that_asks_for_something_once_binds_nobody(text):
    assert find_statements(text, "user") == ()


def test_a_safety_rule_that_names_who_said_it_is_no_guess():
    [statement] = find_statements("My doctor said I should never take ibuprofen.", "user")
    assert statement.is_safety
    assert statement.likelihood == 1


def test_a_story_binds_nobody_whatever_values_it_has():
    assert not find_statements("Last month I went to Leeds with a cousin, and we saw a badger near room007.", "user")


@pytest.mark.parametrize(
    "text",
    [
        "Client funds sit in their own account and pay no bill of the office.",
        "Only the night nurse opens the poison cabinet.",
        "The wire goes out once Petra has looked it over.",
        "A card number goes into no chat.",
    ],
)
def test_what_does_harm_is_a_safety_rule_also_without_never(text):
    assert any(statement.is_safety for statement in find_statements(text, "user"))


@pytest.mark.parametrize("part", [". ", "\n ", ", , ", "\n -- ", "so, ", ".\n"])
def test_a_question_without_a_mark_is_looked_for_in_a_long_text_in_no_time(part):
    started = time.process_time()
    assert not QUESTION.search(f"{part * 20_000}x")
    assert QUESTION.search(f"{part * 20_000}. where is it")
    assert time.process_time() - started < 5


def test_a_long_line_of_short_sentences_takes_no_time():
    started = time.process_time()
    assert len(list(split_sentences("1. a " * 12_000))) == 12_000
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "text",
    [
        "Fix the failing test number 1.",
        "Summarise part 3 and keep it short.",
        "Can you create a table with 5 columns?",
        "Thanks! Now translate the second paragraph into German.",
        "Please write a function that parses dates.",
        "OK, update the README with the new version 2.1.",
    ],
)
def test_an_order_to_do_something_once_is_no_statement(text):
    assert find_statements(text, "user") == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Add a docstring to every public function.", "rule"),
        ("Run the tests before each commit.", "rule"),
        ("Find me hotels under 150 EUR a night.", "limit"),
        ("Change the deadline to 4 May.", "correction"),
        ("Write in British English.", "rule"),
        ("Never delete the files in build/.", "rule"),
    ],
)
def test_an_order_that_lasts_is_one(text, kind):
    assert [statement.kind for statement in find_statements(text, "user")] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Throughout this whole chat, adopt the voice of a tour guide, and end each answer with the words 'Mind the gap, dear guests...'.",
        "Please mention a river at the start of every answer!",
        "For our conversation today, I'd like you to include a proverb in each reply.",
        "I'd like you to pretend to be a pirate throughout our conversation.",
        "All of your responses will use only the past tense.",
        "Explain without any jargon during our chat.",
    ],
)
def test_an_order_about_all_answers_is_a_sure_rule(text):
    (statement,) = find_statements(text, "user")
    assert (statement.kind, statement.likelihood) == ("rule", 1)


@pytest.mark.parametrize(
    "text",
    [
        "We had a lovely time during our conversation.",
        "Thank you for your very informative answers.",
        "<!-- Please never open an issue without a log. -->",
        "### Actual outcome\n\n_No response_",
        "The page looks good now.",
    ],
)
def test_the_words_of_a_form_and_praise_bind_nobody(text):
    assert find_statements(text, "user") == ()


@pytest.mark.parametrize(
    "text",
    [
        "Tell nobody about the layoffs.",
        "Mention it to nobody.",
        "Nobody but me approves refunds.",
        "Let nothing leave the lab.",
    ],
)
def test_what_nobody_may_is_a_safety_rule(text):
    (statement,) = find_statements(text, "user")
    assert statement.is_safety


def test_what_others_only_do_binds_nobody_and_what_a_child_only_drinks_does():
    assert find_statements("My roommate only drinks oat milk.", "user") == ()
    assert find_statements("My daughter only drinks oat milk.", "user")


def test_dictated_text_gives_its_clauses():
    said = (
        "ok so the meeting is on tuesday at ten and never call john before nine and also the budget is two hundred euros "
        "and use the blue template not the red one"
    )
    assert [statement.text for statement in find_statements(said, "user")] == [
        "the meeting is on tuesday at ten",
        "never call john before nine",
        "the budget is two hundred euros",
        "use the blue template not the red one",
    ]
    condition = "you should transfer the caller to a human agent if and only if the request is not one of those that you can handle with your tools"
    assert condition in [statement.text for statement in find_statements(condition, "user")]


@pytest.mark.parametrize(
    ("said", "kind", "value"),
    [
        ("lets make the limit two hundred no wait three hundred", "rule", "three hundred"),
        ("always reply in french no sorry in dutch", "rule", "dutch"),
        ("my budget is 400 scratch that 450", "value", "450"),
        ("the meeting is on tuesday i mean wednesday at nine", "value", "wednesday"),
        ("keep it under ten minutes er fifteen minutes every time", "limit", "fifteen minutes"),
    ],
)
def test_who_takes_a_word_back_in_the_same_breath_means_the_next_one(said, kind, value):
    (statement,) = find_statements(said, "user")
    assert (statement.kind, statement.value, statement.text) == (kind, value, said)


@pytest.mark.parametrize(
    "said",
    [
        "alwyas use the staging server",
        "nver delete files",
        "plaese neevr share the photos",
        "um never never touch the the stove",
    ],
)
def test_a_slip_in_the_word_that_binds_makes_no_guess_of_it(said):
    (statement,) = find_statements(said, "user")
    assert (statement.kind, statement.likelihood, statement.text) == ("rule", 1.0, said)


def test_a_condition_without_a_comma_is_no_part_of_the_order():
    (statement,) = find_statements("when the kids are home don't play any explicit songs", "user")
    assert statement.is_prohibition


@pytest.mark.parametrize(
    "order",
    [
        "turn off the kitchen light please",
        "hey alexa play the jazz list",
        "set an alarm for the eggs",
        "send an email to dana saying hi",
    ],
)
def test_what_is_to_be_done_at_once_binds_nobody_later(order):
    assert find_statements(order, "user") == ()


def test_of_a_long_dictated_message_the_rule_is_left():
    before = (
        "so i went to the market and it was raining and my sister had all these bags with her and we talked about the weather and how "
        "the bus was late again and then this man came and he asked us about the way to the station and she told him and he was so happy "
    )
    rule = "never order anything from that online shop again"
    said = f"yeah hi um {before * 9}and anyway what i wanted to say is please {rule} and so then i got home and made some tea {before * 8}"
    assert len(said.split()) > 900
    (statement,) = find_statements(said, "user")
    assert rule in statement.text
    assert len(statement.text) < 120


def test_what_somebody_tells_in_speech_binds_nobody():
    told = (
        "i think we have to have a trial for this person and then two weeks down the road we have to go back and i don't care for that music "
        "and you can't eat money and they have to be in one of their paper bags and we don't charge anything that we can't pay off"
    )
    assert find_statements(told, "user") == ()
    (rule,) = find_statements(f"{told} and never share my address with them", "user")
    assert rule.text == "never share my address with them"


def test_what_a_speaker_reports_is_not_theirs_and_what_follows_is():
    told = (
        "and he looked at the contract and said the deposit was not legal and that nobody has to pay it and i was so happy about that "
        * 3
    )
    (rule,) = find_statements(f"so {told}and the most important thing is that you do not contact him ever", "user")
    assert rule.text == "the most important thing is that you do not contact him ever"


@pytest.mark.parametrize(
    "said", ["yaar kal office jana hai so i will be late", "kya baat hai bhai tum to bade log ho gaye"]
)
def test_of_a_sentence_of_unknown_words_nothing_is_guessed(said):
    assert find_statements(said, "user") == ()


@pytest.mark.parametrize(
    "question",
    [
        "whats the max i said i would pay",
        "is the meeting scheduled for tomorrow",
        "what will be the weather on monday this week",
        "y do ppl never reply to me",
        "r u coming by at 5 or not",
        "should i never mix bleach and vinegar",
        "will it be over ninety degrees tomorrow",
        "how much is the rent of the flat on mill street",
    ],
)
def test_a_question_that_has_no_mark_binds_nobody(question):
    assert find_statements(question, "user") == ()


@pytest.mark.parametrize(
    "small_talk",
    [
        "The garden is full of snails.",
        "The weekend went by too quickly.",
        "I'm watching the rain.",
        "This coffee is terrible.",
    ],
)
def test_a_sentence_without_a_full_stop_is_read_like_one_with_it(small_talk):
    said = [
        find_statements(text, "user") for text in (small_talk, small_talk.rstrip("."), small_talk.rstrip(".").lower())
    ]
    assert [len(statements) for statements in said] == [0, 0, 0]


@pytest.mark.parametrize("text", ["What's said in this room stays in this room", "when you leave always lock the door"])
def test_a_rule_that_begins_like_a_question_is_one(text):
    assert find_statements(text, "user")


@pytest.mark.parametrize(
    "lead",
    [
        "The hostel has these house rules:",
        "My colleague's AGENTS.md says:",
        "Their policy is:",
        "What do you think of our landlord's rules?",
        "My old company had these conventions:",
        "The job ad lists:",
        "Her instructions were:",
    ],
)
def test_rules_of_somebody_else_bind_nobody_here(lead):
    rules = "- Never leave luggage in the hall.\n- Always bring a towel."
    assert find_statements(f"{lead}\n{rules}", "user") == ()
    (own,) = find_statements(f"{lead}\n{rules}\n\nNever book more than two nights.", "user")
    assert own.text == "Never book more than two nights."


@pytest.mark.parametrize(
    "lead",
    [
        "Our conventions:",
        "My rules for you:",
        "The project's guidelines are below, obey them:",
        "Our client's rules, which you must follow:",
        "My doctor's rules:",
        "Use my style guide:",
        "Security policy for this repo:",
        "The client wants this:",
        "The assignment states:",
        "The function has these requirements:",
        "The API has the following limits:",
        "We build it for Acme. Acme's requirements:",
        "The next release's requirements:",
        "Today's rules:",
        "There's a list of conditions:",
        "Could you apply the client's rules:",
    ],
)
def test_rules_that_the_agent_is_to_follow_hold_whoever_wrote_them(lead):
    rules = "- Never leave luggage in the hall.\n- Always bring a towel."
    found = [item.text for item in find_statements(f"{lead}\n{rules}", "user")]
    assert [text.rpartition(": ")[2] for text in found[-2:]] == [line[2:] for line in rules.splitlines()]


def test_a_paragraph_with_rules_of_somebody_else_ends_before_the_users_own():
    (own,) = find_statements("My neighbour's rules:\nNever park here.\n\nAnd you: never touch the database.", "user")
    assert own.text == "And you: never touch the database."

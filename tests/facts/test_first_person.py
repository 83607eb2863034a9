"""What people say of themselves becomes facts, without a model; what they ask, quote, suppose or keep secret does not."""

import pytest

from pagein import TaskStep
from pagein.backends.memory import InMemoryLog
from pagein.events.entries import Source
from pagein.facts.extraction.candidates import Utterance
from pagein.facts.extraction.rules import find_candidates

STATED = {
    "knowledge": (
        "Call me Ana.", "My name's Tomasz.", "Hi, I'm Priya from Leeds.", "My e-mail address is ana.ruiz@example.org.",
        "I live in Rome.", "I\u2019m based in Nairobi these days.", "We just moved to a small town near Lyon.",
        "I grew up in the north of Chile.", "I'm a nurse.", "I work as a welder at a shipyard.", "My wife Ines is a baker.",
        "I'm studying law in Ghent.", "As a single parent, I plan every hour.", "I have two daughters.",
        "By the way, my cousin Leo, who is a plumber, lives next door.", "I'm 41 years old.", "I teach chemistry at a school.",
        "I lost my job at the bank.", "My dog is called Bruno.", "I've earned a degree in botany, so can you skip the basics?",
        "I'm learning Basque.", "I got promoted to head of sales.", "My wife and I are retired.",
        "Our parser is at 10.0.0.4.",
        "Penicillin gives me hives.", "I faint when blood is drawn.", "Ella can't have eggs or sesame.",
        "I was born in 1983.", "My favourite composer is Satie.", "We got married on June 4th, 2019.", "My birthday is on 3 May.",
        "I've been a beekeeper for ten years.", "I'm on the board of our housing association.", "I'm training to become a paramedic.",
        "I'm in the Pacific time zone.", "I spend my summers on Gotland.", "My clinic is on Harbour Street.", "I maintain the parser module.",
        "Ines here.", "My kids are Noa and Eli.", "I've been in Dublin for three years now.", "I went to school in Perth.", "I'm responsible for the billing service.",
        "I sold my car.", "I was born and raised in Accra.", "I use a wheelchair.", "My son has asthma.", "I've been married for eleven years.", "I work nights at the bakery.", "We bought the house in 2016.", "My boss, Karin, is from Oslo.",
        "I have two budgies.", "I own a small vineyard.", "I don't have any siblings.", "I'm not a good dancer.", "I'm in my late thirties.", "My aunt restores violins.", "I know how to sail.", "My grandfather passed away in spring.", "We live two hours from Bergen.", "My uncle is a bit into falconry.", "I had a stroke in 2013.", "I'm currently using a fountain pen.",
        "When I was in the navy, we sailed to Malta.", "I'm not sure what suits me, but I have curly hair.", "Maybe, though I have four brothers.", "He cooks and I am a librarian.", "I lived in Ghana until 2011.",
        "My cousin has a rare condition.", "I'm in Porto these days.",
    ),
    "preference": (
        "I prefer tabs over spaces.", "I'm vegetarian.", "I love hiking in the rain.", "I can't stand loud offices.",
        "I'm a big fan of board games.", "I don't eat pork.", "I hate flying.",
        "Green is my favourite colour.", "I've always been drawn to old maps.", "I enjoy cooking for friends.",
        "I'm really into birdwatching, so any suggestions would be great!", "I'd rather walk than drive.", "I've got a nut intolerance.",
        "i cant stand jira", "I won't touch anything with mushrooms.", "The only social network I use is Mastodon.", "I work best with music on.",
        "I like it quiet when I work.", "I don't do early mornings.", "Short answers suit me best.", "Gardening helps me relax.", "I love novels that are set at sea.", "Nice, I love old trains.", "I'm interested in astronomy.", "I love the sea.",
    ),
    "behaviour": (
        "I usually have lunch at eleven.", "I go running every morning.", "I take the train on Fridays.",
        "I've been learning Polish for two years.", "We meet once a week.", "My team plans its sprint every second Monday.", "I keep a food diary.", "I drive an old Saab.", "I nap after lunch.",
        "My laptop runs Fedora.", "Mondays are my day off.", "I go swimming after work.", "I switched from Vim to Zed last month.", "I take the bus to work.", "I tend to forget names.",
        "I never drive at night.", "On weekends, I bake bread.", "I no longer work at the mill.", "We use GitLab for reviews.", "We're targeting Python 3.11.", "I paint with watercolours.", "I struggle with insomnia.", "I never listen to podcasts.", "We grow our own tomatoes.", "After dinner I walk by the river.", "I don't swim.", "I study law.", "I collect stamps.", "I've just joined Bosch.", "Yes, I juggle at the fair.",
        "I recently joined a choir.", "I've been taking violin lessons.", "I need a break now and then if I'm stressed, but I sleep well.", "I probably should not, but I still bake with butter.", "I'd love to, but I never learn from books.",
    ),
    "context": (
        "I'm flying to Porto on 12 March.", "I started the course in September.",
        "I have an appointment at the clinic on April 9th.",
    ),
    "correction": (
        "Use pytest, not unittest.", "Actually, I live in Milan now, not Rome.", "Actually, I did pay for the seat.",
        "I meant the blue line, not the red one.", "No, the port is 9090.", "The release has moved to 10 May.",
    ),
}  # fmt: skip

NOT_STATED = (
    "We all make mistakes and we learn from them.", "We humans learn from our mistakes.",
    "I prefer the second option you gave.", "I drive myself crazy with this bug.", "I play with the idea of rewriting it.", "I pay no attention to warnings.", "I always forget the syntax of this command.", '"Call me Ishmael" is the first line of the book.', "For this exercise I am the customer.", "Test sentence: I have three cats.",
    "Always look on the bright side, as the song goes.", "I never said I was a doctor.", "I almost moved to Oslo once.", "I review the code now.", "// my favourite hack is below",
    "Write a story in the first person: I am a lighthouse keeper.", "INFO my name is worker-7", "From: Ana\nI am out of office until May 3.", "I watch the video and it stops.", "lol I'm a potato person.",
    "I have a question about the trip.", "I have a bad cough.", "We have a meeting at noon.", "I recommend the soup.", "I sent him a scarf.", "Actually, I was surprised.", "Always here to help.", "I like the idea of a garden.",
    "Tell me if I have allergies.", "If I had a dog, I would walk more.", "It's booked for 23 May, and I paid.", "I'm a day late.", "We learned a lot.", "My advice is to wait.", "I probably have a cold.", "Their trust keeps me going.",
    "I feel that these moments are when we grow.", "That keeps me busy.", "I hate to ask again.", "I fought with the printer and won.", "Anna thinks I paint well.", "I click on it and nothing happens.", "I have to leave early.",
    "I usually buy it at the market.", "They're my favourite.", "I try not to fall.", "Actually, I don't know.", "Roses for sure in the future.", "Might be nice in the future.", "Always learning something.", "My sister is waiting outside.", "I hate to use long words.", "I work until ten every night this week.", "I leave it open so that I see the light.",
    "That gives me headaches.", "It can't have eggs.", "Docker can't have spaces in paths.",
    "Do I live in Rome?", "If I lived in Rome, I would walk more.", "My sister says I live in the past.",
    "I love this idea!", "I like the second option.", "I'm looking for a flat in Rome.", "I want to fly on May 20th.",
    "I'd like to book a table for 4 June.", "I'm not sure if I'm a gold member.", "I think I might be allergic.",
    "I'm a bit tired.", "I'll try to run every day.", "It's my favourite.", "They always help me.", "I'm always happy to help.",
    "Maybe I'll move to Spain.", "Can you call me back at noon?", "I'm thinking of getting a dog.", "He told me I love trains.",
    "I used to live in Bern.", "I never thought of that.", "My password is hunter2.", "My PIN code is 4711, keep it.",
    "My API key is sk-proj-abcdefghijklmnop1234.", "Here is the mail:\nI live in Paris and I love opera.",
    '"I live in Paris," she wrote.', "> I live in Paris.", "```\nI live in Paris.\n```", "I can't wait to see it.",
    "You live in Rome.", "Imagine I live on Mars.", "I need 3 eggs every time, right?", "You are a helpful assistant called Max.", "Write a story in which I work for the state.",
    "Nobody calls me Bob.", "Oh sure, I just love being stuck in traffic.", "def name(self): self.name = 'my name is Ann'", "No, the test is still failing.",
    "In the future this may break.", "I stopped the server.", "We moved to the next item.", "From now on I'll be quiet.", "Don't use the third one.",
)  # fmt: skip


FOREIGN = {
    "Ich hei\u00dfe Jannis und wohne in Dresden.": "knowledge", "Ich bin Lehrerin an einer Schule.": "knowledge", "Ich rauche nicht mehr.": "behaviour",
    "Ich mag keine Rosinen.": "preference", "Jeden Dienstag gehe ich schwimmen.": "behaviour", "Nein, ich meinte den Mittwoch.": "correction",
    "Je m'appelle Sol\u00e8ne.": "knowledge", "J'ai d\u00e9m\u00e9nag\u00e9 \u00e0 Lille en mars.": "knowledge", "Je ne mange pas de porc.": "preference",
    "R\u00e9ponds-moi toujours en fran\u00e7ais.": "constraint", "Je fais du yoga chaque mardi.": "behaviour", "Mon chat s'appelle Tigre.": "knowledge",
    "Vivo en Quito.": "knowledge", "Soy al\u00e9rgica a las nueces.": "constraint", "Prefiero el tren.": "preference", "Mi hija se llama Luc\u00eda.": "knowledge",
    "\u6211\u53eb\u674e\u96f7\uff0c\u4f4f\u5728\u6210\u90fd\u3002": "knowledge", "\u6211\u4e0d\u5403\u732a\u8089\u3002": "preference", "\u6211\u6bcf\u5468\u4e8c\u53bb\u6e38\u6cf3\u3002": "behaviour",
}  # fmt: skip

FOREIGN_NOT = (
    "Diese Woche gehe ich jeden Tag ins Schwimmbad.", "Cette semaine je cours tous les matins.", "\u8fd9\u5468\u6211\u6bcf\u5929\u8dd1\u6b65\u3002",
    "Wo wohne ich?", "Wenn ich in Berlin wohne, was kostet das?", "Er wohnt in Kiel.", '\u00dcbersetze "ich hei\u00dfe Anna" ins Englische.', "Ich bin gleich da.",
    "We gaan morgen zwemmen.", "We eten graag vis.", "I ragazzi sono arrivati tardi.", "I prezzi salgono ogni anno, come sempre.", "We wtorek id\u0119 do lekarza.", "I znowu pada deszcz.", "I djeca idu u \u0161kolu.",
    "Nein, ich bin satt.", "Non, je suis pr\u00eat.", "No, soy yo otra vez.", "\u4e0d\uff0c\u6211\u6ca1\u6709\u3002",
    "Si j'habite \u00e0 Lyon, combien ?", "Je suis pr\u00eat.", "J'aime bien \u00e7a.", "Elle habite \u00e0 Nice.", "Si vivo en Madrid, pago mucho.", "Tengo una pregunta.",
    "Quiz\u00e1s soy al\u00e9rgico.", "\u5982\u679c\u6211\u4f4f\u5728\u4e0a\u6d77\uff0c\u623f\u79df\u662f\u591a\u5c11\uff1f", "\u6211\u6709\u4e00\u4e2a\u95ee\u9898\u3002",
)  # fmt: skip

REPLACED = (
    ("I live in Rome.", "I live in Lyon."), ("I have a dog.", "My dog died."), ("I have a girlfriend.", "We broke up."), ("I smoke a pack a day.", "I stopped smoking."), ("I drive a Golf.", "I sold my Golf."),
    ("I drink coffee every morning.", "I gave up coffee."), ("I study law.", "I finished my law degree."), ("I work at Acme.", "I left Acme."),
    ("I work for Siemens.", "I've just joined Bosch."), ("I work at the library.", "I left the library in June."), ("I study law.", "I study medicine now."), ("My team uses Jira.", "My team switched from Jira to Linear."),
    ("I live in Rome.", "I'm in Turin these days."), ("I live in Rome.", "We just relocated to Turin."), ("I live in Rome.", "My home is in Turin now."), ("I work at Acme.", "I started a new job at Globex."),
    ("I work at Acme.", "I quit my job at Acme."), ("I work as a baker.", "I'm a welder now."), ("I'm single.", "I got engaged in May."), ("I'm vegetarian.", "I'm vegan now."), ("I don't eat fish.", "I started eating fish again."),
    ("My phone number is 555-0101.", "My new number is 555-0199."), ("My e-mail is a@example.org.", "My new email address is b@example.org."), ("My email is a@example.org.", "Use b@example.org instead of a@example.org."),
    ("Our project is called Falcon.", "We renamed the project to Eagle."), ("Our deadline is on Friday.", "Our deadline is on Monday now."), ("My name is Anna.", "Call me Ana, not Anna."), ("I drive a Honda.", "I drive a Tesla now."),
    ("My boss is Karen.", "My new boss is Dave."), ("My manager is Karen.", "Karen left, Dave is my manager now."), ("I'm allergic to peanuts.", "I'm not allergic to peanuts after all."),
    ("I use Vim.", "I switched from Vim to Zed last month."), ("I live in Leeds.", "I moved from Leeds to York in May."), ("My doctor is Dr. Pham.", "My doctor is Dr. Osei now."),
    ("I'm vegetarian.", "I'm not vegetarian anymore, I eat fish again."), ("I work four days a week.", "I now work five days a week."), ("I go by Samantha.", "I go by Lee these days."),
    ("I'm allergic to wasp stings.", "I'm allergic to bee stings, not wasp stings as I said."),
    ("I live in Paris.", "I moved to Lyon."), ("I work at Acme.", "I no longer work at Acme, I'm at Globex now."), ("I'm vegetarian.", "I'm not vegetarian any more."),
    ("I prefer tea.", "I prefer coffee to tea these days."), ("Our deadline is on 3 May.", "The deadline has moved to 10 May."), ("I'm a nurse.", "I'm a doctor now."),
    ("I'm allergic to nuts.", "I was wrong, it's not nuts, I'm allergic to soy."), ("Call me Bea.", "Please call me Beatrice instead."),
    ("Ich wohne in Bonn.", "Ich bin nach Jena gezogen."), ("J'habite \u00e0 Metz.", "J'ai d\u00e9m\u00e9nag\u00e9 \u00e0 Pau."), ("Vivo en Quito.", "Me mud\u00e9 a Loja."),
    ("\u6211\u4f4f\u5728\u6210\u90fd\u3002", "\u6211\u642c\u5230\u4e86\u897f\u5b89\u3002"),
)  # fmt: skip

STANDING = (
    ("I have a dog.", "My cat died."), ("I like going for walks.", "I stopped going after my training."), ("I have a van.", "I sold my old phone."), ("I live in Rome.", "I live in a small flat."),
    ("My dog is called Rex.", "My other dog is called Max."), ("My dog is called Rex.", "My new dog is called Max."), ("My phone is a Pixel.", "My new phone number is 555-0100."), ("My sister is Anna.", "Call me Ana, not Anna."),
    ("I live in Rome.", "My sister moved to Turin."), ("I'm married.", "I'm vegan now."), ("I drive a van.", "I ride a bike now."), ("I work at Acme.", "I left the party, and I like tea now."), ("I live in Rome.", "We moved to Postgres, and now I like it cold."),
    ("I live in Paris.", "I'm visiting Lyon on 3 May."), ("I have a cat.", "I have a dog now."), ("I like jazz.", "I like opera now."), ("I'm a nurse.", "I'm a mother of two now."), ("I have a dog.", "I no longer have a cat."),
    ("My budget is 500 euros.", "My budget for flights is 300 euros now."), ("I live in Paris.", "Forget it, I like tea."), ("I work at Acme.", "My sister works at Globex now."),
    ("I live in Rome.", "I'm in Paris now for a week."), ("I work at Acme.", "I joined a gym."), ("I work at Acme.", "I have joined the chess club."),
)  # fmt: skip


def extracted(text):
    return find_candidates([Utterance("user", text, Source("s", "s0"))])


@pytest.mark.parametrize(("category", "text"), [(name, text) for name, texts in STATED.items() for text in texts])
def test_what_a_person_says_of_themselves_is_a_fact(category, text):
    (candidate,) = extracted(text)
    assert candidate.category == category
    assert candidate.content[1:] in text, "in their own words"
    assert "?" not in candidate.content


@pytest.mark.parametrize("text", NOT_STATED)
def test_what_nobody_says_of_themselves_is_none(text):
    assert extracted(text) == ()


@pytest.mark.parametrize(("text", "category"), FOREIGN.items())
def test_in_other_languages_too(text, category):
    (candidate,) = extracted(text)
    assert (candidate.content, candidate.category) == (text.rstrip(".\u3002"), category)


@pytest.mark.parametrize("text", FOREIGN_NOT)
def test_what_says_nothing_in_other_languages_is_none(text):
    assert extracted(text) == ()


def known_after(facts, *texts):
    log = InMemoryLog()
    for text in texts:
        log.append((TaskStep(text),), after=log.head(), at=0.0)
        facts.extract_due(log.read, log.head())
    return [fact.content for fact in facts.list()]


@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_what_changed_replaces_what_was_so(facts_of, old, new):
    facts = facts_of(user="ana")
    (content,) = known_after(facts, old, new)
    assert content[-8:] in new
    assert facts.history(facts.list()[-1].id)[0].fact.content == old.rstrip(".\u3002")


@pytest.mark.parametrize(("old", "new"), STANDING)
def test_what_only_came_after_replaces_nothing(facts_of, old, new):
    assert len(known_after(facts_of(user="ana"), old, new)) == 2


def test_what_changed_replaces_what_was_so_in_other_words_among_many(facts_of):
    """Forty facts with the new one's words had stood before the old one, and it stayed."""
    facts = facts_of(user="ana")
    facts.add("I live in Rome")
    for number in range(80):
        facts.add(f"Box {number} is what I moved to Turin")
    assert "I live in Rome" not in known_after(facts, "I moved to Turin.")


@pytest.mark.parametrize(
    "back",
    [
        "Forget that I live in Paris.",
        "I was joking when I said I live in Paris.",
        "It's not true that I live in Paris.",
    ],
)
def test_what_is_taken_back_leaves(facts_of, back):
    assert known_after(facts_of(user="ana"), "I like tea.", "I live in Paris.", back) == ["I like tea"]
    assert known_after(facts_of(user="bo"), f"I like tea. I live in Paris. {back}") == ["I like tea"]
    assert known_after(facts_of(user="cy"), back, "I live in Paris.") == ["I live in Paris"]


def test_a_correction_replaces_and_the_old_words_stay_in_the_history(facts_of):
    facts = facts_of(user="ana")
    log = InMemoryLog()
    for text in ("I live in Rome.", "I prefer tea.", "Actually, I live in Milan now, not Rome."):
        log.append((TaskStep(text),), after=log.head(), at=0.0)
        facts.extract_due(log.read, log.head())
    assert [fact.content for fact in facts.list()] == ["I prefer tea", "I live in Milan now, not Rome"]
    assert facts.history(facts.list()[-1].id)[0].fact.content == "I live in Rome"


@pytest.mark.parametrize("greeting", ["Hi", "Hello", "Hey there", "Hello all"])
def test_a_greeting_is_no_part_of_a_fact(greeting):
    assert [candidate.content for candidate in extracted(f"{greeting}, I prefer tea.")] == ["I prefer tea"]


def test_what_changed_replaces_what_was_so_in_one_reading(facts_of):
    """A worker reads many turns at once: what was said first in them had stood beside what replaced it."""
    facts, log = facts_of(user="ana"), InMemoryLog()
    for text in (
        "I live in Rome. I like tea.",
        "I moved to Turin.",
        "I'm single.",
        "Forget that I like tea. I got married in May.",
    ):
        log.append((TaskStep(text),), after=log.head(), at=0.0)
    assert len(facts.extract_due(log.read, log.head())) == 5
    assert [fact.content for fact in facts.list()] == ["I moved to Turin", "I got married in May"]
    assert facts.extracted_until() == log.head()


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("No, I have three cats.", "knowledge"),
        ("Sorry, I work nights.", "knowledge"),
        ("Actually, I knit.", "behaviour"),
    ],
)
def test_an_answer_is_no_correction_to_show_before_all_others(text, category):
    (candidate,) = extracted(f"Thanks for asking. {text}")
    assert (candidate.category, candidate.corrects) == (category, True)

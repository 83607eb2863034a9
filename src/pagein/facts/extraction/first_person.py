"""Recognition of what people say about themselves: names, places, roles, people, dates, habits, likes and corrections.

English. A sentence that is a question, a wish for the moment, a hypothesis, a plan without a date, or about "it" and "that" says
nothing that lasts. The words come from ``own_sentences``, so pasted text and other people's words are gone already.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pagein.context.ledger import english
from pagein.context.ledger.values import find_values

_RELATION = (
    r"(?:(?:wife|husband|spouse|partner|fianc[e\u00e9]e?|girlfriend|boyfriend|ex|son|daughter|kids?|child(?:ren)?|baby|toddler|twins|mom|mum|mother|"
    r"dad|father|parents|brother|sister|siblings?|grand(?:ma|pa|mother|father|son|daughter|parents)|aunt|uncle|cousin|niece|nephew|"
    r"(?:step|in-?)?(?:mother|father|brother|sister)-in-law|friend|bestie|roommate|flatmate|housemate|neighbou?r|colleague|co-?worker|boss|manager|"
    r"supervisor|mentor|teacher|instructor|coach|trainer|tutor|doctor|dentist|therapist|vet|lawyer|agent|landlord|assistant|"
    r"dog|cat|puppy|kitten|horse|rabbit|parrot|turtles?|hamster|pet)s?)"
)
_MUCH = r"(?: (?:really|absolutely|also|do|just|truly|totally|definitely|always|still|personally|actually|generally|usually|mostly|especially|particularly|both|all|strongly|much|so|very|quite|such|simply|honestly|kind of|mainly|always have|have always))*"
_BE = r"(?:I(?:['\u2019]m| am)|we(?:['\u2019]re| are))(?: (?:also|actually|currently|now|still|just|originally|both|all|only|already|really|very|a bit|severely|mildly|strictly|pretty|quite|so|totally|mostly))*"
_HAVE_BEEN = r"(?:I|we)(?:['\u2019]ve| have)(?: (?:also|actually|always|already|just))* been(?: (?:also|actually|already|always))*"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_OFTEN = (
    r"(?:\bevery (?:single |other |few )?(?:day|morning|night|evening|afternoon|week|weekend|weekday|month|year|summer|winter|spring|autumn|fall|"
    + _WEEKDAY
    + r"|\d+ \w+)\b|\b(?:once|twice|three times|four times|\d+(?:-\d+)? times|several times|a few times|a couple of times) (?:a|per|each|every) (?:day|week|month|year)\b"
    r"|\b(?-i:daily|weekly|bi-?weekly|monthly|nightly|yearly|annually)\b(?=[,.!;]|$| (?:and|but|to|for|with|in|at|on|so|or|because)\b)|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)days\b|\bon (?:weekends|weekdays)\b|\bevery (?:now and then|time I)\b|\bat least \d+ \w+ (?:a|per|every|each) \w+)"
)
_ING = r"[a-z]{2,}ing\b"
_CLAUSE = r"(?:^|(?<=[,;:\u2014\u2013-] )|(?<=\band )|(?<=\bbut )|(?<=\bso )|(?<=\bsince )|(?<=\bbecause )|(?<=\bas )|(?<=\bthat )|(?<=\bwhile ))"
_ROLE_NOUN = (
    r"(?:\w{2,}(?:er|or|ist|ian|eer|yst|ician|ologist|wright|smith|keeper|worker|man|woman)|doctor|nurse|cook|chef|pilot|judge|student|teacher|freshman|sophomore|"
    r"undergrad(?:uate)?|graduate|grad|phd|postdoc|professional|expert|consultant|accountant|assistant|agent|architect|athlete|coach|member|parent|mom|mum|dad|father|mother|"
    r"widow|widower|vegetarian|vegan|pescatarian|fan|lover|enthusiast|addict|buff|geek|nerd|person|owl|beginner|novice|veteran|immigrant|citizen|resident|"
    r"native|expat|christian|muslim|jew|jewish|hindu|buddhist|atheist|catholic|runner|volunteer|president|ceo|cto|cfo|vp|intern|entrepreneur|freelancer|lead|head|chief|"
    r"introvert|extrovert|perfectionist|homebody|foodie|minimalist|adult|teen(?:ager)?|senior|junior|retiree|pensioner|virgo|aries|taurus|gemini|cancer|leo|libra|scorpio|sagittarius|capricorn|aquarius|pisces)"
)
_NOT_ROLES = r"(?:bit|little|lot|tad|few|couple|better|bigger|matter|number|order|offer|never|ever|over|after|under|longer|later|prior|minor|major|error|mirror|for|reminder|winner|sucker|loser|goner|believer|wonder)"
_DEICTIC = r"(?:it|that|this|these|those|them|him|her|his|your|yours|you|one|what|how|where|when|why|the (?:idea|sound|look|way|fact|thought|template|suggestion|suggestions|concept|option|options|first|second|part|results?|design|plan|one|ones|list|recipe|recipes|tips?|advice|structure|energy|connection)|to (?:keep|stay|continue|wait|speak|hear|know|see|try|think|thank|ask|point|add|say|be able|make sure|learn more|get started)|(?:some|any|more|another)\b)"

_MONTH_NAME = r"(?-i:January|February|March|April|May|June|July|August|September|October|November|December)"
_HAS_MONTH = re.compile(_MONTH_NAME + r"|\d[-./]\d")
_CALENDAR = ("iso", "date", "month")
"""Types of values that are dates in a calendar, not "on Friday"."""

_TAIL_REQUEST = re.compile(
    r"(?:(?:,| -|;)(?: (?:and|so|but|which is why|because|as))?| (?:and|so|but|because)),? (?:(?:also |I |I['\u2019](?:m|d|ll|ve been) |we |we['\u2019](?:re|d|ll) |am |was |were )*(?:also )?(?:wondering|looking|wonder|thinking|hoping|like to know|curious|considering|want to|need to|would like|can['\u2019]t wait|excited|think)\b|can you|could you|would you|do you|if you|any (?:suggestions?|tips?|recommendations?|ideas)|what |how |please ).*$",
    re.IGNORECASE,
)
_INTENDS = re.compile(
    r"^(?:(?:and|but|so|also|now|then|actually|maybe)[, ]+)*(?:I(?:['\u2019]ll| will)\b|(?:I|we) (?:need|have to|should|must|want|can|could|would)\b(?!')|(?:I|we)(?:['\u2019]d| would)\b(?! rather)|(?:I|we)(?:['\u2019]m| am|['\u2019]re| are)(?: also| actually| just| really| definitely| currently)* (?:looking|trying|thinking|hoping|considering|interested|wondering|going to (?:try|start|look|check))\b|let me|can['\u2019]t wait|looking forward|hoping)",
    re.IGNORECASE,
)
_NEXT_CLAUSE = re.compile(r"[,;\u2014\u2013]|\b(?:but|since|because|as)\b")
_OTHERS_SAY = re.compile(
    r"\b(?:he|she|they|someone|somebody|people|everyone|my \w+|the \w+|[A-Z][a-z]+) (?:said|says|told|tells|asked|claims?|claimed|thinks?|thought|believes?|wrote|mentioned|insists?|recommended|suggested)\b"
)
_UNSURE = re.compile(
    r"\b(?:I (?:also )?think (?:I|my|we|that|it)|why I\b|I guess|I suppose|pretty sure|not (?:entirely |totally |really )?(?:sure|certain)|maybe|perhaps|probably|might|I may|I was thinking|thought I|pretend|imagine|in (?:the|my) (?:story|novel|script|book|game|dream)|joking|kidding|if I|if we|if my|would be|would have|could be|(?<!getting )(?<!got )used to|when I was (?:a |an )?(?:kid|child|young\w*|little|in)|as a (?:kid|child)|no longer sure|considering|wondering)\b",
    re.IGNORECASE,
)
_THEREFORE = re.compile(r"^(?:(?:yeah|yes|and|so)[, ]+)*that's why (?=I\b|we\b)", re.IGNORECASE)
_POINTS_BACK = re.compile(
    r"^(?:it|this|that|they|these|those|he|she|there|here|definitely|probably)(?:['\u2019]\w+)?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class PersonalStatement:
    """What a person says of themselves: the words, without what is asked behind them, and the fact's category."""

    text: str
    category: str


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_IDENTITY = _any(
    r"\bmy (?:full |first |last |middle |nick|user ?|legal |real |maiden |new |home |work |personal |business |mailing |billing |shipping |cell |mobile |current )*(?:name|id|user ?name|e-?mail(?: address)?|phone(?: number)?|number|handle|address|zip(?: code)?|postcode|birthday|birth ?date|date of birth|anniversary|age|nationality|pronouns|blood type|native language|mother tongue|time ?zone|hometown|home town|home city|star sign|zodiac sign|shoe size|account (?:number|name)|(?:membership|loyalty|customer|employee|student|frequent flyer) (?:number|id))(?:['\u2019]s| is| are|:) (?!not\b|that\b|in (?:a|the) |on (?:the|a|file)|wrong|missing|lost|being|listed|what|why|how)\S",
    r"\b(?:just |please |everyone |everybody |friends |people |they |you can |you may )*calls? me (?!back|later|when|if|tomorrow|tonight|at\b|on\b|crazy|old|out|a\b|an\b|in\b|to\b|today|about|up\b|from\b)\w",
    r"\bI (?:go|went) by (?-i:[A-Z])\w",
    r"^(?:the )?name['\u2019]s (?-i:[A-Z])",
    r"^(?:hi|hello|hey)?[,! ]*I(?:['\u2019]m| am) (?-i:[A-Z][a-z]+)(?: (?-i:[A-Z][a-z]+))?(?:[.!,]| from\b| and\b|$)",
    rf"{_BE} (?:\d{{1,3}}|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty)(?:-\w+)?)(?: years old| yo|[.,!]|$| and\b)",
    r"\bI (?:just )?(?:turned|turn|will turn|am turning) \d",
    r"\bI was born (?:in|on|at|\d)",
    r"\bmy pronouns\b",
)
_PLACE = _any(
    r"\b(?:I|we) (?:currently |now |still |both |all |also |actually )*(?:live|reside|dwell|rent|stay) (?:in|at|on|near|by|outside|with|close to|about|just|out|downtown|alone|across)\b(?! the (?:moment|past))",
    rf"{_BE} (?:living|based|located|residing|settled|stationed) (?:in|at|near|out of|with|outside|on|by)\b",
    rf"{_BE} (?:from|a native of|born and raised) (?!now\b|here\b|the (?:start|beginning))",
    r"\bI (?:grew up|was raised|come) (?:in|on|from|near|outside)\b (?!a (?:time|place))",
    r"\b(?:I|we)(?:['\u2019]ve| have|['\u2019]m| am|['\u2019]re| are)? (?:just |recently |finally )*(?:moved|moving|relocated|relocating) (?:back |over |out |here )?(?:to|from|into|in)\b",
    r"\bmy (?:home|apartment|flat|house|office|studio|shop|hometown) is (?:in|on|at|near|just|right|a|close)\b",
    r"\bmy home ?(?:country|town|city|state|land|village),? (?-i:[A-Z])",
    r"\bliving (?:in|on|near) (?-i:[A-Z])",
    r"\bI (?:mostly |usually |now |mainly )?work (?:remotely|from home|from my)\b",
)
_ROLE = _any(
    rf"{_BE} (?:an?|the) (?!{_NOT_ROLES}\b)(?:[\w'\u2019-]+ ){{0,4}}?(?!{_NOT_ROLES}\b){_ROLE_NOUN}\b",
    rf"{_BE} (?:married|divorced|single|engaged|widowed|retired|unemployed|self-employed|pregnant|expecting|deaf|blind|left-handed|right-handed|bilingual|jewish|catholic|muslim|hindu|buddhist|gay|lesbian|bisexual|trans(?:gender)?|nonbinary|non-binary|autistic|dyslexic|colou?r-?blind)\b",
    rf"^(?:speaking )?as an? (?!{_NOT_ROLES}\b)(?:[\w'\u2019-]+ ){{0,4}}?{_ROLE_NOUN}\b(?! (?:would|should|is|was|of the))|, (?:as|but as|and as|being) an? (?!{_NOT_ROLES}\b)(?:[\w'\u2019-]+ ){{0,3}}?{_ROLE_NOUN}(?: myself)?(?:,|$)",
    r"\b(?:I|we) (?:currently |now |also |mostly |usually |still )*work (?:as|at|for|in (?!progress)|with (?!you)|on a team|full|part|night|regular|during)\b",
    rf"{_BE} (?:working|employed|interning|volunteering|training) (?:as|at|for|full[- ]time|part[- ]time)\b",
    rf"{_BE} (?:studying|majoring|enrolled|doing (?:a|my) (?:phd|master\S*|degree|bachelor\S*)|getting (?:a|my) (?:phd|master\S*|degree)|pursuing (?:a|my)) (?:in |at |for |an? )?\w",
    r"\bI (?:currently |also |now )*(?:run|own|manage|lead|teach|coach|study|major|majored|graduated|founded|co-founded|direct|supervise|head|play) (?:an? |the |my own |our |in |at |from |to |with |\d|(?:high|middle|elementary|primary) school|[a-z]+ (?:at|for|in|to)\b)",
    r"\b(?:earned|got|have|hold|holding|finished|completed|having earned|received) (?:an?|my) (?:[\w'\u2019-]+ ){0,3}?(?:degree|diploma|certificate|certification|phd|ph\.d|mba|master['\u2019]?s|bachelor['\u2019]?s|licen[cs]e)\b",
    r"\bI(?:['\u2019]ve| have)?(?: also| just| recently| finally)* (?:lost|quit|left|started|got|found|landed|accepted|resigned from) (?:my|a|an|the)(?: new| old| dream)? (?:job|position|role|internship|business|company)\b",
    r"\bI(?:['\u2019]m| am) in (?:my (?:\w+ )?year|charge of|grade|(?:high|middle|grad|law|med\w*) school|college|sales|marketing|finance|hr|it\b|tech)\b",
    r"\bmy (?:\w+ )?(?:job|profession|occupation|major|position|title|role|career)(?: title)? (?:is|as)\b(?! (?:a (?:lot|bit|pain|mess|dream)|so|very|really|too|boring|stressful|hard))",
    r"\b(?:I|we) (?:just |recently |finally )?(?:retired|got married|got engaged|got divorced|graduated)\b",
    r"\bI(?:['\u2019]m| am)?(?: now| also| still| currently)* (?:mentor|coach|volunteer|teach|tutor|babysit)(?:ing)? (?:at|for|the|with|an?|in|kids|younger|as)\b",
    r"\b(?:my|our) own (?:\w+ ){0,2}?(?:business|studio|store|shop|company|blog|podcast|channel|restaurant|bakery|band|farm|garden|show)\b",
    r"\bas a (?:trans(?:gender)? )?(?:woman|man|single (?:mom|dad|mother|father|parent))\b",
    r"\bI(?:['\u2019]ve| have)(?: also)? (?:earned|reached|accumulated enough miles to reach|got|been upgraded to) (?:\w+ ){0,5}status\b|\benough (?:miles|points) to reach \w+ status\b",
)
_PEOPLE = _any(
    rf"\b(?:my|our) (?:[\w'\u2019-]+ ){{0,2}}?{_RELATION},? (?-i:(?!I\b)[A-Z][a-z]+)(?!['\u2019](?:m|ll|d|ve)\b)",
    rf"\b(?:my|our|an?) (?:[\w'\u2019-]+ ){{0,2}}?{_RELATION}(?: is|['\u2019]s name is|['\u2019]s name['\u2019]s| (?:is )?(?:called|named)) (?-i:[A-Z])[a-z]+",
    rf"\b(?:my|our) (?:[\w'\u2019-]+ ){{0,2}}?{_RELATION} (?:is|are) (?:also |now |currently |severely |very )*(?:living|staying with|an? (?!bit|little|lot|big help|huge|great|good|real|joy|blessing|mess)|\d|allergic|vegan|vegetarian|lactose|diabetic|gluten|deaf|blind|pregnant|autistic|from (?-i:[A-Z])|married|left-handed|afraid of|scared of)",
    rf"\b(?:my|our) (?:[\w'\u2019-]+ ){{0,2}}?{_RELATION} (?:lives?|works?|studies|teaches|goes to|loves|hates|likes|prefers|can't stand|doesn't (?:eat|like|drink)|was born|plays) (?!it\b|that\b|this\b|them\b|out\b)\w",
    rf"\b(?:I|we)(?:['\u2019]ve| have)(?: got| also)? (?:an?|one|two|three|four|five|\d|twin) (?:[\w'\u2019-]+ ){{0,3}}?{_RELATION}\b",
    rf"\ban? {_RELATION},? (?:named |called )?(?-i:[A-Z][a-z]+)(?:,|\.|$| who)",
    rf"\b(?-i:[A-Z][a-z]+)(?:, (?:who is )?| is )(?:my|our) (?:[\w'\u2019-]+ ){{0,2}}?{_RELATION}\b(?!['\u2019]s)",
    r"\b(?:passenger|companion|travell?er|guest|attendee)s?(?: is| are|,|:)? (?-i:[A-Z][a-z]+ [A-Z][a-z]+)",
)
_HABIT = _any(
    r"\b(?:I|we)(?:['\u2019]m| am| are|['\u2019]re)? (?:also |actually |almost |mostly )*(?:usually|normally|typically|generally|regularly|often|frequently|rarely|seldom|tend to|always) (?!been|wanted|dreamed|wondered|loved|thought|felt|knew|glad|happy|welcome|here for|so|excited|be\b|good|great|going to|right|there|say\b|think|feel|surprised|amazed|ready|up for|open to|down\b|game\b|grateful|thankful|proud|nervous|sure|admired|looking for ways)(?:\w{2,})",
    r"\bI still tend to\b",
    r"\bI always seem to\b|\bI(?:['\u2019]m| am) always (?:on the lookout|up (?:at|before)|(?!looking forward|telling|being|thinking)\w+ing)\b",
    r"\bI never (?:eat|drink|use|wear|drive|fly|skip|work|go|take|buy|watch|cook|sleep|smoke|check|answer|carry|pay|read)\b",
    rf"(?:\b(?:I|we)\b|^my\b)(?:(?!\b(?:he|she|they)\b)[^.!?]){{0,140}}?{_OFTEN}",
    rf"{_OFTEN}[^.!?]{{0,20}}\b(?:I|we)\b",
    rf"{_HAVE_BEEN} {_ING}[^.!?]{{0,90}}? (?:for (?:about |over |almost |nearly |more than |the (?:past|last) )?(?:an? (?:few|couple(?: of)?|decade|year)|many|several|\d+|two|three|four|five|six|seven|eight|nine|ten)(?: \w+)?|since (?:\d|(?-i:[A-Z])|I was|college|high school|childhood)\b)",
    r"\b(?:I|we)(?:['\u2019]ve| have) (?:had|owned|played|lived|worked|known|used|practi[cs]ed|taught|studied|driven|run|done)\b[^.!?]{1,60} (?:for (?:about |over |almost |nearly |more than |the (?:past|last) )?(?:an? (?:few|couple(?: of)?|decade|year)|many|several|\d+|two|three|four|five|six|seven|eight|nine|ten)\b|since (?:\d|(?-i:[A-Z])))",
    r"\b(?:I|we)(?:['\u2019]ve| have) (?:had|owned|played|lived|worked|known|used|practi[cs]ed|taught|studied|driven|run|done)\b[^.!?]{1,60} (?:for (?:about |over |almost |nearly |more than |the (?:past|last) )?(?:an? (?:few|couple(?: of)?|decade|year)|many|several|\d+|two|three|four|five|six|seven|eight|nine|ten)\b|since (?:\d|(?-i:[A-Z])))",
    r"\b(?:I|we) (?:actually |just )?use (?:an? |my )(?:(?!\b(?:new|it)\b)[\w' -]){3,60} (?:when|to|for|whenever)\b",
    r"\b(?:I|we) (?:get up|wake up|go to bed|go to sleep|start work|finish work|have (?:lunch|dinner|breakfast)) (?:at|around|by|before|after) ",
    r"\b(?:that|which) I use (?:regularly|daily|often)\b",
    r"\bI (?:don['\u2019]t|do not) (?:smoke|drive|cook|own a|have a car|exercise|work on)\b",
)
_LIKE = _any(
    rf"{_CLAUSE}(?:I|we){_MUCH} (?:love|enjoy|adore|like|hate|dislike|detest|loathe|prefer|favou?r|can['\u2019]t stand|cannot stand|despise|appreciate good)(?: (?:both|all|mostly|eating|playing|watching|making|listening to|reading|going|doing|working))? (?!(?:[\w']+ ){{0,2}}{_DEICTIC}\b)(?!the\b)\w",
    rf"{_CLAUSE}(?:I|we){_MUCH} (?:love|enjoy|adore|like|hate|dislike|prefer) the (?!idea|sound|way|thought)[\w ]{{2,40}} (?:of |in |at |from )?(?-i:[A-Z])[a-z]+",
    rf"{_CLAUSE}(?:I|we){_MUCH} (?:love|enjoy|like|hate) making (?:this |these )?[a-z-]{{4,}}",
    rf"{_CLAUSE}I(?:['\u2019]d| would)(?: \w+)? rather \w|{_CLAUSE}I (?:do not|don['\u2019]t|can['\u2019]t|cannot|never|no longer)(?: really| usually)? (?:like|eat|drink|enjoy|care for|tolerate|do well with|have (?:dairy|gluten|meat|sugar|nuts)) (?!{_DEICTIC}\b)\w",
    rf"{_BE}(?: a| an)? (?:(?:big|huge|great|total|massive|not a|not a big|long-?time|lifelong|real|also|more of an?|bit of an?|really|very|mostly|mainly|super|pretty|so|quite|especially|particularly) ){{0,3}}?(?:fan of|fans of|into|keen on|partial to|fond of|obsessed with|passionate about|crazy about|addicted to|drawn to|loyal to|picky about|a sucker for) (?!{_DEICTIC}\b)\w",
    rf"{_BE} (?:an? )?(?:[\w-]+ ){{0,2}}(?:fan|lover|enthusiast|buff|junkie|nerd|geek|person)[.!]?$",
    r"\bI(?:['\u2019]ve| have) always (?:loved|hated|liked|enjoyed|preferred|been (?:drawn to|fascinated by|into|interested in|passionate about|a fan))\b",
    rf"{_BE} (?:a |an )?(?:vegetarian|vegan|pescatarian|gluten[- ]free|dairy[- ]free|lactose[- ]intolerant|coeliac|celiac|diabetic|allergic to|intolerant (?:to|of)|sensitive to|teetotal|sober|kosher|halal|claustrophobic|afraid of|scared of|terrified of|asthmatic)\b",
    r"\bmy (?:[\w'\u2019-]+ ){0,2}?(?:favou?rites?|faves?)(?: [\w'\u2019-]+){0,5} (?:is|are|was|has always been|have always been|would be|include)\b",
    r"\b(?:(?:is|are|['\u2019]s|['\u2019]re|has always been|one of|among|some of) (?:also |still |definitely )?my (?:all-time |absolute )?(?:favou?rites?|faves?|go-to|thing|guilty pleasure|comfort food|(?:biggest )?passion|pet peeve)\b|a favou?rite of mine\b|(?:mostly|totally|really|definitely) my thing\b)",
    r"\bmy (?:\w+ )?(?:preference|preferred [\w ]{1,25}|hobby|hobbies|passion|pet peeve|goal|dream|allergy|allergies|diet|budget)(?: right now| at the moment)? (?:is|are|includes?)\b",
    r"\bsince I (?:love|hate|prefer|enjoy|don['\u2019]t (?:eat|like|drink)) (?!it\b|that\b|this\b|them\b)\w",
    r"\bI have (?:an? )?(?:[\w-]+ ){0,3}?(?:allerg(?:y|ies)|intolerance|asthma|diabetes|celiac|migraines?|adhd|arthritis|insomnia|anxiety|a bad (?:back|knee))\b",
    r"\bI(?:['\u2019]ve| have| was|['\u2019]ve been| have been) (?:just |recently |been )*diagnosed with\b",
    r"\b(?:playing|reading|cooking|running|hiking|painting|dancing|music|gaming|writing|[a-z]+ing)\b[\w ]{0,20} is my (?:escape|passion|hobby|life|thing|therapy|way (?:of|to))\b",
    rf"{_CLAUSE}(?:my (?:wife|husband|partner) and I|we) (?:both |all )?(?:love|prefer|enjoy|hate) (?!it\b|that\b|this\b|them\b|the\b)\w",
)
_TODAY = re.compile(
    r"\b(?:this (?:morning|afternoon|evening)|today|tonight|right now|at the moment|just now)\b", re.IGNORECASE
)
_EVENT = re.compile(
    r"\b(?:I|we|my|our)\b(?:['\u2019]\w+)?.*?\b(?:\w+ed|went|got|had|did|saw|met|bought|took|made|ran|won|began|left|came|flew|drove|rode|wrote|read|sold|gave|found|lost|broke|have|has|am|are|is|['\u2019]m|['\u2019]ve|['\u2019]re|will|['\u2019]ll|going|planning|graduat\w+|start\w*|finish\w*|mov\w+|turn\w*|birthday|wedding|anniversary|appointment|due|booked|tickets?|born)\b",
    re.IGNORECASE,
)
_ASKS_NOW = re.compile(
    r"\b(?:I|we)(?:['\u2019]m| am|['\u2019]re| are)(?: \w+)? (?:looking|trying)\b|\b(?:I|we)(?:['\u2019]d| would) (?:like|love)\b|\b(?:I|we) (?:want|need|wish|would)\b|\b(?:book|cancel|change|modify|rebook)\b.*\b(?:flights?|reservations?|tickets?)\b|\b(?:thinking (?:of|about)|considering|wondering|trying to decide)\b",
    re.IGNORECASE,
)
_NOT_THIS = re.compile(
    r"^(?:please |just |always |let['\u2019]s |you should |we |I |it['\u2019]s |that['\u2019]s )*(?:use|using|call|write|say|spell|run|go with|take|put|pick|choose|make|made|meant|mean|live|work|was|is|am|need|want|flying|looking|trying|wanted|prefer|\w+ing)\b[^.;!?]{1,80},? (?:not|and not|rather than|instead of) (?!more|less|sure|only|just|yet|too|so|really|even|to worry|that)[\w`]",
    re.IGNORECASE,
)
_CORRECTS_BACK = re.compile(
    r"^actually,? (?:I|we|my|our) (?:do|did|don['\u2019]t|didn['\u2019]t|am|was|have|haven['\u2019]t|never|only|live|work|meant|moved)\b",
    re.IGNORECASE,
)

_RULES: tuple[tuple[Callable[[str], re.Match[str] | None], str], ...] = (
    (_IDENTITY.search, "knowledge"),
    (_PLACE.search, "knowledge"),
    (_LIKE.search, "preference"),
    (_HABIT.search, "behaviour"),
    (_PEOPLE.search, "knowledge"),
    (_ROLE.search, "knowledge"),
)


def find_personal_statement(sentence: str) -> PersonalStatement | None:
    """Return what the sentence says of its speaker that lasts; None for anything else.

    >>> find_personal_statement("I live in Rome, so can you suggest a park?")
    PersonalStatement(text='I live in Rome', category='knowledge')
    """
    text = sentence.replace("\u2019", "'").strip()
    core = _THEREFORE.sub("", _TAIL_REQUEST.sub("", text)).rstrip(" ,;-")
    if core.endswith("?") or len(core.split()) < 2 or _POINTS_BACK.match(core) or english.HYPOTHESIS.match(core):
        return None
    if _NOT_THIS.match(core) and not _UNSURE.search(core):
        return PersonalStatement(core, "correction")
    if _UNSURE.search(core) or _OTHERS_SAY.search(core):
        return None
    if _CORRECTS_BACK.match(core):
        return PersonalStatement(core, "correction")
    for search, category in _RULES:
        match = search(core)
        if match is None or _is_intended(core, match.start()):
            continue
        if category not in ("behaviour", "preference") or not _TODAY.search(core):
            return PersonalStatement(core, category)
    if _is_dated_event(core):
        return PersonalStatement(core, "context")
    return None


def _is_intended(core: str, at: int) -> bool:
    """True where what is at ``at`` is a part of what the speaker wants or plans."""
    return bool(_INTENDS.match(core)) and not _NEXT_CLAUSE.search(core, 0, at + 1)


def _is_dated_event(core: str) -> bool:
    """True for something of the speaker's own with a date of the calendar, such as a birthday or an appointment."""
    date = next(
        (value for value in find_values(core) if value.type in _CALENDAR and _HAS_MONTH.search(value.text)), None
    )
    if date is None or not _EVENT.search(core) or _is_intended(core, date.start):
        return False
    clause = core[: date.start]
    return not re.search(r"\byou\b", clause, re.IGNORECASE) and not _ASKS_NOW.search(clause.rpartition(",")[2])

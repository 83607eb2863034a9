# ruff: noqa: RUF001 - letters of other languages
"""Patterns of English: what orders, limits, decisions, aims, promises, preferences, values and revisions look like.

Each pattern is linear in the sentence, which has at most ``own_words.SENTENCE_MAX_CHARS`` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import eq
from types import MappingProxyType

from pagein.context.salience.lines import has_part

_CHAT = MappingProxyType(
    {
        "im": "I'm", "ive": "I've", "u": "you", "ur": "your", "pls": "please", "plz": "please", "n": "and", "dnt": "don't",
        "b4": "before", "sry": "sorry", "wat": "what", "wats": "what's", "hav": "have", "shud": "should", "wud": "would", "cud": "could", "ppl": "people",
        "r u": "are you", "u r": "you are", "we r": "we are", "they r": "they are", "bc": "because", "cuz": "because", "gonna": "going to",
    }
)  # fmt: skip
_CHAT_WORD = re.compile(
    rf"(?i)(?<![\w'.-])(?:{'|'.join(sorted(_CHAT, key=len, reverse=True))}|(?P<not>do|does|did|ca|wo|is|are|was|were|must|should|would|could|have|has)nt|(?P<who>you|they|that|there|what|where|who|when|how)(?P<be>re|s|ve))(?![\w'.-])"
)
_SOUNDS = frozenset(["um", "um,", "umm", "uh", "uh,", "uhh", "uhm", "erm", "hm", "hmm", "hmmm", "mm", "mmm"])
_SPOKEN = re.compile(
    r"(?i)\b(?:u[hm]+|erm+|hm+|mm+)\b,? ?|\b(?!(?:no|very|had|that|so|really|more|far|ha|again|over|bye)\b)(?P<twice>[^\W\d]{1,12}(?: [^\W\d]{1,12})?) (?=(?P=twice)\b)"
)
"""What is said while somebody thinks: a sound, and words that come twice."""


_BINDING_WORDS = "allergic allergy always answer before budget deadline definitely instead limit maximum meeting never please prefer remember should vegetarian without"


def _slips_of(word: str) -> Iterator[str]:
    """Yield what fast fingers make of a word: a letter left out, struck twice, or in the place of the next."""
    for at in range(1, len(word) - 1):
        head, letter, tail = word[:at], word[at], word[at + 1 :]
        yield from (head + tail, head + letter + letter + tail, head + tail[0] + letter + tail[1:])


_SLIPS = MappingProxyType(
    {slip: word for word in _BINDING_WORDS.split() for slip in _slips_of(word) if slip not in _BINDING_WORDS}
)
_WORD = re.compile(r"[A-Za-z]+")


def spell_out(text: str) -> str:
    """Return the text with the apostrophes, words and letters that are left out in a chat, and without what is said while somebody thinks.

    >>> spell_out("pls dont call, im busy and theyre out"), spell_out("um alwyas keep it keep it short")
    ("please don't call, I'm busy and they're out", 'always keep it short')
    """
    words = text.lower().split()
    if not _SLIPS.keys().isdisjoint(words):
        text = _WORD.sub(lambda word: _SLIPS.get(word[0].lower(), word[0]), text)
    may_be_spoken = any(map(eq, words, words[1:])) or any(map(eq, words, words[2:])) or not _SOUNDS.isdisjoint(words)
    return _CHAT_WORD.sub(
        lambda word: (
            f"{word['not']}n't"
            if word["not"]
            else f"{word['who']}'{word['be']}"
            if word["who"]
            else _CHAT[word[0].lower()]
        ),
        _SPOKEN.sub("", text) if may_be_spoken else text,
    )


_CONDITION = re.compile(
    r"(?i)\W*(?:(?:and|so|but|also|ok|okay|then|please) )*(?:if|when|whenever|once|after|before|as soon as|every time|in case) "
    r"(?:(?:I|you|we|they|he|she|it) (?!don't|do|never|always|please)\w+|[^,;:]*?(?: (?:is|are|has|have|gets?|comes?|goes?|starts?|ends?|asks?|says?|calls?|wants?|needs?|fails?|\w{3,}ed)|'s|'re)\b)[^,;:]*?"
    r"(?= (?:please )?(?:don't|do not|never|please|make sure|always (?:use|ask|lock|turn|check|call|send|keep|make|put|add|write|run|test|tell|say|sign|back up|close|bring))\b)"
)


_TAKEN_BACK = re.compile(  # e.g. no sorry in dutch
    r"(?i)\W*(?:(?:no|oh|ah) )?(?:sorry|wait|actually|nope|oh)(?: (?:no|wait|sorry|actually))* (?!for\b|until\b|till\b|to\b|with\b|at\b|before\b|after\b|an?\b)(?=\w)"
)


def part_clauses(text: str) -> str:
    """Return a sentence that has no comma with those behind a correction's first words, and between a condition and what it orders.

    >>> part_clauses("when the kids are home don't play that song"), part_clauses("no sorry in dutch")
    ("when the kids are home, don't play that song", 'no, sorry, in dutch')
    """
    if "," in text:
        return text
    if (correction := _TAKEN_BACK.match(text)) is not None:
        return f"{', '.join(correction[0].split())}, {text[correction.end() :]}"
    condition = _CONDITION.match(text)
    return text if condition is None else f"{condition[0]},{text[condition.end() :]}"


REPAIRS = re.compile(
    r"(?i)\b(?:no,? (?:sorry|wait|actually|hang on)|(?:oh|sorry|no),? (?:wait|no)|scratch that|sorry,? I mean|I mean(?:t)?|correction|oops|er|make that|actually no)\b,? (?=.*\w)"
)
"""Takes back what was said right before: "at five no sorry six"."""

_NOT_ASKED = r"(?!(?:the|my|our|your|I|you|we|he|she|they|it|matters|counts|works|helps|happens|means|remains|bothers|makes|gets|worries|annoys|goes|comes)\b)"
_ASKED_OF = (
    r"(?:I|you|we|he|she|it|they|this|that|these|those|there|any(?:one|body|thing)?|some(?:one|body|thing)?|every\w+)"
)
QUESTION = re.compile(
    r"(?i)(?:^|(?<=[.,;:\n] ))\W{0,8}(?:(?:and|but|so|ok(?:ay)?|oh|hey|hi|hello|well|yeah|like|wait|also|btw|by the way|sorry|please|bro|dude|omg|lol|then|now|yo|remind me|do you (?:know|remember)|tell me)[, ]{1,4}){0,8}"
    rf"(?:(?:what|which|whose|how)(?: {_NOT_ASKED}[\w'-]+){{0,6}}?(?:'s(?! said\b| \w+ed\b)| (?:is|are|was|were|do|does|did|can|could|will|would|should|shall|might|has|have|had|am|must)(?:n't)?) \w"
    r"|(?:where|when|why|who)(?: else| exactly)?(?:'s|'re| (?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|am|must|might)) \w|why \w|who (?:\w{3,}ed|won|got|made|said|told|came|went|gave|took|wants|has) \w|(?:what|which \w+) (?:\w{3,}ed|made|makes|led|got|came|went|happens) \w|(?:did|does|would|could|will) (?!not\b|never\b|always\b|be\b|have\b|do\b|go\b|love\b|like\b|prefer\b|rather\b|appreciate\b|hate\b|need\b|you dare\b)\w+ \w|how (?:come|about)\b|(?:anyone|anybody) (?:know|have|got|seen)\b|any (?:idea|chance)\b|remind me (?:what|which|whose|how|where|why|who)\b"
    rf"|(?:is|are|was|were|does|did|will|would|can|could|has|isn't|aren't|wasn't|weren't|doesn't|didn't|won't|wouldn't|can't|couldn't|hasn't) (?:{_ASKED_OF}|the|my|your|our|his|her|their)\b|(?:do|am|may|might|shall|should|must|don't|shouldn't) (?:I|you|we|they|people|any(?:one|body))\b(?! (?:dare|ever|forget)\b)|have (?:you|they|we)\b)"
)
"""A question by the order of its words: speech and chats leave out the mark."""


# What a sentence is read for

C = r"(?:^|[,;:(\u2014\u2013] ?|\.{2,3} ?| - |(?:\b(?:and|but|so|then|plus|also|or|just|remember|absolutely|definitely|team|guys|ok|okay|that) )|\b(?:please|pls) )"
"""The start of a clause, after which a verb is an order."""

NEVER_PAST = (
    r"(?!(?:ever |really |once |even |quite |actually )?(?:\w{2,}ed|was|were|had|has|been|got|did|does|went|saw|came|knew|made|took|gave|met|"
    r"left|lost|found|told|said|ran|won|ate|felt|thought|heard|kept|seen|done|gone|became|forgot|bothered|\w+(?<!s)(?<!es)(?<!os)(?<!us)(?<!ces)s)\b"
    r"(?<!feed)(?<!need)(?<!embed)(?<!proceed)(?<!exceed)(?<!speed)(?<!seed)(?<!bed)(?<!process))"
)
WORK_VERB = (
    r"(?:deploy|ship|release|merge|push|use|share|store|send|give|sell|refund|offer|discount|book|pay|accept|allow|commit|log|touch|delete|"
    r"call|contact|email|hire|charge|promise|quote|discuss|talk about|invite|eat|cook|buy|print|grade|expose|test|write|sign|approve|schedule|ask|change|"
    r"edit|post|publish|mention|wear|serve|order|fly|drive|work|meet|start|bill|round|support|target|cache|mock|require|reply|answer|follow|go above|go over|spend|do (?!it|that|this))"
)
APPROVAL = r"(?:approval|permission|consent|sign[- ]?off|ok|okay|o\.k\.|go[- ]?ahead|say[- ]?so|green light|confirmation|authori[sz]ation|blessing|thumbs[- ]up|signature|nod|review|asking|checking|confirming|being asked|clearance|written \w+)"
THING = r"(?:it|they|this|that|these|those|which|everything|everyone|everybody|nothing|nobody|no one|anything|anyone|someone|all|you|we|one|(?:the|my|our|your|all|each|every|any|both|no|these|those)\s(?:[\w'&/.-]+\s){0,6}?[\w'&/.-]+|[A-Za-z][\w'/.-]*s|[A-Z][\w'/.-]+(?: [A-Z][\w-]+)?)"

FORBID = re.compile(  # e.g. never deploy on Fridays
    rf"{C}(?:never(?: ever)? (?!mind\b){NEVER_PAST}[a-z]|(?:do not|don't)(?: ever| you dare)? (?!have to\b|need to\b|want|like|love|care|think|know|feel|understand|get\b (?:it|why|how|what)|see\b|seem|really|even|remember|eat\b|drink\b)[a-z]"
    r"|(?:avoid|refrain from|steer clear of|stay away from|stay out of|keep away from|hands off|stay off|keep off|keep out of|stop) (?=[a-z`\"A-Z])(?!by\b|at\b|it there)|not (?:even )?(?:under any circumstances|ever|until|before|without)\b|no (?!longer|more\b(?! than)|matter|one\b|idea|prob|worr|need\b|doubt|thank|chance|kidding|luck|wonder|way\b|thing\b|i\b|it|that|we|,)[\w-]+(?: [\w'&-]+){0,6}(?: without| unless| until| before| after| on | in | at | for | from | to | over | above | beyond | except| please|[.!]?$))"
    r"|^[\u274c\U0001f6ab\u26d4](?!.{0,3}(?:the|\d+)\b|.*\b(?:fail(?:ed|s|ing|ures?)?|\d+ errors?|\w*error(?=:)|found|missing|timed out|exit(?:ed)?|unable|could|is|are|was|were|has|had|did)\b)"
    rf"|{C}(?:tell|show|give|send|let|allow|trust|mention|say|share|leak|promise|admit|invite|ask|sell|call|disclose|reveal|post|change|delete|touch|add|publish|hand|offer) (?:(?:it|this|that|them|anything) )?(?:(?:to|with) )?(?:nobody|no one|nothing)\b"
    rf"|\b{THING} (?:must not|mustn't|must never|may not|may never|shall not|shan't|should not|shouldn't|should never|can never|cannot ever|can't ever|(?:is|are) (?:strictly )?(?:not|never) (?:to|allowed|permitted|an option|acceptable|negotiable)|isn't (?:allowed|permitted|an option)|aren't (?:allowed|permitted))\b"
    r"|\b(?:you|we|it|they|nobody|no one|agents?|scripts?|tests?|code|customers?|kids|students?|the \w+) (?:can't|cannot|can not) (?:exceed|go (?:over|above|beyond|below|past)|spend|use|touch|share|send|change|have|be|do|deploy|book|delete|eat|fly|take|contact|call|leave|mention|pay|accept|afford (?:to|more)|promise|offer|give|ship|release|run|start|store|depend|rely|add|break|move|miss|publish|sell|disclose|reveal|log|commit)\b"
    r"|\b(?:I|we) (?:must not|mustn't|may not|should not|shouldn't|must never|should never)\b|\bI(?:'m| am) (?:not allowed|not supposed|not permitted|forbidden)\b|\bI refuse to\b|\b(?:told|asked|advised|instructed|ordered|warned|wants?|expects?|said|says)(?: me| us| you)? (?:not to|never to|to (?:avoid|never|stop|cut|refrain|stay))\b|\bnot a (?:word|single)\b|\b(?:thing|point|important) (?:is )?(?:that )?you (?:do not|don't|never) [a-z]|\b(?:stays?|remains?|keep it|kept) (?:strictly )?(?:between us|confidential|secret|private|under wraps|off the record|internal|in[- ]house|out of)\b|\b(?:is|are) (?:strictly |highly |still )?(?:confidential|a secret|secret|private|not public|under embargo|internal only|nobody's business|protected|read[- ]only)\b|\bno [\w' -]{2,40},? please\b|(?:^|, |: )(?:the |our |my |any |these |those )?(?:[\w'-]+ ){0,3}[\w-]{2,}s never (?:ever )?" + NEVER_PAST + r"[a-z]"
    r"|\b(?:under no circumstances|by no means|on no account|at no (?:point|time)|in no case|whatever you do|not under any circumstances|no exceptions|strictly (?:forbidden|prohibited|no|off)|forbidden|prohibited|verboten|off[- ]limits|out of bounds|a no[- ]go|out of the question|taboo|hands off|not allowed|not permitted|not acceptable|unacceptable)\b"
    rf"|\bwithout (?:my|our|his|her|their|the (?:\w+ ){{1,2}}?|prior|explicit|written|getting|asking|checking|anyone's|a|an|first)[\w' -]{{0,30}}?{APPROVAL}?\b(?=.*\b{APPROVAL}\b|.*\b(?:me|first)\b)"
    r"|\b(?:we (?:never|don't ever|do not ever|don't)|I (?:never|don't ever)) " + WORK_VERB + r"\b|\bwe (?:don't|do not) (?!know|think|have|need|want|see\b|seem|really|get\b|mind|care|even|feel|understand|believe|remember|usually|like|always|realize|love|expect|appreciate|talk (?:much|often|enough)|go\b|find|stop|give up|quite|yet)[a-z]"
    r"|\b(?:nobody|no one|none of (?:you|us|the \w+)|nothing) (?:gets|goes|may|leaves|should|can|must|touches|ships|merges|sees|outside|with|that|from)\b(?! wrong| like| better| more| beats?| make| stop| compare| replace| ever)"
    r"|\b(?:keep|leave) [\w' /.-]{1,60}? (?:out of|away from|off|alone|untouched|private|confidential|secret|as (?:it is|they are|is)|to yourself|between us)\b"
    r"|\b(?:I|we) (?:don't|do not|never|really don't) want (?:you to|any|anyone|anybody|to (?:see|spend|go|have|use|pay)|the|our|my)\b|\bI won't (?:accept|tolerate|have|pay|allow)\b|\bmakes? me (?:sick|ill)\b",
    re.IGNORECASE,
)  # fmt: skip

DEMAND = re.compile(  # e.g. make sure the tests pass
    rf"{C}(?:always (?!been|wanted|loved|had|was|were|felt|thought|made|liked|found|enjoyed|knew|\w{{3,}}ed\b|\w{{4,}}ing\b|so\b|a\b|the\b|my\b|on\b|there|get|feel|comes|keeps|makes)[a-z]|make sure|ensure|be sure to|see to it|only ever|only (?:use|deploy|send|book|answer|reply|write|call|contact|buy|share|touch|edit|change|run|pay|order|merge|push|commit|discuss|offer|mention|show|give|ask|work|read|store|accept|serve|schedule|cook|import|add|sell|speak|take|eat|with|after|when|on|in|via|if|from|the|people)\b"
    r"|(?:use|stick (?:to|with)|keep to|adhere to|follow|respect) (?!it\b|that\b|this\b|the same\b|up\b|your\b|you\b|me\b|in\b|their\b|and\b)(?=[\w`\"'])|(?:write|answer|reply|respond|speak|talk|address|sign|format|name|call|label|tag|prefix|round|indent|title|quote|cite|document|log|number|save|store|put|send|file|book|schedule|name) (?:all|every|each|everything|always|any|only|me in|in (?:english|german|french|spanish|italian|the)|to me in|new)\b"
    r"|(?:keep|limit|cap|restrict|hold) (?:it|them|the|all|every|each|your|any|this|things|everything|answers|replies|responses|emails|my|our|commits|functions|files|spending|costs)\b[\w' -]{0,60}?(?:to|under|below|within|at|short|brief|simple|formal|vegetarian|vegan|in|on|from|until|up to|between|concise|private|confidential|polite|gluten)\b"
    r"|(?:(?:always|first|please) )?(?:ask|check with|run [\w' ]{1,30} (?:by|past)|confirm with|consult|clear it with|get (?:my|approval|permission|a sign|sign)|wait for (?:my|approval|the (?:ok|go|green))|double[- ]check|ping|warn|tell|notify|alert|remind|cc|copy|loop in) (?:me\b|us\b|my \w+|[A-Z]\w+|the \w+|it |him |her )?[\w' -]{0,30}?\b(?:before|first|prior to|whenever|every time|each time|ok|approval|when|if|on (?:all|any|every)|sign|go|about any))"
    rf"|\b{THING} (?:must|shall|(?:needs?|has|have|is|are|ought) to (?:always |only |never |be |stay |go |have |use |include |contain |follow |match |run |pass |come |end |start |fit |remain |get |carry |keep |support |work )|(?<!you )(?<!we )(?<!it )(?<!they )should (?:be |use |have |stay |go |come |include |contain |follow |start |end |match |remain |fit |carry |run )|should (?:always|only) |may only|can only|(?:is|are) only (?:to|allowed|for))\b(?!'ve| add| have (?:\w+ed|been|had)| feel| love| miss| think| see| remember| enjoy| know| say| admit| be (?:so|nice|fun|great|good|hard|\w+ing))"
    rf"|\b(?:only|just) (?:with|after|once|if|when|upon) (?:my|our|the|a|an|explicit|written|i|we|someone|[A-Z]\w+)\b|\b(?:needs?|requires?|subject to|pending) [\w' ]{{0,30}}?\b{APPROVAL}\b"
    r"|\b(?:every|each|all|any) [\w' -]{1,40}? (?:needs?|requires?|goes|go|must|has to|have to|gets) (?!through (?:this|it|that))(?!to know)\w|\b(?:go(?:es)?|comes?|has to go|must go|needs to go) (?:through|via|past) (?:me|us|(?-i:[A-Z])\w+)\b|\bI insist (?:on|that)\b|\b(?:everywhere|throughout|across the board|in all cases|every single time|always),? ?please\b|\bplease,? always\b|\b(?:has|have|is|are) to be [\w -]{1,30}|\b(?:is|are) a must\b"
    r"|^(?:please )?(?:run|do|check|add|put|start|end|close|open|read|test|back up|wash|lock|turn|update|write|save|send|review|sync|clean|record|measure|take|give|count|mark|use|validate|verify|log) [^.;!?]{1,60}?\b(?:before|after|on|for|in|with|at|to|from) (?:each|every|any|all|you)\b|^(?:please )?(?:cite|indent|format|spell|prefix|abbreviate|address|capitali[sz]e|pronounce|translate everything|document|annotate|round|quote) (?!this\b|the (?:following|text|above|below)|it\b|that\b)[\w]|^(?:please )?(?:reply|answer|respond|write|speak|talk) (?:to \w+ )?in (?:whatever|whichever|the|plain|simple|short|full|british|american|bullet|[A-Z])[\w' ]*|^(?!I\b|I'|he\b|she\b|they\b|it\b|we\b|you\b|there\b|that|this\b|my\b|the\b)\w+ [^.;!?]{0,60}?\bonly (?:if|when|after|once|with|in|on|from|to|for|via|by|through)\b"
    r"|\byou(?:'ve got| have| need) to (?:always|never|only|ask|check|confirm|get|use|keep|wait|tell|stop|follow|go through)\b|\b(?:without|with|over|under|after|before|from|above|below) [^.;!?]{2,40} (?:gets?|are|is) (?:closed|rejected|declined|ignored|dropped|refused|blocked|escalated|deleted|returned|archived|reviewed|approved)\b|^(?:if|when|whenever|once|as soon as|every time|in case) [^,;.!?]{3,70}, (?:then |please |always |just )?(?:hand|call|tell|send|use|ask|stop|notify|escalate|pass|forward|reply|answer|write|offer|check|run|open|close|add|book|remind|restart|contact|put|give|switch|raise|page|ping|alert|refer|mark|log|turn|apologi[sz]e|transfer|refund|warn|report|cancel|skip)\b|^[\w' ]{2,25} (?:off|closed|out) (?:at|by|after|before|until) |\b(?:mandatory|compulsory|non[- ]negotiable|a (?:hard |strict |firm )?(?:requirement|must\b|prerequisite)|hard requirement|required|obligatory|exclusively|at all times|without exception|house rule|(?:golden|standing|hard|ground|basic|key|one|new|first|general|important|my|our|the) rules?(?: is| here|:|,)|rule (?:of|number|no|#)|as a rule|standing (?:order|instruction)|policy is|convention is|from now on|going forward|from here on|every time you|each time you|for (?:all|every) (?:answers?|repl|emails?|files?|commits?))\b"
    r"|\bonly (?!if\b|when\b|thing|time|one\b|way\b|reason)[\w' ]{1,30} (?:can|may|must|should|is allowed|are allowed|gets to|get to)\b|^(?:all|every|each|any) (?:the |our |my |of )?[\w' -]{1,30}? (?:in|with|as|via|through|by) (?!all\b|the end\b|the way|love|me\b|us\b)[\w`]|^[\w' -]{2,40} (?:first|only)(?:,|[.!]?$)|,? always[.!]?$|^(?:please )?(?:treat|regard|handle) [\w' -]{2,60} (?:as|with|like)\b|\bit(?:'s| is) (?:absolutely |really )?(?:essential|crucial|vital|imperative|critical|mandatory|required|important that|necessary that)\b|\b(?:we|I) have (?:a|an|the|this|our) [\w' -]{0,40}?(?:policy|rule|ban|restriction|requirement|curfew|freeze)\b|\bthere(?:'s| is) (?:a|an) [\w' -]{0,30}?(?:rule|ban|freeze|embargo|curfew|restriction|requirement)\b|\b(?:is|are|stays?|remains?) always (?:locked|closed|off|on|paid|signed|reviewed|kept|done|sent|turned|shut|encrypted|approved|tested|in)\b"
    r"|\b(?:I|we)(?: want| need| expect| would like|'d like| insist)(?: that)? (?:you to (?:always|never|only|use|keep|stick|ask|check|be|answer|reply|write|call|treat|avoid|follow)|every|all|each|everything|the \w+ to (?:always|be|use|have|stay)|(?:answers|replies|responses|it|them) (?:to be|in|short|without))"
    r"|\b(?:we|you) (?:always|only) " + WORK_VERB + r"\b"
    r"|^(?:remember|keep in mind|note|bear in mind|don't forget|do not forget|important|fyi|for the record|nb|please note|reminder|heads[- ]up|be aware|be careful)\b(?: that|:|,| -)? (?!to (?:take care|have|enjoy)|when|how|the time|me\b)\w",
    re.IGNORECASE,
)  # fmt: skip

_OF_A_THING = r" (?:(?:from|that|which|who|we|they|he|she)\b|(?:in|to|on|of) (?:(?:this|that|these|those|my|our|their|his|her)\b|the (?!form|style|voice|manner|tone|same|language|way|first|third)|[\w/-]+\.\w))"
"""Behind "all messages": those of somebody, or in something, are not the answers of the agent."""
_ANSWERS = rf"(?:(?:throughout|during|for|in) (?:the (?:entirety|rest|remainder|duration|whole) of )?(?:this|our|the)(?: entire| whole)? (?:conversation|chat|session|discussion|dialogue)|(?:each|every|all)(?: one)?(?: single)?(?: of)?(?: your| the| my)? (?:answers?|responses?|repl(?:y|ies)|messages?|questions?)(?!{_OF_A_THING})|your (?:answers|responses|replies))"
OF_ANSWERS = re.compile(
    rf"(?i)(?=.*\b{_ANSWERS}\b)(?:.*\b(?:please|pls|(?:I|we)(?:'d| would) (?:like|love|prefer)(?: it if)? you|(?:I|we) (?:want|need|expect) you|you (?:must|should|have to|need to))\b|(?:.* )?all of your (?:answers|responses|replies) (?:will|must|should|are to)\b"
    r"|(?:.*[,;:] |.*\band )?(?:always |only )?(?:use|include|mention|begin|start|end|finish|close|open|add|avoid|keep|respond|reply|answer|speak|write|adopt|act|stay|remain|refer|address|call|say|sign|limit|put|pretend|maintain|refrain|stick|explain|describe|give|provide|present|list|show|tell)\b)"
)
"""Says how answers are to be: "End each answer with a question", "For this conversation, please speak like a pirate"."""

BOUND = r"(?:at (?:the )?most|at (?:the )?least|no more than|not more than|no less than|no fewer than|no (?:later|earlier|sooner|longer|bigger|larger) than|maximum(?: of)?|max\.?(?: of)?|min\.?(?: of)?|minimum(?: of)?|up to|under|below|less than|fewer than|more than|above|over|within|not exceed(?:ing)?|exceeds?|or less|or fewer|or more|tops|(?:ceiling|cap|limit|threshold|quota|upper bound)(?: [\w' ]{1,30})?(?: is| are| of| at| to|:| =|'s| stays| remains)|limited to|capped at|(?:only|just) have|(?:longer|bigger|larger|higher|older|later|heavier|shorter|lower|smaller) than|(?:stops?|ends?|tops? out|maxe?s? out) at|only allowed|not (?:before|after|until|past)|between (?=\d))"
LIMIT_FRAME = re.compile(  # e.g. my budget is 500 EUR
    r"(?i)\b(?:(?:limit|cap|ceiling|maximum|max|minimum|min|threshold|quota|budget|allowance|upper bound|lower bound|ceiling|spending|headcount|word count|timeout|cutoff|cut-off|tolerance)\b[\w' ,/-]{0,50}?(?:\bis\b|\bare\b|\bof\b|\bat\b|=|:|\bto\b|\bstays\b|'s\b|\bremains\b)"
    r"|(?:must|should|can|may|has to|have to|needs? to|cannot|can't|shouldn't|mustn't|don't|do not|never|keep|limit|cap|please|want|spend|won't|only|allowed|stay|make|restrict|I've got|I have|we have|we've got|there's|give me|i need|(?:can|may) (?:have|be|take|use|run|spend|contain)|can only|only have|just have|have only|have just)\b)",
)  # fmt: skip
AT_BOUND = re.compile(  # e.g. at most 20 lines
    rf"(?i)\b{BOUND}(?!\w)(?:[^.;!?]{{0,40}}?\d|[^.;!?]{{0,12}}? (?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|fifty|half) \w)|\d[^.;!?]{{0,25}}?\b(?:max|maximum|tops|at most|or less|or fewer|at the (?:most|latest|earliest)|minimum|limit|cap|or under|or below)\b|\bis (?:my|our|the) (?:absolute |upper |hard )?(?:limit|max(?:imum)?|cap|ceiling)\b"
)

STRICT_BOUND = re.compile(  # e.g. no more than 20
    r"(?i)\b(?:no more than|not more than|at (?:the )?most|max(?:imum)?\.?(?: of)? \d|not exceed\w*|no (?:later|longer|earlier|less|fewer) than|\d[\w ,%]{0,15} (?:max|tops|at most|maximum))\b"
)

DECIDE = re.compile(  # e.g. we decided on Postgres
    r"(?i)\b(?:(?:we|I|the team|they|management|everyone|my (?:wife|husband|partner|boss) and I|[A-Z]\w+ and I)(?:'ve| have|'s| has)?(?: now| finally| both| all| just| also| already)? (?:decided|agreed|settled|chosen|picked|opted|concluded|resolved|committed to using|standardi[sz]ed|signed off|made up (?:my|our) minds?|landed)\b"
    r"|^(?:final |our |my )?decision: ?\S|(?:final|the) (?:decision|choice|call|verdict|answer)\b(?: is|:|,) (?!to help|based)\S|it's (?:decided|settled|final|official)|(?:I|we)(?:'m|'re| am| are) (?:going|sticking|sold|settled) (?:with|on|for)\b|(?:we|I)(?:'ll| will| shall) (?:go (?:with|for|ahead with)|use|stick (?:with|to)|be using|take|skip|drop|do it)\b"
    r"|let's (?:just |now |all |then |please |also |maybe not |not )?(?:go with|go for (?:the|option|plan)|use|stick (?:with|to)|switch|drop|skip|choose|pick|settle|adopt|raise|lower|cap|bump|postpone|cancel|avoid|not|agree)\b|^(?:ok(?:ay)?,? |please |then |so |yes,? |just )*go with (?!the flow)(?:the |option |plan |a |an )?[\w`\"]"
    r"|(?:the plan is|plan is to|the plan:|we plan to|we(?:'re| are) (?:dropping|switching|migrating|skipping|removing|cutting|replacing)|I(?:'m| am) (?:switching|dropping|cancel\w+) )|(?:that|it)(?:'s| is) (?:final|settled|decided)|final decision|voted\b|^(?:\w+[,:]? )?(?!yes|here|there|what|that|how|as|where|sure|so|like|oh|well|who|why)[\w`+#.-]+ it is(?: then| for [\w' ]+)?[.!]?$|is (?:the winner|the one we|what we(?:'re| are) going with)|\b(?:chose|picked|went with|opted for|voted for)\b (?!me\b|up\b|him|her\b)|I(?:'ve| have) (?:chosen|picked)|we're set on|sign(?:ed)? off on|the vote (?:went|was) )",
)  # fmt: skip

WEAK_DECISION = re.compile(
    r"(?i)\blet's (?:just |now |all |then |please |also )?(?:do|have|host|keep|make|call|book|set|leave|take|move|put|stay|run|plan|push|hold|ship|build|write|store|name|target|say|schedule|meet|buy|paint|have (?:it|the|them))\b|\b(?:we|I)(?:'re| are|'m| am) (?:doing|hosting|having|building|keeping|staying|taking|moving|writing|shipping|launching|going)\b|\b(?:is|are|'s) going to be (?:in|at|on|called|named|done)\b|\bwe(?:'ll| will) (?!see|be (?:fine|ok|there)|have (?:fun|a )|get through|definitely|always)[a-z]+ "
)
"""A decision where the sentence has a value."""

AIM = re.compile(  # e.g. our goal is a launch in May
    r"(?i)\b(?:(?:my|our|the|main|overall|end|ultimate|whole|final|real|big|long[- ]term|primary) (?:\w+ ){0,3}?(?:goals?|aims?|objectives?|targets?|purpose|mission|ambition|priority|north star|intention|whole point|point of (?:this|all|the)[\w ]{0,30}|idea here|end ?game|dream|deliverable|success criteri\w+)(?: here| for [\w' ]{1,40}| of [\w' ]{1,40}| with [\w' ]{1,40}| this \w+| right now)?(?: is| are|:|,| has| =|'s| would be)"
    r"|goal:|objective:|target:|aim:|mission:|what (?:matters|counts)(?: most| here)? is|(?:the|my|our) (?:most important thing|main thing|top priority) is|what (?:I|we)(?:'m| am|'re| are)? (?:really |ultimately |actually )?(?:want|need|after|trying|aiming|hoping)[\w ]{0,30} is|success (?:means|is|looks)|we(?:'ll| will) be done when|done (?:means|is when|when)|by the end of (?:this|the|it|today|june|july|next|q\d|\w+ day)[^.?!]{0,20}(?:I|we) (?:want|need|should|must|'d like|have to)|(?:I|we)(?:'m|'re| am| are) (?:aiming|shooting|working towards?|saving (?:up )?for|training for|targeting|on track)"
    r"|(?:eventually|ultimately|in the end|in the long run|long[- ]term),? (?:I|we) (?:want|would like|'d like|need|hope|plan|aim|should)|(?:I|we) (?:aim|intend|hope|plan|want|would like|'d like|need|have|must|'ve got|have got)(?: to| on)\b|(?:I|we)(?:'m|'re| am| are) (?:hoping|trying|planning|aiming|preparing|working)(?: hard)? (?:to|on|for|towards?)\b)",
)  # fmt: skip
BY_WHEN = re.compile(  # e.g. before the launch
    r"(?i)\b(?:by|before|until|this|next) (?:the )?(?:conference|meeting|trip|move|fair|demo|visit|audit|review|deadline|baby|end|start|middle|beginning|(?-i:[A-Z])\w+|summer|spring|autumn|fall|winter|noon|lunch|year|quarter|month|week|launch|exams?|holidays?|wedding)\b"
)
PLAIN_AIM = re.compile(  # e.g. saving up for a car
    r"(?i)\b(?:goals?|aims?|objectives?|targets?|purpose|mission|ambition|priority|north star|aiming|ultimately|eventually|in the long run|whole point|done when|success|saving (?:up )?for|training for|what matters|most important|main thing|what (?:I|we)\b[\w ']{0,40}\bis\b|point of)\b"
)

PROMISE = re.compile(  # e.g. I will send it
    r"(?i)\b(?:I(?:'ll| will| shall)|we(?:'ll| will)|I(?:'m| am) going to|we(?:'re| are) going to)\b|\b(?:I|we)(?:'ve| have)? (?:hereby )?(?:promise[ds]?|commit(?:ted)?(?: to| ourselves)|guarantee[ds]?|pledge[ds]?|swore|swear|gave (?:them|him|her|my|our) word|owe|vow(?:ed)?|told [\w. ]{1,30}? (?:that )?(?:we|I)(?:'d|'ll| would| will))\b|\byou have my word\b|\bmy word\b|\byou(?:'ll| will) (?:have|get) (?:the|my|it|them|your)\b"
)
HARD_PROMISE = re.compile(  # e.g. I give you my word
    r"(?i)\b(?:promis\w*|commit\w*|guarantee\w*|pledge\w*|vow\w*|swear|swore|word|owe|told|won't)\b"
)

PREFER = re.compile(  # e.g. I'd rather sit at the aisle
    r"(?i)\b(?:I|we|my (?:wife|husband|son|daughter|partner|mother|mom|mum|father|dad|boss|client|kids?|team)|she|he|they)(?:'d| would)?(?: really| much| strongly| generally| usually| always| personally| still| do| definitely| kind of| tend to| would| also| both| actually)* (?:prefers?|favou?rs?|rather (?:not |have |go |see |use |keep |you |we |avoid |take |be |sit |stay )|dislikes?|hates?|detests?|loathes?|can't stand|cannot stand|can't tolerate|go for)\b"
    r"|\b(?:I|we)(?:'d| would) rather\b|\bI (?:really |also |just )?(?:don't|do not|can't|cannot|never|no longer) (?:like|eat|drink|do|enjoy|care for|want (?:any|to (?:sit|fly|stay|drive|get|be|hear|see))|touch|take|tolerate|have (?:dairy|gluten|meat|sugar|nuts)|handle|wear|use|work (?:on|past|after|before|weekends)|read)\b(?! know| it\b| to (?:be|say|think|admit)| that (?:much|often)| think| have| enough| about| how| understand)"
    r"|\bI(?:'m| am)(?: a| an| strictly| mostly| very| really| severely| quite| a bit| highly| also| not| no)* (?:vegetarian|vegan|pescatarian|gluten[- ]free|lactose|coeliac|celiac|diabetic|allergic|intolerant|left[- ]handed|colou?r[- ]?blind|kosher|halal|teetotal|fan of|morning person|night owl|more of an?|picky about|partial to|keen on|into (?:short|minimal))\b|\b(?:is|are) (?:severely |very |highly )?(?:allergic|vegetarian|vegan|lactose intolerant|gluten intolerant|diabetic|coeliac|celiac)\b|\b(?:nut|peanut|shellfish|dairy|penicillin|pollen|bee|latex|egg|soy|gluten|wheat) allergy\b"
    r"|\bmy (?:\w+ )?(?:favou?rite [\w ]{1,25} (?:is|are)|preference|preferred|pet peeve)\b|\b(?:I|we|I'm|I've)\b[\w' ]{0,25}\b(?:vegetarian|vegan|pescatarian)\b|\b(?:is|are|works?|suits?) (?:me |us )?(?:best|better|easier|easiest)(?: for (?:me|us))?[.!]?$|\b(?:I|we)'d (?:love|like) (?:to have |to see |to get )?(?:more|less|fewer|shorter|longer|smaller)\b|\bI (?:work|sleep|study|learn|think|concentrate|focus) best\b|^(?:not |big |huge )(?:a )?(?:big |huge )?fan of|\bI like [\w' ]{1,40} (?:more than|better than|best)\b|^[\w' -]{2,40} over [\w' -]{2,40}(?: for me|,? please|,? always|,? any ?(?:day|time))|^if (?:there's|there is|i have|you have|given|we have) (?:a|the)? ?choice\b|\bI like (?:my|to (?:be|have|get|keep|see|read|sit|stay|work|fly|travel)|things|short|it (?:when|short|simple|brief|plain)|when|answers?|emails?|clean|small|long|plain|having|aisle|window|the (?:window|aisle|quiet|short|simple|plain))\b|\bpreferabl[ye]\b|\b(?:works?|suits?) (?:best|better) for me\b|\bmy preference\b|\bprefer(?:red|ence|s)?\b",
)  # fmt: skip
LASTING_LIKE = re.compile(r"(?i)\b(?:allerg|intoleran|vegetarian|vegan|celiac|coeliac|diabetic)")

OWNED = re.compile(  # e.g. my flight is at 9:15
    r"(?i)\b(?:my|our|your|the|his|her|their|this|that|new|[A-Z]\w+'s|current)\s+(?P<what>(?:[\w'&/#-]+\s+){0,6}?[\w'&/#-]+?)(?:\s+(?:is|are|was moved|was changed|will be|has moved|has changed|moved|got moved|got pushed|has been|have been|had been|is now|changed|slipped|runs?|starts?|begins?|leaves?|lands?|ends?|opens?|closes?|departs?|arrives?|boards?|takes place|costs?|expires?|lasts?|lives?|stays?|sits?|listens?|goes|stands|became|was|falls|drops?|went|shifts?|shifted|gets?|remains?|comes? to|equals?|has|should be|needs to be|must be)\b|'s (?!(?:[\w'-]+ ){1,4}(?:is|are|was|will|has|starts?|goes|leaves|moved)\b)(?=\S)|\s*[:=]\s*)(?P<rest>.+)",
)  # fmt: skip
SETTING = re.compile(  # e.g. the deadline
    r"(?i)\b(?:budget|deadline|due date|limit|cap|address|phone|number|mobile|email|e-mail|name|surname|flight|train|room|port|branch|version|database|host|hostname|server|cluster|region|bucket|endpoint|url|repo|repository|project|path|folder|directory|account|iban|order|ticket|booking|reservation|confirmation|reference|seat|gate|platform|hotel|appointment|meeting|call|standup|interview|party|wedding|birthday|anniversary|launch|release|go-live|owner|contact|manager|boss|doctor|dentist|vet|landlord|teacher|tutor|supervisor|client|customer|supplier|vendor|accountant|lawyer|dose|dosage|medication|prescription|timezone|time zone|currency|language|size|shoe size|colou?r|model|plan|theme|code|pin|id|key|target|quota|discount|price|rate|fee|rent|salary|weight|height|width|length|temperature|blood pressure|capacity|timeout|interval|schedule|shift|pickup|delivery|arrival|departure|check-?in|check-?out|start|end|kickoff|location|venue|office|school|class|grade|subject|topic|title|codename|username|user ?name|handle|login|ssid|wifi|licen[cs]e plate|registration|guest list|headcount|menu|exam|due|delivery window|channel|environment|framework|runtime|stack|os|pronouns?|age|nickname|password|zip|postcode|postal code|count|total|sum|score|goal|threshold|margin|sla|retention|frequency|stage|status|role|position|employer|company|team|city|country|contract|subscription|car|laptop|phone number|surgery|operation|visit|session|lesson|rehearsal|concert|game|match|trip|holiday|vacation|move-in|closing|backup|log level|contact person|point of contact|po number|invoice|policy number|case|ticket number|vat|tax)\b",
)  # fmt: skip
TERSE_SETTING = re.compile(  # e.g. the codename
    r"(?i)\b(?:topic|subject|theme|language|stack|codename|title|venue|owner|contact|branch|model|framework|plan|menu|password|status|location)\b"
)
KEY_VALUE = re.compile(  # e.g. standup: 9:15
    r"(?i)^(?!note|ps|fyi|hi|hey|update|example|question|answer|http|re\b)(?:[\w'/&.-]+ ){0,4}[\w'/&.-]+\s?[:=] ?(?=\S)"
)
PAST_VERB = re.compile(  # e.g. we went there
    r"(?i)\b(?:was|were|had|did|didn't|wasn't|weren't|went|took|got|came|saw|made|said|told|gave|found|felt|left|bought|met|ate|drank|spent|paid|won|lost|thought|knew|began|started|finished|used|tried|ended|lasted|visited|watched|played|worked|happened|attended|[a-z]{3,}ed (?=a\b|the\b|my\b|our\b|in\b|at\b|for\b|to\b|with\b|up\b|it\b|out\b|about\b|over\b))\b"
)
PRESENT = re.compile(  # e.g. the shop opens at 9
    r"(?i)\b(?:(?:starts?|begins?|ends?|opens?|closes?|leaves?|departs?|arrives?|lands?|boards?|comes?|costs?|lasts?|expires?|runs?|listens?|targets?|weighs?|sees? me|meets?|takes?|needs?|requires?|allows?|happens?|delivers?|collects?|returns?|gets? (?:back|in|his|her|their|my)|flies|goes live|ships|falls|moves?|hosts?|teaches|serves?|holds?|contains?|earns?|pays?|bills?|charges?|measures?|stands?|sits?|stays?|reads?|says?|owns?|send (?:it|them|this|that|everything))\b[^.;!?]{0,40}?\b(?:on|at|in|by|from|until|till|to|for|about|around|only|just)?\b|(?:I|we) (?:have|take|need|pay|use|get|do|eat|drink|earn|work|start|leave|arrive|inject|measure|swim|run|wake|sleep)\b|party of|group of|table for|room for|it's|there are|there's|(?:can|may) (?:have|be|take|go)|is|are|will|'ll|won't)\b",
)  # fmt: skip
PASSING = re.compile(  # e.g. really tired
    r"(?i)^(?:(?:so|really|very|quite|pretty|too|just|also|now|always|still|all|both|kind of|sort of|a bit|already|never|actually|definitely|absolutely|such|super|finally|probably|getting|going|being|coming|doing|looking|feeling|working|trying|having|taking|making)\b(?! (?:\d|on |at |in |the ))|(?:not|that|to|how|why|what|whether|if|where|because|when|like|about|of|fine|good|ok|okay|great|nice|here|there|done|ready|broken|failing|down|slow|stuck|amazing|awesome|important|hard|tough|beautiful|fun|cute|happy|sad|sick|proud|excited|interested|interesting|over|up|gone|growing|a (?:bit|lot|little|great|good|big|huge|nice|real|true|constant|reminder|blast|mess|pain|joke|joy|bummer|dream|thing|way|must))\b)"
)
SET_FACT = re.compile(  # e.g. call me Jo
    r"(?i)\b(?:reach me (?:at|on|under|by|via)|contact me (?:at|on|via|by)|I was born (?:on|in)|call me|my name(?:'s| is)|I go by|name's|you can call me|address me as)\s+(?!later|back|when|if|crazy|tomorrow|on\b|at\b|old|a\b)\w"
    r"|\b(?:we|I)(?:'re| are|'m| am)(?: currently| now| all| still)? (?:using|running|on (?=v?\d|Python|Node|Java|Postgres|[A-Z`])|based in|living in|located|staying (?:at|in)|flying|arriving|landing|leaving|working (?:at|for|with)|hosting|deploying to|in the [A-Z]{2,5}|taking \d|budgeted|a (?:party|group|family|team|class) of|\d+ (?:people|weeks|years)|targeting|moving to|booked (?:on|in|at|into)|available|free (?:on|after|from)|off (?:on|from)|out of office|due (?:on|at|in)|meeting|back (?:on|in|at))\b"
    r"|\b(?:we|I) (?:now |currently |also |only )?(?:use|run|deploy (?:to|on|from|with)|host|live in|live at|work (?:at|for|from|on|with)|take \d|weigh|drive a|own an?|moved to|changed to|switched to|upgraded to|store|bill|pay|have (?:a budget|up to|\d|an appointment|a meeting|a deadline|until|an? \w+ (?:on|at))|earn|fly|land|arrive|leave|depart|start (?:on|at|in)|meet (?:on|at|every)|teach \d*|need (?:it|this|them|everything|the [\w ]{1,30}) (?:by|before|on|at|in)|need \d|booked|scheduled|ordered|rescheduled|reserved|paid|got (?:the|a) (?:appointment|slot|booking))\b"
    r"|\b(?:is|are) (?:due|scheduled|booked|set|on hold|moved|postponed|called|named|located|allocated|assigned|reserved|confirmed|in charge|responsible|our (?:new )?\w+)\b|\b(?:moved|pushed|postponed|rescheduled|shifted|changed|brought forward|delayed|extended|upgraded|renamed|bumped|raised|lowered|increased|reduced|cut|went (?:up|down)|goes (?:up|down)|switched|migrated|relocated) (?:back |up |down |forward |out |it )?(?:to|from|until|till|by)\b|\b(?:due|scheduled|booked|set) (?:on|for|by|at|to)\b"
    r"|\b(?:goes|go|belongs?|reports?|is handled|is managed|is owned|is led|is run|are sent|is sent|gets sent) (?:to|by) |^(?:please )?(?:ship|send|deliver|mail|post|bring|forward) (?:it |them |everything |this |that )?to |^(?:version|port|branch|room|gate|platform|seat) [\w.]+ (?:is|it is)\b|\bthere (?:will be|are|are going to be|'ll be|'s going to be) (?:now |only |actually )?\d+\b|^(?:deadline|budget|address|name|port|version|branch|date|time|venue|room|owner|contact|phone|email|limit|target|flight|hotel|order|guests|price|size|colou?r|language|timezone|quantity|location|status)\b\s*[:=-]\s*\S",
)  # fmt: skip

REVISES = re.compile(  # e.g. from now on
    r"(?i)\b(?:actually|instead|in place of|rather than|no longer|not any ?more|any ?more|any longer|from now on|from (?:today|tomorrow|this point|\w+day) on(?:wards?)?|from here(?: on(?:wards?)?)?|as of (?:now|today|this|tomorrow|next|\w+day)|going forward|starting (?:today|now|tomorrow|this|next|\w+day)|scratch (?:that|the|what|my)|strike (?:that|the)|correction|I meant|I misspoke|my mistake|mea culpa|I was wrong|(?:got|had|said) (?:it|that|the \w+) wrong|typo|oops|on second thoughts?|(?:changed|change of) (?:my|our|his|her|plans?|mind|heart)|change of|changed|changes(?= (?:to|from|on|at|into)\b)|change (?:that|it|the|this|my|our)|(?:forget|ignore|never mind|disregard|drop|cancel|undo|revoke|lift|scrap|ditch|bin|retract|reverse|revise|replace|overrule|override|update|amend) (?:what|everything (?:I|we)|that|the|my|our|this|about|it)|update[:,]|new (?:plan|rule|limit|deadline|budget|address|number|date|time|target|goal|version|port|phone|email|one|owner|flight|price|policy|value|\w+:)|(?:the|my|our) new|make (?:it(?! to [A-Z])|that|this)|bump(?:ed)?|rais(?:e|ed|ing)|lower(?:ed)?|increas\w+|reduc\w+|extend\w*|shorten\w*|cut (?:it|that|the|to)|moved?|moves|pushed?|postponed?|(?:bring|brought|bringing|brings) (?:the |my |our |it |this )?(?:[\w'-]+ ){0,3}(?:up|down|forward)|(?:wasn't|isn't|weren't|aren't|not) (?:long |big |small |quite )?enough|rescheduled|shifted|switch(?:ed|ing)?|migrat\w+|upgraded?|(?<!for )now|is fine|are fine|fine now|okay now|ok now|allowed (?:now|again|after all)|after all|not [\w' -]{1,40}?,? but|used to|previously|earlier|before I said|I said|we said|turns out|it(?:'s| is) (?:now|really|been)|replaces?|supersedes?|overrides?|relocated|grew to|went (?:up|down)|up to \d+ now|back to|renamed|changing|swap(?:ped)?|slipped|lifted|slips|approved|granted|allow(?:s|ed)?|gave (?:us|me|them)|took over|taken over|takes over|rebooked|fell through|cancel\w+|misread|misremember\w+|need until|won't (?:manage|make|have|be able)|talked me|new|grown|got (?:bigger|smaller|longer|shorter|delayed|moved)|more (?:ambitious|realistic)|can go up|go up to|from (?:today|tomorrow|monday|now)|(?:from|starting|as of|beginning) (?:this|next) (?:week|month|term|season|year)|starting (?:in )?(?:January|February|March|April|May|June|July|August|September|October|November|December)|nowadays|these days|in (?:the )?future|again|better|(?:more|less|extra) time|(?:is|are|'s) (?:early |soon |good |quite |more than )?enough|can wait (?:un)?til\w*|sold out|booked out|is full|fell ill|had to (?:move|change|switch|cut|cancel)|too (?:strict|low|high|small|tight|short|long|expensive)|go with \w+ (?:instead|after)|(?<!'m )(?<!am )(?:sorry|no|nope|wait|hmm)(?=, )|hold on|stop \w+ing)\b|, sorry\b"
    r"|^(?:(?:please|ok(?:ay)?|so|and|now|then|just),? )*(?:make|set|put|fix) (?:the|my|our|its|this|that) [\w' -]{1,40}?(?: to| at)? (?=[$€£]?\d)",
)  # fmt: skip
STRONG_CORRECTION = re.compile(  # e.g. scratch that
    r"(?i)\b(?:(?:slipped|(?:was|got|been) (?:postponed|delayed|pushed back)) (?:to|until|till)|scratch that|strike that|correction|I meant|I misspoke|make (?:it(?! to [A-Z])|that|this)|change (?:that|it|this|the [\w ]{1,30}) to|not [\w' .,:/-]{1,40}?,? but (?:rather )?(?=\S)\w+|on second thoughts?|(?:changed|change of) (?:my|our) mind|change of plans?|forget (?:what|the|everything (?:I|we)) |ignore (?:what|my|the|everything (?:I|we)) |disregard|instead of|(?:has|have|had|got|been|was|were) (?:been )?(?:moved|relocated|shifted|switched|postponed) to|it's [\w` .:-]{1,40}, not\b|bump (?:it|that)|cut it|turn it (?:up|down)|replace \S+ (?:\w+ )?with|switch(?:ing)? (?:to|from|back|over)|(?:no|nope|sorry|wait|oops|hmm|hold on|actually)[,:\u2014-]+ ?(?!i (?:think|was|am|don't|just|guess|mean\b|have)|that's|it's (?:been|fine|ok|good)|we (?:were|had)|not (?:really|yet)|he|she|they)[\w`]+)\b"
    r"|^(?:(?:please|ok(?:ay)?|so|and|now|then|just),? )*(?:make|set|put|fix) (?:the|my|our|its|this|that) [\w' -]{1,40}?(?: to| at)? (?=[$€£]?\d)"
    r"|^(?:oh )?(?:actually|no|nope|wait|sorry|hmm|ok|okay)\b[, ]+(?:actually |no |wait |sorry |better |rather |then |let's |make |use |go |with |do )*(?:the )?[\w`$€.:+#-]+(?: [\w`:+#-]+)?(?: then| instead| please)?[.!]?$|, not (?:the |a |an |to |at |on |in |for |by )?[\w`$€.:-]+[.!]?$|\bmoved? (?:it )?to\b",
)  # fmt: skip
EXPLICIT = re.compile(
    r"(?i)\b(?:instead|in place of|rather than|no longer|not any ?more|any ?more|any longer|from now on|from (?:today|tomorrow|this point|\w+day) on(?:wards?)?|as of (?:now|today|this|tomorrow|next|\w+day)|going forward"
    r"|scratch (?:that|the|what|my)|strike (?:that|the)|correction|I meant|I misspoke|my mistake|I was wrong|typo|on second thoughts?|chang(?:ed?|ing) (?:my|our|his|her|of|to|it|that)\b|(?:forget|ignore|disregard|never mind) (?:what|everything|the|my|our)|new plan|make (?:it|that)"
    r"|(?:bump|rais|lower|increas|reduc|extend|shorten|postpon|reschedul|migrat|renam|revis|replac|overrul|swap|lift)\w*|(?:move|push|shift|switch)(?:e?d|ing)?|brought (?:\w+ )?forward|after all|talked \w+ (?:out of|into)|too (?:strict|low|high|small|tight|short|long)|more (?:ambitious|realistic)|(?:wasn't|isn't|not) enough|can go)\b"
)
"""Words that say that something is to be otherwise than before; "new", "now" and "again" stand in other sentences, too."""
DONE = re.compile(
    r"(?i)^\W*(?:(?!I\b)[\w'-]+ ){1,4}?(?:lifted|raised|lowered|moved|changed|extended|pushed|cut|increased|reduced|postponed)(?= (?:the|my|our|it|that|this)\b)|"
    r"\b(?:(?:I|we|you|he|she|they|it|who|that|there)(?:'(?:m|re|s)| am| are| is| was| were)(?: (?:now|not|only|all|\w+ing|\w+ed))*"
    r"|(?:(?:I|we|you|he|she|they|it|who|that)(?:'ll|'ve|'d)?|will|would|won't|shall|can|can't|cannot|could|must|mustn't|should|may|to|don't|doesn't|please|let's)"
    r"(?: (?:not|never|always|only|now|also|be|have|has|had|been|will|won't|can|can't|must|should|may|need|going|to))*(?! (?:am|are|is|was|were)\b) \w+)\b"
)
"""What somebody does: a pronoun or an auxiliary with its verb, or who changed something: "Management lifted the target"."""
LIFTS = re.compile(  # e.g. dairy is fine again
    r"(?i)\b(?:(?:is|are|'s|be|it's|that's|feel) (?:now |totally |perfectly |also |actually )?(?:fine|ok|okay|allowed|permitted|acceptable|alright|all right|free to|no problem|good to go|welcome|possible|back on|not (?:needed|necessary|required) any ?more|optional)(?: now| again| too| after all| from now on| with me| by me)?|(?:you|we|they) (?:can|may|could)(?: now| also| again)? (?=.*\b(?:now|again|after all|from now on|too|as well)\b)|(?:you|we|they) (?:now )?(?:can|may) (?:go ahead|ignore)|no need to|(?:don't|doesn't|do not|does not) (?:have to|need to|need|matter|apply)|no longer (?:applies|apply|need\w*|valid|hold\w*|matters?|necessary|required|in force|forbidden|a rule|true|relevant)?|(?:rule|ban|limit|restriction|freeze|embargo|ban) (?:on [\w ]{1,30} )?(?:is|has been|was|are)? ?(?:lifted|gone|over|off|dropped|cancel\w+|relaxed|void)|(?:lift|drop|forget|ignore|scrap|cancel|relax|ditch|waive|never mind) (?:(?:what|everything(?: that)?) (?:I|we) (?:said|told you|asked|wrote)|the|that|my|our) [\w' -]{0,40}?(?:rule|limit|ban|restriction|requirement|freeze|policy|cap|thing|bit|part)?|(?:isn't|aren't|no longer|not) (?:a )?(?:needed|necessary|required|secret|confidential|forbidden|off[- ]limits) any ?(?:more|longer)|isn't (?:needed|necessary|required)|not (?:a problem|an issue) any ?more|called off|off the table|is (?:cancelled|canceled|off|over))",
)  # fmt: skip

_OLD = r"(?P<old>(?!it\b|that\b|this\b|what\b|them\b|everything\b|about\b|to\b|one\b)[^,.:;!?]{2,40}?)"
_OLD_ENDS = r"(?=[,;!?]|\.(?:\s|$)| (?:for|in|at|as|when|because|from|to|with|on|this|next|any ?more|any longer)\b|$)"
_NO_MORE = r"(?:scratch|forget(?: about)?|ditch|drop|scrap|bin|skip|no more) (?:the |my |our )?"
_GONE = (
    r"(?:(?:is|are|was|were|'s|has|have|had|got|fell) (?:(?:now|all|just|been|too|on|always|already|finally) )*(?:ill|sick|away|gone|out\b|off\b|leave|holiday|left|sold|full|closed|flooded|"
    r"broken|cancel\w+|expensive|unavailable|busy|retired|finish\w*|empty|down|dead|booked|quit|resigned|dropped out|injured|fired|sacked|stopped|no heating|too much|on (?:\w+ ){0,2}(?:leave|holiday|vacation|sabbatical)|(?:a|another|the) (?:new )?job|begged|promoted|transferred|expecting)"
    r"|cancel\w+|broke(?: down)?|quit|resigned|left|retired|died|stopped|called in sick|dropped out|stepped down|bowed out|backed out|pulled out|declined|joined|moved (?:away|on)|(?:'s |has )?(?:hurt|broken?|buggered|twisted|done in) (?:his|her|their)|can't (?:come|make it|do it)|couldn't (?:come|make it))"
)
GONE = re.compile(
    rf"(?i)(?:^|[,;] ?)(?:(?:and|but|so|because|since|as|sorry,?|unfortunately,?) )*(?:the |our |my )?(?P<old>[\w.&-]+(?: [\w.'&-]+){{0,2}}?)(?: |(?='s )){_GONE}\b[^,;.!?]{{0,60}}?(?:[,;.]| so\b| and\b) ?(?:so |and |now |then )*(?P<new>[^;!?]{{3,80}})"
    rf"|^(?P<new_too>[^;!?]{{3,80}}?)[,;.] (?:because |since |as )?(?P<old_too>[\w.'&-]+(?: [\w.'&-]+){{0,2}}?) {_GONE}[.!]?$"
    r"|\blet (?P<old_three>[^,.;!?]{2,40}?) go\b[,;.]? (?P<new_three>[^;!?]{3,80})"
)
"""Somebody or something is not there any more, and what stands in its place: "Hanna is ill, Omar has the keys"."""

_CHANGED = r"(?:chang|mov|switch|rais|lower|increas|reduc|cut|extend|shorten|push|bump|shift|migrat|postpon|reschedul|renam|updat|revis|went|goes|go|drop|upgrad|swap|convert|relocat)"

OLD_NEW = (
    (("not ",), re.compile(r"(?i)\bnot (?:the |a |an |on |at |in )?(?P<old>[^,.;!?]{1,40}?)(?:,? but| any ?more,) (?:rather |on |at |the |a )?(?P<new>[^,.;!?]{1,60})")),
    (("instead of", "rather than", "in place of", "and not", "replace"), re.compile(rf"(?i)(?P<new>[^,;!?]{{1,60}}?),? (?:instead of|rather than|in place of|and not|replaces?) (?:the |a |an |on |at |in )?(?P<old>[^,;!?]{{1,40}}?){_OLD_ENDS}")),
    ((", not ",), re.compile(rf"(?i)(?P<new>[^,;!?]{{1,60}}?), not (?!more|less|longer|later|earlier|yet|now|just|only|sure|really|even|how|what|when|where|as|(?:one|a \w+) (?:more|longer|less)\b)(?:the |a |an |on |at |in |to |by |for )?(?P<old>[^,;!?]{{1,40}}?){_OLD_ENDS}")),
    (("from ",), re.compile(rf"(?i)\b{_CHANGED}\w*\b[^.;!?]{{0,60}}? from (?P<old>[^,.;!?]{{1,40}}?) (?:to|over to|up to|down to) (?P<new>[^,;!?]{{1,60}})")),
    (("over",), re.compile(rf"(?i)\b(?:prefer|cho[os]se|pick|favou?r|rather)\w*\b (?P<new>[^,;!?]{{1,60}}?) over (?:the |a |an )?(?P<old>[^,;!?]{{1,40}}?){_OLD_ENDS}")),
    (("replace ",), re.compile(r"(?i)\breplace (?P<old>[^,;!?]{1,40}?) (?:with|by) (?P<new>[^,;!?]{1,60})")),
    (("scratch", "forget", "ditch", "drop", "scrap", "bin", "skip", "no more"), re.compile(rf"(?i)^\W*(?:\w+, )?{_NO_MORE}{_OLD}(?:[,;:.]| -|\u2014)+ ?(?P<new>[^;!?]{{2,80}})")),
    (("forget", "ditch", "drop", "scrap", "no more"), re.compile(rf"(?i)^(?P<new>[^;!?]{{2,80}}?)[,;.] (?:so |and |please )*{_NO_MORE}{_OLD}[.!]?$")),
)  # fmt: skip
"""The patterns of a new value in the place of an old one, each with words of which one is in every match, in lower case."""


def find_old_and_new(masked: str) -> tuple[str, tuple[int, int]] | None:
    """Find what a sentence replaces, and where what stands in its place is."""
    for parts, pattern in OLD_NEW:
        if has_part(masked, parts) and (match := pattern.search(masked)) is not None:
            return match["old"].strip(), match.span("new")
    if (match := GONE.search(masked)) is not None:
        form = next(form for form in ("", "_too", "_three") if match[f"old{form}"])
        return match[f"old{form}"].strip(), match.span(f"new{form}")
    return None


# What a sentence is not

REQUEST = re.compile(  # e.g. can you always use tabs
    r"(?i)^(?:(?:also|and|oh|hey|so|ok(?:ay)?|please|by the way|btw)[, ]+)*(?:(?:can|could|would|will) you (?:please |maybe |just |also |kindly )?(?:always|never|not|make sure|keep|avoid|stop|stick|use|only|remember|switch|change|call me|refrain|ensure|move|update|set|limit|address)"
    r"|(?:can|could|shall|should|may) (?:we|you) (?:please |maybe |just |also )?(?:make|move|change|switch|push|raise|bump|lower|go with|bring|set|increase|cut|extend|postpone|use \w+ instead|stick|keep)|(?:how|what) about (?=[^?]*\binstead\b))",
)  # fmt: skip
TAG_QUESTION = re.compile(  # e.g. no dogs, ok?
    r"(?i),? (?:ok|okay|k|right|alright|please|yes|yeah|deal|got it|understood|clear|agreed|cool|fine|will you)\?+$"
)
POLITE = re.compile(  # e.g. could you name the file by date
    r"(?i)^(?:(?:also|and|oh|hey|so|ok(?:ay)?|please|by the way|btw|hi|hello)[, ]+)*(?:(?:can|could|would|will) you (?:please |kindly |maybe |just )?(?:mind (?=\w+ing))?(?!(?:please )?(?:help|tell|give|provide|recommend|suggest|compare|explain|describe|show|share|find|look|think|believe|remember|imagine)\b)"
    r"|(?:can|could|may) (?=(?:the|my|our|all|every|any) )|would it be (?:possible|ok|okay) (?:that |if |for you to )(?:you )?)"
)
WISH = re.compile(
    r"(?i)\W*(?:(?:also|and|oh|hey|so|ok(?:ay)?|please|by the way|btw|hi|hello)[, ]+)*(?:(?:I|we)(?:'d| would) (?:(?:really|much|so|very) )*(?:appreciate it|appreciate|love it|like it|prefer it|be (?:(?:so|very|really) )*(?:grateful|glad|happy|happier|thankful|relieved)|feel (?:better|safer)) if (?!(?:I|we|there)\b)|(?:it|that)(?:'d| would) be (?:[\w']+ ){1,4}?if (?!(?:I|we|there)\b)|(?:perhaps|maybe|probably) (?:it's|it is|it'd be|it would be) (?:best|better|wise[rs]?t?|safe[rs]?t?)|(?:may|might|can|could) I (?:kindly )?(?:ask|request|beg) (?:you|that|for)\b|you(?:'d| would) (?:do me a favou?r|help me|make me happ\w+)\b|could we (?:please )?(?:agree|say|settle)\b|would it be (?:possible|ok|okay|all right) (?:to|if)\b|(?:can|could|would) (?:the|my|our|all|every|any) [\w' -]{2,40} please\b)"
)
"""An indirect order."""
LASTING = re.compile(
    r"(?i)\b(?:always|never|every|each|all|any(?:thing|body|one)?|in future|from (?:now|here|today)|going forward|first|any ?more|no longer|throughout|by default|please)\b"
)
"""Words with which an indirect order that is put as a question holds from now on."""
STANDS = re.compile(
    r"(?i)\b(?:when(?:ever)? (?:you|we|i)|every|each|all|always|in future|instead|rather than|not [\w ]{2,20}\?|first|last|at the (?:very )?(?:top|end|start|beginning|bottom|front)|before any|so that|in the (?:morning|evening)|only|without|in (?:grams|metric|bold|italics?|capitals|british|american|english|plain)|throughout|a (?:bit|little) (?:more|less|\w+er))\b"
)
"""Words of a wish that holds from now on; a question without them asks for something once."""
TASK = re.compile(
    r"(?i)^(?:(?:ok(?:ay)?|now|then|next|so|and|also|great|thanks|thank you|good|please|pls|hi|hey|hello|alright|perfect|first|finally|could|can|would|will|you|i want you to|i need you to|i'd like you to|help me|try to|go ahead and|just|quickly|alexa|siri|ok google|olly|computer)[,.!:]?\s+){0,6}"
    r"(?:(?:fix|summari[sz]e|read|add|find|refactor|rename|draft|explain|compare|count|list|describe|analy[sz]e|extract|sort|run|install|convert|update|check|show|look (?:up|at|for|into)|search|continue with|go on with|plot|draw|calculate|compute|estimate|create|generate|build|implement|debug|test|review|investigate|delete|remove|open|download|fetch|parse|print|reformat|rewrite|rephrase|shorten|simplify|proofread|suggest|recommend|propose|outline|brainstorm|prepare|merge|split|set up|design|evaluate|verify|solve|move on to|give|tell|repeat|redo|undo|commit|deploy|clone|restart|finish|complete)\s+"
    r"(?:the|a|an|this|that|these|those|it|them|me|us|my|our|some|all|any|another|one|two|three|four|five|ten|\d+|[\w./-]+\.\w{1,4}|line|page|part|section|chapter|step|question|task|item|image|figure|file|number|both|each|what|why|how|whether|if)\b"
    r"|(?:turn|switch|power|dim|mute|unmute|play|pause|resume|reserve|navigate|remind|wake|text|bring up|pull up|put on) (?:the|an?|my|this|that|it|me|us|some|on|off|up|down|to)\b|get (?:me|us)\b|(?:send|e-?mail) (?:an?|this|that|it)\b|set (?:an?|the|my) (?:\w+ )?(?:alarm|timer|reminder)\b"
    r"|write (?:an?|the|some|two|three|four|five|ten|\d+)\b|search for\b|(?:rename|draft|plot|translate|calculate|compute|summari[sz]e|refactor|debug|brainstorm|investigate|proofread)\b(?!,))"
)
"""An order to do something once: "Fix the failing test number 1"."""

LASTS = re.compile(
    r"(?i)\b(?:always|never|every|everything|everyone|everybody|each|any ?time|from (?:now|here|today)|in (?:the )?future|going forward|only|must|mustn't|unless|until|till|without|before|after|when(?:ever)?|if|no|not|nothing|nobody|instead|at least|at most|max(?:imum)?|minimum|limit|under|below|within|(?:by )?default|prefer|policy|rule|daily|weekly|monthly|twice|once an?|per|by|first|as well|rather|any ?more|any longer|still|now on|today|tonight|tomorrow|secret|private|confidential|\w+days?)\b|n't\b"
)
"""Words with which an order may hold longer than once."""

ORDERS = re.compile(
    r"(?i)(?:[\w`./&-]+(?: [\w`./&-]+){0,4}(?: ?[:\u2013\u2014]| ->| -) )?\W*(?:(?:please|always|then|first|only) )?(?:(?:use|implement|keep|prefer|avoid|add|create|write|include|run|follow|update|ensure|handle|apply|provide|consider|be|validate|set|check|define|verify|focus|enable|import|remove|prioriti[sz]e"
    r"|optimi[sz]e|return|maintain|minimi[sz]e|replace|extend|install|choose|separate|commit|generate|wrap|adhere|read|organi[sz]e|treat|preserve|send|make|leverage|explain|analy[sz]e|register|respect|respond|answer|reply|ask|call|declare|decline"
    r"|delete|deploy|describe|do|employ|escape|favou?r|fetch|fix|give|go|ignore|inject|inform|inspect|introduce|invoke|let|limit|look|mention|move|name|never|pass|perform|pick|push|put|refer|refuse|reject|rename|rely|reuse|sanitize|save|say|skip"
    r"|specify|start|stay|stick|stop|store|strive|suggest|tell|throw|try|understand|utilize|wait|work|configure|convert|communicate|confirm|combine|avoid|assume|annotate|expose|export|omit|bump|split|structure|translate|take|reproduce|consolidate|gather|group) (?!is\b|are\b|was\b|cases?\b|of\b)"
    r"|(?:test|build|log|place|order|mark|document|format|list|access|support|reference|link|query|cache|type|group|target|state|show|plan|display|review|report|plan|match|design|comment|cover|close|open|mock|monitor|select|sort|style|tag|track|view|value) (?:it|them|its|the|an?|all|any|every|each|your|both|only|new|for|with|from|by|when|if|before|after)\b)"
)
"""An order among instructions: it begins with a verb. Verbs that are nouns, too, have a word of an order behind them."""

HYPOTHESIS = re.compile(  # e.g. suppose we had no tests
    r"(?i)^(?:(?:and|but|so|well|hmm|oh)[, ]+)*(?:if (?:we|i|you|it|they|he|she) (?:must|had to|were|was|could|would|did|ever had)\b|suppose|imagine|assuming|what if|say we|let's say|hypothetically|in theory|had (?:i|we)|were (?:i|we)|should (?:i|we|you)\b|i wonder|i wish (?:i|we)\b|wondering|i(?:'m| am) (?:not sure|unsure|wondering|curious|torn|debating|undecided|considering|thinking (?:about|of|whether|if|maybe))|not sure|maybe|perhaps|possibly|i (?:might|may|could)|we (?:might|could)|do (?:i|we|you)|does|did|is it|are (?:you|we|they)|am i|why|how (?:do|can|should|would|to|come)|what (?:is|are|should|do|does|would)|which|who|where|when (?:should|do|is|are|will|can))\b",
)  # fmt: skip
HEDGE = re.compile(  # e.g. maybe we wait
    r"(?i)\b(?:maybe|perhaps|might|possibly|wonder(?:ing)?|would have|could have|(?:I|you|he|she|they|it) must have|(?:I|you|he|she|they|it|we) should have|(?:must|should) have(?! (?:an?|the|no|at|one|two|three|\d+|exactly|only|more|fewer|less|its|their|our|any|both|all)\b)|should (?:never|not) have (?:been|bought|gone|done|made|said|told|let|\w+ed)|supposedly|allegedly|i think (?:we|i|you) (?:could|should|might)|we could|i could|i guess|not sure|considering|thinking (?:about|of)|was thinking|for example|e\.g\. if|what if|as if|in case you|whether to|or should|hypothetical\w*|i'd (?:have|never have)|would you|do you|have you|pretend|joke|kidding|lol)\b",
)  # fmt: skip
PAST = re.compile(  # e.g. last winter
    r"(?i)\b(?:yesterday|last (?:night|week|month|year|summer|winter|spring|fall|autumn|weekend|time|\w+day(?! of\b))|(?:\w+ )?(?:years?|months?|weeks?|days?|hours?|minutes?) ago|back then|back in|when i was|when we were|as a (?:kid|child)|in college|in high school|growing up|used to|once upon|the other day|earlier this (?:week|month|year)|recently|in (?:19|20)[01]\d|lately|this (?:past|morning))\b"
)
_TELLS = r"(?:said|told|asked|shouted|claimed|believed|thought|says never|used to say|yelled|wrote|sang|taught|warned|swore|insisted|joked)"
REPORTS = re.compile(
    rf"(?i)(?<![\w'])(?!(?:I|we|you|as|have|\w+'ve|has|had|do|does|did|can|be|been|is|are|was|were|to|not|just|already|also|never|always|ever|once|and|or|which|what|than|so|like)\b)[\w']+(?: always| never| used to| once| also| just)? (?:{_TELLS}\b(?P<to_others>(?: that)? (?!me\b|us\b)(?:[\w']+ ){{0,2}}?(?:he|she|they)\b)?"
    r"|(?:says?|claims?|insists?|argues?|recommends?|swears?|thinks?|believes?)(?: that)? (?:one|you|people|every(?:one|body)|no(?:body| one)|they|he|she)\b)"
    r"|\baccording to (?!(?:my|our|me|us|plan)\b)|\bunder (?:\w+ ){0,2}laws?\b|^(?:as )?per (?:the|their|its)\b|^(?:some|most|many|half)\b.* (?:never|always)\b"
    r"|^(?:my|our|the|his|her|their|an?) (?:[\w-]+ ){0,2}?(?:neighbou?r|land(?:lord|lady)|postman|colleague|co-?worker|friend|buddy|mate|roommate|flatmate|housemate|brother|sister|cousin|uncle|aunt|nephew|niece|(?:grand)?(?:mother|father|ma|pa)|mum|mom|dad|ex|boss|teacher|coach|plumber|cat|dog)(?:(?:'s \w+)? (?:never|always|only(?: ever)?) \w+(?<!s)s|s (?:never|always|only(?: ever)?) \w+)\b",
)  # fmt: skip
"""Says what somebody else says or always does. It binds where that person has a say and does not speak to others."""
NARRATES = re.compile(  # e.g. he never called back
    r"(?i)\b(?:I|he|she|they) (?:\w+ly )?(?:never|always) \w+ed\b|\b(?:I|we)(?:'ve| have|'d| had) (?:never|always)\b|\b(?:he|she|they|it|that|this) must (?:be|have)\b|\bthere must be\b"
)
ASSESSES = re.compile(
    r"(?i)\b(?:looks?|seems?|appears?)(?: to be)?(?: \w+ly| so| much)? (?:correct|right|fine|good|great|ok|okay|wrong|broken|off)\b|\b(?:works?|passes|fails?|runs?) (?:fine |well |correctly |again )?now\b"
)
"""Says how something is at the moment, which orders nothing."""
TELLS_A_PLOT = re.compile(  # e.g. in that film nobody sleeps
    r"(?i)\b(?:movie|film|song|novel|character|plot|episode|lyrics|joke|story|historical|century|Bible|gospel|according to)\b(?! (?:starts|begins|opens|ends|runs|is (?:at|on|due)|must|should)\b)"
)
TOLD_ME = re.compile(r"(?i), (?:he|she|they|the \w+) (?:told|said to|informed) (?:me|us)(?=[.!]?\s*$)")
AUTHORITY = re.compile(  # e.g. my doctor
    r"(?i)\b(?:doctor|dr|physician|gp|nurse|pharmacist|dentist|vet|boss|manager|legal|compliance|lawyer|client|customer|landlord|security|hr|finance|accountant|management|cto|ceo|cfo|principal|headmaster|board|auditor|therapist|cardiologist|dietitian|school|bank|insurance|police|council|supervisor|professor)\b"
)
FOREIGN_QUESTION = re.compile(  # e.g. これですか。
    r"[?\uff1f\u061f][\s\"')\]\u300d\u201d]*$|(?:ですか|ますか|吗|嗎|니까|나요|까요)[。?？]?$"
)
SAYS_DU = re.compile(r"(?i)\b(?:mit|per|beim|bitte|lieber|das) (?:du|sie)\b")
GERMAN_NAME = re.compile(r"\b(?:ist|sind|lautet|hei(?:ß|ss)t) (?:jetzt |nun |doch |ab \w+ )?[A-ZÄÖÜ]")
PLEDGE_VERB = re.compile(  # e.g. I'll always ask
    r"(?i)\b(?:I|we)(?:'ll| will| won't| shall|'m going to|'re going to| am going to| are going to) (?:not |never |always |only |also |keep |stick |use |go with |avoid |refrain |remember |treat |assume |call |wait |ask |make sure |ensure |send |deliver |notify |remind |store |write |leave |stop |respect |follow |hold |limit |cap |stay |adopt |switch to |target |address |include |follow up |get back |have (?:it|the \w+) |finish |check in |book )",
)  # fmt: skip
AGENT_DECIDES = re.compile(  # e.g. we settled on Postgres
    r"(?i)\b(?:we|I)(?:'ve| have)? (?:decided|agreed|settled|chosen|chose|picked|opted)\b|^decision: ?\S|\b(?:we|I)(?:'ll| will) (?:use|go with|stick)|\b(?:going|sticking) with\b"
)
AGENT_PROMISES = re.compile(r"(?i)\bI promise\b|\bfrom now on,? I\b")
STEP_NOW = re.compile(  # e.g. let me look
    r"(?i)\b(?:I|we)(?:'ll| will|'m going to) (?:now|first|next|start|begin|then|try|look|check|run|inspect|examine|open|read|see|also (?:check|look|run)|use (?:the )?(?:\w+ )?(?:tool|command|grep|find|sed|cat|ls|search)|be happy|be glad|do my best|help|need to|have to (?:look|see|check))\b|\blet(?:'s| me)\b"
)
HARM = re.compile(  # e.g. the patient records
    r"(?i)\b(?:delet\w*|drop\w*|eras\w*|wip\w*|truncat\w*|destroy\w*|overwrit\w*|force[- ]push|rm -rf|secrets?|passwords?|credentials?|api[- ]?keys?|tokens?|private|confidential\w*|personal|pii|gdpr|hipaa|patient\w*|customer data|client data|production|prod|live (?:system|site|database|data|environment)|deploy\w*|pay(?:ment|ments|ing|s)?|paid|refund\w*|transfer\w*|wire|charge\w*|invoice\w*|purchas\w*|finance|budget|dashboard|access|buy\w*|order\w*|spend\w*|credit card|card|bank|iban|money|medic\w*|dos(?:e|es|age)|pills?|tablets?|mg|allerg\w*|peanut\w*|penicillin|nuts|gluten|shellfish|aspirin|ibuprofen|paracetamol|alcohol|fasting|child\w*|kids?|minors?|legal\w*|lawyers?|contracts?|sign\w*|publish\w*|post\w*|shar\w+|send\w*|email\w*|e-mail\w*|contact\w*|call\w*|press|disclos\w*|reveal\w*|leak\w*|tell|tells|talk\w*|giv\w+|give|promis\w*|commit\w*|third part\w+|names?|restart\w*|reboot\w*|salt|sugar|sodium|insulin|live|ship\w*|goes? live|board|speed\w*|drive|driving|swim\w*|knife|stove|visitors?|strangers?|location|photos?|pictures?|% off|percent off|escalat\w*|data|database|address(?:es)?|phone|ssn|backup\w*|firewall|security|root|sudo|admin|main|master|migrations?|schema|merge\w*|push\w*|bleach|gas|electric\w*|oven|weapon\w*|diagnos\w*|approv\w*|permission|consent|sign[- ]?off|ask me|check with|confirm\w*|discount\w*|promis\w*|cancel\w*|book\w*|modify|touch\w*|run)\b",
)  # fmt: skip
HARD = re.compile(  # e.g. under no circumstances
    rf"(?i)\b(?:never|must not|mustn't|must never|under no circumstances|on no account|by no means|not allowed|not permitted|forbidden|prohibited|off[- ]limits|no-go|may not|may only|strictly|whatever you do|no exceptions|only (?:with|after|when|once|if) [\w' ]{{0,30}}|without (?:\w+ ){{0,4}}?{APPROVAL}|without (?:asking|checking)|only\b.{{0,60}}\b{APPROVAL}|needs? (?:\w+ ){{0,3}}?{APPROVAL}|requires? (?:\w+ ){{0,3}}?{APPROVAL}|(?:ask|(?:double[- ])?check|confirm|consult|clear it with|run (?:it|anything|everything) by)\b[^.]{{0,30}}\b(?:before|first)|allerg\w*)\b"
)


STYLE = re.compile(
    r"(?i)\b(?:emojis?|bullets?|bullet points?|words?|sentences?|paragraphs?|styles?|formatt?\w*|spelling|tone|languages?|commas?|fonts?|colou?rs?|headings?|titles?|jargon|slang|markdown|tabs|spaces|capitals?|exclamation|dash(?:es)?|filler|apolog\w+|abbreviations?|acronyms?|semicolons?|comments?|docstrings?)\b"
)
"""Words of style: a breach of such a rule does no harm."""

ASKS = re.compile(
    rf"(?i)\b(?:before|first|unless|until|without|only|past me|by me|through me|needs?|requires?|has to|must)\b.*\b(?:{APPROVAL[3:-1]}|me|us|I|I've|approved|signed|confirmed|agreed|reviewed|seen|checked)\b|\b(?:{APPROVAL[3:-1]})\b.*\b(?:before|first|needed|required)\b"
)
"""Asks for an approval."""


_NAME = r"(?-i:[A-Z])[\w.-]+(?: (?-i:[A-Z])[\w.-]+)?"
_ROLE = rf"(?:(?:the|our|my|a|an|one|two|three) (?:[\w'-]+ ){{0,3}}?[\w'-]+|{_NAME}|[\w-]+s|you|we|me|us|I)"
_YES = rf"(?:{APPROVAL[3:-1]}|yes|word|agreement|initials|second pair of eyes|two signatures)"
_CHECKED = r"(?:signed|approved|agreed|confirmed|checked|cleared|seen|read|reviewed|looked (?:it |them |this )?(?:at|over)|okayed|released|authori[sz]ed|verified|countersigned|consented|said (?:so|yes|ok))"
GATED = re.compile(
    rf"(?i)^(?:only|just|nobody (?:but|except|apart from|other than|besides)|no one (?:but|except|apart from|other than|besides)) (?!(?:if|when|after|once|because|then|to|for|about|wanted|want|got|thought|a few|some|one more|the beginning|checking|kidding|wondering)\b){_ROLE}(?: (?:and|or) {_ROLE})? (?:may|can|is to|are to|ha(?:s|ve) (?:the )?(?:right|key|keys|access|say|a say)|gets? to|open|opens|signs?|decides?|approves?|touch|touches|sees?|knows?|enters?|changes?|talks? to|speaks? to|answers?|releases?|drives?|handles?|hands?|gives?|pays?|orders?|deploys?)\b"
    rf"|\b(?:until|till|unless|before|once|after|as long as|while) (?:I|we|she|he|they|both|{_NAME}|(?:the|our|my|a|an|some|another) (?:[\w'-]+ ){{0,2}}[\w'-]+)(?:'ve|'s)? (?:ha(?:s|ve) (?:not |n't )?(?:\w+ )?)?{_CHECKED}\b(?=.*[.!]?$)"
    rf"|\b(?:wait|waits|hold|holds|held|stays?|sits?) (?:\w+ ){{0,3}}?(?:for|until|till|with) (?:my|our|his|her|their|the|a|an|(?-i:[A-Z])\w+'s) (?:\w+ ){{0,2}}?{_YES}\b"
    rf"|\b(?:needs?|requires?|takes?|with|get|gets|want|wants|on|after|for) (?:my|our|his|her|their|the|a|an|two|three|both|(?-i:[A-Z])\w+'s) (?:\w+ ){{0,3}}?{_YES}\b(?= (?:of|from|by|first|before)\b)"
    rf"|\b(?:goes|go|comes|come|runs|run|has to go|must go|crosses|passes|pass) (?:\w+ ){{0,2}}?(?:past|by|through|across|via|over) (?:me|us|my desk|{_NAME}|the (?:treasurer|owner|doctor|lawyer|boss|bookkeeper|board|chair|director|office|lawyers|accountant))(?: first\b|[.!]?$)"
    r"|\b(?:and|or|by|to|for) (?:nobody|no one|none|noone) else\b|\bnobody else(?:'s)?[.!]?$|\bno one else[.!]?$"
    r"|\b(?:is|are|gets?|must be|has to be|have to be|be) (?:approved|released|authori[sz]ed|signed(?: off)?|countersigned|cleared|double[- ]checked) by (?!the way)[\w]"
    r"|\b(?:has|have|gets?) the (?:last|final) (?:word|say)\b|\bI(?:'ll| will)? sign off\b|\b(?:I|we) (?:have|need|want|get) to (?:see|read|approve|check|sign|okay|clear) (?:it|them|this|each|every|all|any|the|everything|both)\b[^.;!?]{0,40}\b(?:first|before)\b"
    rf"|\b(?:ask|check with|clear it with|consult|talk to|call|ring|phone|ping) (?:me|us|{_NAME}|the \w+) (?:first|before)\b"
    rf"|^(?:only|just) (?:{_NAME}|the (?:\w+ )?\w+|our \w+) and (?:I|me|{_NAME}|the \w+) |\b(?:on|without) (?:my|our) (?:word|say-so|yes)\b|\b(?:is|are) for (?:the |us )?(?:\w+ ){{0,4}}only\b|\bwhen I say so\b|\b(?:second|another) pair of eyes\b|\btwo signatures\b",
)  # fmt: skip
"""Says who alone may do something, or for whose word it waits."""


MOVED = re.compile(  # e.g. I've moved to Rome
    r"(?i)\b(?:I|we)(?:'ve| have|'re| are|'m| am)? (?:moved|moving|relocated|relocating) (?:back |over )?to\b"
)
JOINT = re.compile(r"(?i)(?:and|but|so|then|plus|also|or|just|remember|that|always)\b")
SUBJECT = re.compile(r"(?i)\b(?:I|he|she|they|it|you|we|there|who|which|that|this|these|those)\b(?:'\w+)?")
CLAUSE_END = re.compile(r"[,;:!\u2014\u2013](?= |$)| - |\.(?= )| because | since ")
TYPE_CONCEPTS = MappingProxyType({"address": "=address", "flight": "=flight", "version": "=version", "money": "=spend"})
"""Concepts that a value brings with it."""
SETS_VALUE = re.compile(  # e.g. the port is
    r"(?i)(?:\b(?:is|are|be|was|now|called|named|call me|it's|we're|I'm|become|becomes)(?: (?:the|a|an|at|on|by|in|now))?|\bto(?: (?:the|a|an|in))?|[:=]) ?$"
)
VALUE_CONCEPTS = frozenset((*TYPE_CONCEPTS.values(), "=name"))
BEFORE_VALUE = re.compile(  # e.g. at most
    r"(?i)\b(?:is|are|be|to|at|on|by|under|below|than|within|exceed|of|use|using|with|for|me|it|most|least|max|until|till|over|above|now|called|named|in|port|version|prefer|via|from)\b(?: \w+){0,2} ?$|[:=] ?$"
)

TOLD_ORDER = re.compile(
    r"(?i)(?:\W*(?:(?:the|my|our) (?:\w+ ){0,2}?(?:thing|point|important) (?:\w+ ){0,4}?is(?: that)?|(?:what|all) I (?:want|need|mean|wanted|meant)(?: \w+){0,3}? is(?: that)?|before I forget|(?:one|another) (?:\w+ )?thing(?: is)?|so|and|but|also|just|ok|okay|well|yeah|oh|remember|anyway|you know|again))* ?"
    r"(?:please|never (?!been|had|was|did|have|really|even)\w|always (?!been|had|was)\w|(?:don't|do not) (?!of|even|know|think|have|want|like|get|care|really|you|look|feel|particularly|see)\w|don't you (?:ever|dare)|make sure|keep (?:it|my|the|all|your|our|everything|them)\b|only (?!way|thing|time|problem|one|reason|because|if)\w+ \w|use (?:the|my|our|only|an?|\w+ for)\b|from now on"
    r"|(?:when(?:ever)?|if) (?:you|I|we) .*\b(?:always|never|don't|do not|please|make sure|use|ask)\b|you (?:must|are not to) |(?<=that )you (?:do not|don't|never|always|only) |no (?:more|one)\b|nobody|avoid|stop \w+ing|call me|nothing|I(?:'m| am) allergic)",
)  # fmt: skip
"""Begins as an order, behind what leads to it: of all that somebody tells at length nothing else binds."""
TELLS_OF = re.compile(r"(?i)(?:I|we|you|they|he|she|it)\b")
TOLD_LIMIT = re.compile(r"(?i)\b(?:can't|cannot|must|max|at most|no more than|limit|budget)\b")

STARTS_ORDER = re.compile(  # e.g. please never call
    r"(?i)(?:please,? )?(?:never|always|do not|don't|you (?:must|mustn't|may not|have to|need to|are (?:not )?to))\b"
)
OBLIGES = re.compile(
    r"(?i)\b(?:must|mustn't|has to|have to|needs? to|should be|shouldn't be|(?:is|are) (?:not |never )?to be)\b"
    r"(?! (?:have|admit|say|tell you|been|feel|think|know|see|remember)\b)"
)
"""What says how things are to be: such a clause tells no story, although it may name something of the past."""
OWN = re.compile(r"(?i)(?:my|our|new|current)\b")
NAMES_SPEAKER = re.compile(r"(?i)call me|my name|I go by|name's|you can call|address me")
COPULAS = ("is", "are", "will be", "is now", ":", "=")
ASKS_ONCE = re.compile(
    r"(?i)\W*(?:(?:hmm*|so|ok(?:ay)?|and|now|please|then)\W+)*(?:tell me (?:about|more|what|how|why|something)|explain|describe|summari[sz]e|show me|translate|compare|list|recommend|suggest)\b"
)
"""A question that is put as an order, for this once."""
GOES_LIVE = re.compile(r"(?i)\b(?:be|been|go|goes|going|gone|went|get) live\b")
CLAUSE = re.compile(
    r"(?i)[,;:\u2014\u2013] (?:so |and |but )?(?!(?:from|in|at|on|near|with|by|where|which|who|of|under|behind|like)\b)| - | (?:because|since|so|but) "
)
"""Parts the clauses of a sentence; what only says where or how goes with the clause before it."""
TAKES_BACK = re.compile(
    r"(?i)\W*(?:forget|ignore|disregard|scratch|drop|never ?mind) (?:(?:what|everything|all) (?:I|we) (?:said|wrote|told you)|the|my|our|that)\b[^,;:.!?]{0,60}[,;:.]"
)
"""Says first what holds no more: "Forget what I said about German, answer in English"."""
TOPIC = re.compile(
    r"(?i)(?:(?:and|but|so|also|oh|please|actually|sorry|wait|no)[, ]+)*(?P<topic>(?:(?:the|our|my|your|his|her|their|its|all|every|each|any|this|that) )?(?:(?:(?:Mrs?|Ms|Dr|Prof|St)\.|[\w'/-]+) ){1,6}?)(?:(?:can|could|may|must|should|will|would) )?(?:be|is|are|was|were|has|have|runs?|costs?|needs?|gets?|starts?|ends?|opens?|closes?|takes?|lasts?|uses?|expires?|goes|go|went|comes?|stays?|(?:got |been )?(?:moves|moved|changed|pushed|postponed|shifted|slipped|leaves|pays|calls|belongs)(?! (?:the|my|our|his|her|their|it)\b))\b"
)
"""The beginning of a sentence that names the thing that it is about: "The API runs", "Closing remarks can be"."""
CONCLUDES = re.compile(r"(?i)[,;] (?:so|which (?:means|makes|leaves|gives|brings))\b")
"""Says the reason first, which is not what the sentence is about."""
REFERS = re.compile(
    r"(?i)\b(?:it(?!'s (?:settled|decided|final|official)\b)|that(?!'s (?:final|settled|decided|all|it)\b)|this|them|(?<!old )(?<!other )(?<!new )(?<!last )one|those)\b"
)
"""Words that refer to the sentence before."""
PRONOUN_CLAUSE = re.compile(r"(?i)\W*(?:so |and |but |now )?(?:it|he|she|they|that)\b")
FREE_VALUE = re.compile(
    r"(?i)(?:\b(?:date|deadline|topic|subject|theme|title|name|colou?r|venue|plan|model|password|location|language|stack|menu|status|destination|material|brand|flavou?r|position|role|hobby|style|target|target audience|audience|dessert|main course|dish|gift|present|logo|slogan|team)(?: \w+){0,2} (?:is|are|will be)|\b(?:settled|decided|agreed|landed) (?:on|for)|\b(?:slipped|postponed|delayed) (?:to|until|till)|\b(?:moved|relocated|shifted|switched) to(?: the| an?)?|^(?:no|nope|wait|oops|sorry|scratch that|rather|better)[,:.] (?:at|in|on|with|to|by|from)(?: the| an?)?|^(?!and\b|also\b|oh\b|ah\b|by\b|just|quick|important|note|right|one\b|please|remember|reminder|fyi|ps\b|btw|so\b|ok)(?:new |the |our |my )?[\w' -]{2,30}:) (?:now )?(?P<value>(?:(?!now\b|instead\b)[\w'&-]+ ?){1,4})"
)
"""A setting with a value that has no type."""
DEADLINE = re.compile(
    r"(?i)\b(?:launch\w*|live|finish\w*|done|ready|ship\w*|deliver\w*|submit\w*|open|complete\w*|deadline|due)\b[^,.;:!?]{0,30}? (?:by|before|until|till) (?:the|our|my) (?P<value>[\w-]+(?: [\w-]+)?)(?=\s*(?:[,.;!]|$))"
)
"""A time that is an event: "live by the trade fair"."""
DATED = re.compile(r"(?i)\b(?:date|deadline|slipped|postponed|delayed)\b")
"""Such a setting that is a date: "the launch date is the trade fair"."""
TAKES_OVER = re.compile(r"(?i)\b(?:has taken|have taken|takes?|took|is taking|will take) over\b")

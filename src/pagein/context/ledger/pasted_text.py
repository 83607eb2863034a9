# ruff: noqa: RUF001 - letters of other languages
"""The text of others in a message: code, quotations, documents that were pasted, forwarded mails, logs, tables. What is left is the speaker's own.

Every pattern here is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pagein.context.ledger.dictated import after_report, is_dictated
from pagein.context.ledger.instructions import (
    LEAD_MAX_CHARS,
    LIST_MARK,
    TextPart,
    governing_title,
    without_rules_of_others,
)

LONG_TEXT_CHARS = 3_000
"""Characters of own text from which a user's message is taken for a paste between its first and its last paragraph."""

LONG_TEXT_ENDS = (1_200, 1_000)
"""Characters of a long message read at its start and at its end."""

PASTED_LINES_SHARE = 0.5
"""Share of lines that look like data, code or a log, from which a paragraph is taken for a paste."""

_FENCE = re.compile(
    r"(?ims)<!--(?:(?!<!--).)*?-->|^[ \t]*_No response_[ \t]*$|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|\"{3}.*?\"{3}|'{3}.*?'{3}|^[ \t]*(?:\"{3}|'{3}).*\Z|(?<![^\n:：.!?]\n)^[ \t]*(?P<rule>[=*_#+]{4,}|-{5,})[ \t]*\n.*?^[ \t]*(?P=rule)[ \t]*$"
    r"|^[ \t]*[-=*#<>\[]{2,}[ \t]*(?:begin|start)\b[^\n]*\n(?:[^\n]*\n){0,400}?[ \t]*[-=*#<>\[]{2,}[ \t]*(?:end|stop)\b[^\n]*$"
)
"""Code, the words of a form, and what stands between two marks: triple quotes, two equal rules, a line of its begin and one of its end."""
_SOURCE_TAGS = (
    "documents?|doc|page|pages|web_?page|e?-?mail|message|mail|logs?|output|stdout|stderr|files?|file_contents?|quote|"
    "blockquote|source|article|transcript|pr_description|issue|search_results?|results?|tool_result|observation|code|pre|"
    "excerpt|paste|data|json|xml|html|body|table|snippet|passage|chat|context|example|examples|thread|ticket|pdf|website|"
    "retrieved|memory|environment_\\w+|(?:open|attached|recent)_files|git_status|workspace_info|editor_\\w+|metadata|additional_data"
)
OWN_TAGS = r"(?:tasks?|user|user_\w+|query|questions?|request|prompt|instructions?|rules?|requirements?|constraints?|guidelines?|input|feedback|answer|important|goal|objective)"
_OWN_TAG = re.compile(rf"(?im)^[ \t]*</?{OWN_TAGS}>[ \t]*|[ \t]*</{OWN_TAGS}>[ \t]*$")
"""A tag around the speaker's own words."""
_SOURCE_OPENS = re.compile(rf"(?i)<({_SOURCE_TAGS})\b[^<>\n]{{0,200}}>")
_FORWARDED = re.compile(  # e.g. ---- Original message
    r"(?im)^[ \t]*(?:-{2,}\s*(?:original|forwarded|urspr|weitergeleitet|message d.origine|mensaje|messaggio)[^\n]*"
    r"|(?:begin )?(?:forwarded|original) message\b[^\n]*|weitergeleitete nachricht[^\n]*|message transf[^\n]*|mensaje reenviado[^\n]*"
    r"|(?:from|von|de|da|od|van|fr[aåá]n?|kimden|от|від|发件人|寄件者|差出人|送信者|보낸 ?사람|발신자?|من|प्रेषक|lähettäjä|odes[ií]latel|feladó|expeditor)[ \t]*[:：][^\n]{1,200}\n(?:[^\n]{0,200}\n){0,4}?[ \t]*"
    r"(?:to|subject|date|sent|cc|an|betreff|datum|objet|asunto|oggetto|temat|onderwerp|konu|тема|主题|主旨|件名|제목|받는 ?사람|الموضوع|إلى|विषय|[äe]mne|til|aihe|předmět|tárgy|subiect)[ \t]*[:：]"
    r"|(?:on|am|le|el|il|op|den|em|w dniu|\d)[ \d][^\n]{3,120}\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev|escreveu|napisał\w*|пишет|написала?)\b[^\n]{0,80}[:：][ \t]*$"
    r"|(?:subject|betreff|objet|asunto)[ \t]*[:：][^\n]{1,200}$)"
)
_CHAT_HEAD = r"[ \t]*[^\W\d_][\w.'-]{0,30}(?: [\w.'-]{1,30}){0,2}[ \t]+(?:\[|\()?\d{1,2}[:.]\d\d(?:[:.]\d\d)?[ \t]*(?:[ap]\.?m\.?)?[\])]?[ \t]*\n"
_CHAT = re.compile(rf"(?im)^{_CHAT_HEAD}(?:[^\n]{{1,1000}}\n+){{1,12}}?{_CHAT_HEAD}")
"""A chat that was copied: lines with a name and a time alone, with what was said between."""

_STAMPED = re.compile(
    r"(?im)^[ \t]*(?:\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?[ \t]+\d{1,2}[:.]\d\d(?:[:.]\d\d)?[ \t]*(?:[ap]\.?m\.?)?\]?|\[\d{1,2}[:.]\d\d(?:[:.]\d\d)?[ \t]*(?:[ap]\.?m\.?)?\]|\d{1,2}:\d\d(?:[ \t]*[ap]m)?(?=[ \t]*[-\u2013\u2014]))"
    r"[ \t]*(?:[-\u2013\u2014][ \t]*)?[^\W\d_][^\n:]{0,40}:[ \t]+\S"
)
"""An exported chat: a line that begins with a date and a time, or with a time in brackets, and a name."""

_TRANSCRIPT = re.compile(
    r"^[ \t]*(?P<who>[^\W\d_][\w.' -]{0,30}):[ \t]+\S[^\n]*\n+(?:(?![ \t]*(?P=who):)[ \t]*[^\W\d_][\w.' -]{0,30}:[ \t]+\S[^\n]*\n+){1,6}[ \t]*(?P=who):",
    re.MULTILINE,
)
"""A talk that was copied: lines that begin with names, of which one comes again."""

_ROLE = r"(?:interviewer|interviewee|candidate|speaker|agent|customer|caller|user|assistant|human|bot|doctor|nurse|patient|therapist|teacher|student|pupil|host|guest|client|rep|seller|buyer|operator|moderator|reporter|officer|witness|judge|[qa])(?: ?(?:\d|[a-z]))?"
_DIALOGUE = re.compile(
    rf"(?im)(?:^|(?<=[.!?]))[ \t]*{_ROLE}:(?=[^\n]{{0,300}}(?:\?|\b(?:I|we|you|me|my|our|your)\b))[^\n]{{2,600}}?(?:\n+|(?<=[.!?]))[ \t]*{_ROLE}: "
)
"""A talk of two whose parts are named, such as an interview."""

_LETTER = re.compile(
    r"(?im)^[ \t]*(?:hi|hello|hey|dear|hallo|liebe[rs]?|guten tag|bonjour|salut|ch[e\u00e8]re?s?|hola|buenos d\u00edas|querid[oa]s?|ciao|car[oai]|ol\u00e1|beste)\b[^\n.!?]{0,40}[,!]?[ \t]*\n"
    r"(?:[^\n]*\n){1,40}?"
    r"[ \t]*(?:best|kind regards|regards|cheers|thanks|thank you|yours|love|sincerely|gru(?:\u00df|ss)|(?:viele|liebe|beste) gr\u00fc\u00dfe|cordialement|bien \u00e0 vous|saludos|un abrazo|saluti|groet(?:en)?|abra\u00e7os?)[^\n]{0,30}\n+[ \t]*[^\W\d_][^\n.!?]{0,40}(?:\n|$)"
)
"""A letter with a greeting, a close and a name. Where it is all of a text, it is to the agent."""

_SALUTATION = re.compile(  # e.g. Dear customer,\n
    r"(?im)^[ \t]*(?:dear (?:sir|madam|mr|mrs|ms|mx|dr|prof|customer|user|member|valued|colleague|applicant|tenant|guest|parent|resident|client|subscriber)"
    r"|to whom it may concern|sehr geehrte|madame|monsieur|estimad|egregi|gentile|geachte|уважаем)[^\n]{0,80}\n"
)
_CLOSE = re.compile(
    r"(?im)^[ \t]*(?:yours|sincerely|(?:kind |best |warm )?regards|respectfully|mit freundlichen|hochachtungsvoll|cordialement"
    r"|veuillez|atentamente|saludos|cordiali|met vriendelijke|с уважением)\b"
)
"""The first line of a letter to somebody else, and its close."""

_SOURCE_NOUN = (
    r"(?:page|site|website|wiki|wikipedia|article|blog(?: ?post)?|post|tweet|docs?|documentation|document|readme|manual|guide|"
    r"handbook|e-?mail|mail|letter|message|note|memo|sign(?!-)|poster|label|leaflet|brochure|book|chapter|paper|report|log|logs|"
    r"output|error|trace|traceback|stack ?trace|file|transcript|text|paragraph|section|excerpt|passage|snippet|quote|"
    r"contract|lease|policy|terms(?: and conditions)?|ticket|issue|comment|review|listing|ad|advert|job (?:ad|post|description)|"
    r"licen[cs]es?|laws?|agreement|statute|constitution|spec|specification|config|json|csv|table|response|reply|answer|story|poem|song|lyrics|essay|draft|code|script|function|"
    r"prompt|forum|thread|slide|slides|pdf|newsletter|press release|faq|recipe|instructions?|screenshot|conversation|chat|data|dataset|content|following)"
)
_PRESENTED_NOUN = (
    r"(?:page|website|article|blog(?: ?post)?|post|tweet|documents?|readme|e-?mails?|mails?|letters?|messages?|logs?|output|error|trace(?:back)?|file|transcript|texts?|paragraphs?"
    r"|sections?|excerpts?|passages?|snippets?|contract|lease|tickets?|issue|bug report|comments?|reviews?|listing|ad|advert|job (?:ad|post(?:ing)?|description)|story|poem|song|lyrics"
    r"|essay|draft|code|thread|newsletter|press release|faq|recipe|conversation|chat|exercises?|questions?|problems?|puzzles?|quiz|exam|assignment|homework|diff|patch|commit(?: message)?|pull request)"
)
_TEXT_VERB = (
    r"(?:translate|summari[sz]e|grade|classify|explain|proofread|rewrite|rephrase|paraphrase|shorten|label|rate|score|evaluate|critique|interpret|parse|extract"
    r"|(?:write|draft) (?:an?|my) (?:[\w'-]+ ){0,2}(?:reply|answer|response)|(?:reply|respond|answer) to (?:this|the following)|answer (?:this|the following)|what does (?:this|it|the following) (?:mean|say))"
)
"""What is asked to be done with a text that follows. It begins its sentence: "When you translate: ..." presents nothing."""
_WORK_VERB = r"(?:debug|fix|review|check|improve|edit|analy[sz]e|refactor|continue|complete|solve|clean|format|convert)"
"""What is asked of a text or of work: "Fix this:" presents a text, "Fix the parser:" what the user says of it."""
_INTRODUCED = re.compile(
    # What do you make of this letter:
    rf"(?i)(?:(?:^|(?<=[\n.!?]))(?![ \t]*(?:while|when|whenever|for|during|in|throughout|before|after|with)\b|[^\n:.!?]{{0,60}}\b(?:rules?|conventions?|guidelines?|preferences?|requirements?|constraints?|notes?|wishes)\b)[^\n:.!?]{{0,80}}?\b(?:this|these|the following|that) (?:[\w'-]+ ){{0,3}}{_PRESENTED_NOUN}\b[^\n:.!?]{{0,40}}[:：][ \t]*(?=\n|$)"
    # Please translate into French:
    rf"|(?:^|(?<=[\n.!?]))[ \t]*(?:(?:please|can you|could you|help me(?: to)?|now|then)\b,? )*(?:{_TEXT_VERB}\b[^\n:.!?]{{0,60}}|{_WORK_VERB}\b[^\n:.!?]{{0,20}}\bthis)[:：][ \t]*(?=\n|$)"
    # Translate this letter: Dear Ana
    rf"|(?:^|(?<=[\n.!?]))[ \t]*(?:please )?(?:{_TEXT_VERB}|{_WORK_VERB})\b[^\n:.!?]{{0,40}}\b(?:this|these|the following|that) (?:[\w'-]+ ){{0,2}}{_PRESENTED_NOUN}[:：]"
    # Please answer the mail below.
    r"|(?:^|(?<=[\n.!?]))[ \t]*(?:please )?(?:answer|reply to|respond to)\b[^\n:.!?]{0,30}\b(?:e-?mail|mail|letter|message|review|comment|ticket|post|tweet)\b[^\n:.!?]{0,30}[.!:](?=\s*$|\s*\n)"
    # Text: Never pay by card.
    r"|(?:^|\n)[ \t]*(?:text|source|tweet|review|comment|article|passage|post|paragraph|sentence|clipboard|error|warning|input)[:：]"
    # Here is the mail from Ana:
    rf"|\b(?:here(?:'s|\u2019s| is| are| comes)|this is|below is|see|following is|attached is|pasting|i(?:'m| am) pasting|i(?:'ll| will) paste|"
    rf"read|summari[sz]e|translate|proofread|rewrite|rephrase|paraphrase|edit|analy[sz]e|review|check|improve|fix|explain|convert|use(?! (?:my|our)\b)|based on|consider|given|"
    rf"got|received|sent|forwarded?|found|copied|quoting|quoted|from)\b[^\n:.!?]{{0,80}}\b{_SOURCE_NOUN}\b[^\n:.!?]{{0,60}}[:：]"
    # The contract says that nobody smokes.
    rf"|\b(?:the|this|that|an?|their|our|his|her|its|my|whose) (?:[\w'-]+ ){{0,3}}{_SOURCE_NOUN}"
    rf" (?:[\w'-]+ |(?:of|from|by) (?:[\w'-]+ ){{1,3}}?)?(?:says?|said|reads(?= )|read(?=:)|states?|stated|tells?|told|wrote|claims?|mentions?|warns?|recommends?|advises?|suggests?)\b(?: that)?[:：,]?"
    # According to the docs, tabs are used.
    rf"|\b(?:according to|as per|per|from|in) (?:the|this|that|their|its) (?:[\w'-]+ ){{0,3}}(?:docs?|documentation|readme|manual|article|web ?page|page|website|blog|e-?mail|log|faq|leaflet|wiki|forum)s?\b[:：,]"
    # A sign in the lobby says: no dogs
    r"|\b(?:signs?|posters?|banners?|labels?|stickers?|plaques?|t-shirts?|mottos?|slogans?|notices?) (?:[\w'-]+ ){0,4}?(?:says?|said|reads?|reading|saying)\b(?: that)?[:\uff1a,]?"
    # Copied text: no dogs
    rf"|\b(?:quote|quoting|copied text|pasted|paste|output|log|transcript|excerpt|e-?mail|the following (?:text|document|message|article|email)s?)[:：]"
    # Summarize in a line: no dogs
    rf"|\b(?:summari[sz]e|translate|proofread|rewrite|rephrase|paraphrase)\b[^\n:.!?]{{0,60}}[:：]"
    # Summarize the text below.
    rf"|\b(?:summari[sz]e|translate|proofread|rewrite|rephrase|paraphrase|edit|analy[sz]e|review|improve|explain|correct|shorten|read)\b[^\n:.!?]{{0,30}}\b(?:this|the following|below|attached|these)\b[^\n:.!?]{{0,50}}[.?!](?=\s*$|\s*\n)"
    # Ana wrote to me: no dogs
    r"|(?<!\bI )(?<!\bwe )\b(?:said|says|wrote|writes|sent|texted|e-?mailed|mailed|messaged|sang|(?:whisper|shout|mutter|murmur|growl|hisse?|cackle|crie|yell|announce|declare|replie|answer|warn|roar|snarl|sigh|laugh|croak|chant|sing|ask|begg?)(?:s|e?d))\b[^\n:.!?]{0,30}:"
    # Riddle: no dogs / WhatsApp from Ana: no dogs
    r"|\b(?:proverbs?|sayings?|mottos?|slogans?|adages?|riddles?|jokes?|quiz|exam|exercise|question|puzzle)(?: (?:is|was|goes|went|says?))?: |\b(?:whatsapp|texts?|sms|e-?mails?|mails?|messages?|letters?|dms?|voicemails?) (?:from|by) [^\n:.!?]{1,40}:"
    # We just received another one: no dogs
    r"|\b(?:I|we) (?:just |also )?(?:got|received|saw|found|read|heard|was sent|were sent)\b[^\n:.!?]{0,40}:"
    # The log is attached.
    rf"|(?:^|\n)[^\n:.!?]{{0,60}}\b{_SOURCE_NOUN}\b[^\n:.!?]{{0,60}}\b(?:below|follows|attached)\b[^\n:.!?]{{0,20}}[.:](?=\s*$|\s*\n)"
    # Tässä viesti:
    r"|(?:^|\n)[^\n:\uff1a]{0,60}(?:\b(?:zpráv[au]|dopis|viesti|mesaj\w*|mektup|levél\w*|üzenet\w*|pesan|mejlet?|mailen|besked\w*|melding\w*|meddeland\w*|tin nhắn|email)\b|μήνυμα|лист|ข้อความ|อีเมล|رسالة|ایمیل|پیام|המייל|הודעה|ইমেইল|বার্তা|ईमेल|संदेश)[^\n:]{0,24}:[ \t]*(?=\n|$)"
    # Ecco la lettera:
    rf"|(?:^|\n)[^\n:\uff1a]{{0,80}}(?:\b(?:courriel|lettre|texte|correo|mensaje|carta|texto|documento|art[i\u00ed]culo|lettera|messaggio|testo|articolo|nachricht|brief|dokument|artikel|bericht|tekst|wiadomo\u015b\u0107|\u043f\u0438\u0441\u044c\u043c\u043e|\u0442\u0435\u043a\u0441\u0442|\u0441\u0442\u0430\u0442\u044c\u044f|\u0441\u043e\u043e\u0431\u0449\u0435\u043d\u0438\u0435)|\u90ae\u4ef6|\u90f5\u4ef6|\u6587\u7ae0|\u6587\u672c|\u6d88\u606f|\u6587\u6863|\u30e1\u30fc\u30eb|\u8a18\u4e8b|\u6587\u66f8|\uba54\uc77c|\ubb38\uc11c)[^\n:\uff1a]{{0,12}}[:\uff1a][ \t]*(?=\n|$)"
    # The last few mails:
    rf"|(?:^|\n)[^\n:]{{0,80}}\b(?:texts?|e-?mails?|mails?|messages?|articles?|letters?|documents?|pages?|logs?|output|transcripts?|posts?|paragraphs?|story|essay|excerpts?|quotes?) ?[:：][ \t]*(?=\n|$))",
)  # fmt: skip
_OWN_LEAD = re.compile(
    r"(?i)\b(?:rules?|conventions?|guidelines?|preferences?|prefer|requirements?|constraints?|limits?|instructions?|notes?|remember|keep in mind|please|always|never|from now|follow(?:s|ing)? rules|points?|things?|steps|details"
    r"|me|my|mine|i|i'm|we|us|our|goals?|plan|tasks?|todo|for (?:all|every|each|the)|when|if|whenever|also|and|so|because|but|as follows|like this|important|warning|background|setup|stack|deadlines?|decisions?|you|answer|reply|respond|use|do|work|continue|settings?|style|format|language|tone"
    r"|regeln?|vorgaben|bitte|immer|nie|merk\w*|beacht\w*|wichtig|mein\w*|unser\w*|wir|ich|wenn|aufgaben?|ziele?|règles?|consignes|merci|toujours|jamais|retiens|mon|mes|notre|nos|je|nous|quand|si|objectifs?"
    r"|reglas?|normas|siempre|nunca|recuerda|mis?|nuestr\w*|yo|cuando|tareas?|objetivos?|regole|sempre|mai|ricorda|mio|mia|miei|nostr\w*|io|noi|quando|regras?|lembre|meus?|minhas?|noss\w*|eu|nós|regels|altijd|nooit|onthoud|mijn|onze|ik|wij"
    r"|правила?|всегда|никогда|запомни|мо[йияё]\w*|наш\w*|я|мы|если|zasady|zawsze|nigdy|pamiętaj|mój|moje|nasz\w*|ja|kurallar|her zaman|asla|unutma|benim|bizim|ben|biz)\b"
    r"|规则|要求|记住|注意|请记|总是|我|我们|ルール|約束|覚え|注意|私|規則|규칙|기억|나는|우리|내 |القواعد|تذكر|नियम|याद|^\d"
)
"""What a line before one's own words has: an order, a rule, oneself or the reader. Any other line with a colon presents a text."""
_TEXT_NOUN = (
    r"(?:texts?|messages?|e-?mails?|mails?|letters?|paragraphs?|passages?|proposals?|articles?|posts?|tweets?|sms|documents?|poems?|song|lyrics|stor(?:y|ies)|essays?|quotes?|reviews?|comments?"
    r"|transcripts?|contracts?|ads?|listings?|sentences?|statements?|excerpts?|сообщени\w*|текст\w*|письм\w*|nachricht|text[eo]?s?|mensaje|correo|messaggio|lettera|lettre|courriel|wiadomoś\w*)"
)
_ASKED_OF_TEXT = re.compile(
    rf"(?i)^[ \t]*tl;? ?dr\b[^\n]{{0,30}}[:：][ \t]*$|\b(?:this|these|the following|that|dies\w*|ce|cet|cette|est[ea]|quest[oa]|est[ae]|это|этот|ten|t[ao]) (?:[\w'-]+ ){{0,2}}{_TEXT_NOUN}\b[^\n:.!?]{{0,50}}[?:：.]?[ \t]*$"
    r"|(?:この|その|以下の?|次の|下の|这[段篇封条个]|下面|以下|아래|다음|이 )(?:\w{0,8})(?:文|記事|メール|話|文章|邮件|话|内容|消息|글|메일|문장|메시지)"
)
"""A line that asks something about a text: the paragraphs behind it are that text."""
_LABEL = re.compile(r"\W*\w+(?: [\w'-]+){0,2}:\s*", re.ASCII)
_PRESENTING = re.compile(
    rf"(?i)\b(?:{_TEXT_NOUN}|from|by|wrote|writes|said|says|pages?|sites?|website|web|wiki|docs?|files?|logs?|outputs?|results?|tickets?|issues?"
    r"|policy|policies|terms|faq|readme|manual|notes?|slack|teams|notion|jira|github|reddit|twitter|linkedin|inbox|thread|chat|him|her|them|von|da|de|summari[sz]e|translate|explain|check|read|rewrite|fix|shorten|proofread|reply|answer|analy[sz]e"
    r"|(?:print|post|mail|ask|answer|repli|return|respond|report|receiv)(?:ed|s)|sent|got|told)\b"
)
"""A label of up to three words presents a text where one of them is such a word; ``Deployment:`` is a heading of one's own."""
_REACTION = re.compile(
    r"(?i)\s*(?:(?:tl;? ?dr|thoughts|summary)(?= *(?:,? (?:please|pls)\b|\?))|(?:can you )?summari[sz]e(?: it| this)?|(?:can you )?translate(?: it| this)?(?: (?:to|into) \w+)?|what (?:does|do) (?:it|this|they) (?:say|mean)"
    r"|is (?:this|it|that) (?:real|legit|true|spam|a scam|phishing)[^\n?]{0,30})(?:,? (?:please|pls))?\s*[.?!]*\s*"
)
"""A paragraph that says no more than what is wanted of the others."""
_ASKS_FOR_THOUGHTS = re.compile(r"(?i)\s*thoughts")
"""Asked of a few words, it asks what the agent thinks of a rule of the speaker's own."""
_STAMP = re.compile(  # e.g. Ana replied 3 hours ago
    r"(?im)^(?=[^\n]{3,90}$)(?![^\n]*[^\W\d_]{3,}[.!?]$)(?:[^\n]*(?:\b\d{1,2}[:.]\d\d\b|\b\d+ ?(?:h|hrs?|hours?|min|minutes?|d|days?|w|weeks?|mo|months?|y|years?)\b(?: ago)?|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w* \d{1,2}\b)[^\n]*)$"
)
_STAMP_MARK = re.compile(
    r"(?i)[@·•—✓]|\S {2,}\S|<[^<>\s]+@[^<>\s]+>|\[\d|\d\]|\bago\b|\b(?:commented|asked|answered|edited|posted|replied|added a comment|reviewed|opened|tweeted)\b|-->"
)
"""What a line with a time has where a platform wrote it over somebody's words, or under them."""
_PAGE_MARK = re.compile(
    r"(?im)\A---\n(?:[\w-]+:[^\n]*\n){1,30}---\n|^page \d+(?: of \d+)?[ \t]*$|^WEBVTT\b|^\d+:\d\d[\d:.,]* --> |^by [A-Z][\w.'-]+ [A-Z][\w.'-]+[ \t]*$|^BEGIN:V[A-Z]+$|^act (?:\d|[IVX]+)\b[^\n]{0,20}\bscene\b|^(?-i:INT|EXT)\. "
)
"""What begins a document alone: its header, the number of a page, an author's line."""
_DATA_LINE = re.compile(  # e.g. 2024-05-15 15:00:01 started
    r"^\s*(?:"
    r"[{}\[\]<]|[\"'][\w .-]{1,40}[\"']\s*:|"  # JSON, XML
    r"\|.*\||[^\t\n]*\t[^\t\n]*\t|"  # tables
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|(?:\w+ )?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b[ :\]]|"  # logs
    r"[$#%>]{1,3} \S|>>>|\.\.\. |@@ |diff --git|[+-]{3} [ab]/|"  # shells and diffs
    r"(?:def|class|import|from|return|const|let|var|function|public|private|static|void|int|fn|func|package|using|#include|SELECT|INSERT|UPDATE|DELETE|CREATE|elif|else:|try:|except|raise|async|await|export|if \(|for \(|while \()\b.*[:;{}()=,]\s*$|"
    r"Traceback|File \"|at [\w.$]+\(|"
    r"[\w.$\[\]'\"]+\s*(?:=|\+=|:=|=>)\s*\S.*|"
    r"(?:[^,\n]{0,40},){4,}\S|"  # CSV
    r"[A-Za-z_][\w-]*:\s*$|"
    r".*[;{}]\s*$"
    r")",
    re.MULTILINE,
)  # fmt: skip
_CSV_WORDS = re.compile(r"(?i), (?:and|or|but|the|a|i|we|you|my)\b")
_SECTION = re.compile(r"(?im)^(?=#{1,6} )|^[ \t]*</?[a-z][\w-]{1,40}>[ \t]*$|^-{3,}[ \t]*$")
"""Where a section of a text for agents begins: a heading, a tag of its own, a rule."""
TITLE = re.compile(r"#{1,6} +([^\n]+)")
_DEEPEST = 6
_SOURCE_TITLE = re.compile(
    r"(?i)(?:the |input |source )?(?:documents?|articles?|inputs?|texts?|e-?mails?|transcripts?|messages?|pages?|posts?|logs?|examples?|sources?|context)"
)
"""A heading over somebody else's text, or over examples."""
_QUOTED_LINES = re.compile(
    r"\b(?:said|says|wrote|writes|replied|answered|told \w+)\b[^\"\u201c\n]{0,25}[\"\u201c](?=[^\"\u201d\n]{0,2000}\n)[^\"\u201d]{1,4000}[\"\u201d]"
)
"""What somebody said, over several lines."""
SENTENCE_ENDS = re.compile(
    r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s|$)|[\u3002\uff01\uff1f\u0964\u061f]+[\u300d\u300f\u201d]?"
)
MASK = "\x00"


def own_sections(part: TextPart) -> Iterator[tuple[str, str]]:
    """Yield headings of a text, "" without one, with what is the speaker's own under each.

    Where the text is written for an agent, what a line presents ends with its section, and the sections in that.
    """
    if part.kind != "instructions":
        own = strip_foreign_text(part.text, is_talk=part.kind == "talk")
        is_long = part.kind == "talk" and len(own) > LONG_TEXT_CHARS and not is_dictated(part.text)
        yield "", _ends_of(own) if is_long else own
        return
    plain = _strip_tagged(_FENCE.sub("\n\n\x01\n\n", part.text.replace("\r\n", "\n")))
    outer = _DEEPEST
    for section in _SECTION.split(plain):
        title = TITLE.match(section)
        if title is not None and title[0].index(" ") > outer:
            continue  # a section of the text that was presented
        text = section[title.end() :] if title else section
        is_source = title is not None and _SOURCE_TITLE.fullmatch(title[1].strip(" :*"))
        own = "" if is_source else strip_foreign_text(text, is_talk=False)
        last = own.rpartition("\n")[2]
        is_open = last.endswith((":", "\uff1a")) and not text.partition(last)[2].lstrip().startswith("\x01")
        presents = is_source or is_open or _INTRODUCED.search(text)
        outer = title[0].index(" ") if title and presents else _DEEPEST
        yield (title[1] if title else ""), own


def strip_foreign_text(text: str, *, is_talk: bool = True) -> str:
    r"""Remove code blocks, quotations, tagged sources, forwarded mails, introduced texts, data, logs and tables.

    In talk, rules of somebody else go, too; in a text for an agent "The parser has these rules:" presents its own.

    >>> strip_foreign_text("Use tabs.\n> Never use tabs.\n\nHere is the mail:\nNever pay by card.")
    'Use tabs.'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace(MASK, " ")
    text = _QUOTED_LINES.sub("", _OWN_TAG.sub("", text))
    text = without_rules_of_others(text) if is_talk else text
    text = _strip_tagged(_FENCE.sub("\n\n\x01\n\n", text))
    for pasted in (_FORWARDED, _CHAT, _STAMPED, _TRANSCRIPT, _DIALOGUE, _PAGE_MARK):
        if (start := pasted.search(text)) is not None:
            text = text[: start.start()]
    if (stamp := next((line for line in _STAMP.finditer(text) if _STAMP_MARK.search(line[0])), None)) is not None:
        text = text[: text.rfind("\n\n", 0, stamp.start()) + 1]
    if (letter := _SALUTATION.search(text)) is not None and _CLOSE.search(text, letter.end()):
        text = text[: letter.start()]
    if (letter := _LETTER.search(text)) is not None and letter[0].strip() != text.strip():
        text = f"{text[: letter.start()]}\n\n{text[letter.end() :]}"
    paragraphs = re.split(r"\n(?:[ \t]*\n)+", text)
    reactions = [paragraph for paragraph in paragraphs if _REACTION.fullmatch(paragraph)]
    if reactions and not (len(text) <= LEAD_MAX_CHARS and _ASKS_FOR_THOUGHTS.match(reactions[0])):
        return ""
    own = [block for block in map(_strip_lines, _before_texts(paragraphs)) if block]
    return "\n\n".join(_before_introductions(own))


def _strip_tagged(text: str) -> str:
    """Remove what stands between the tags of a source, such as ``<document>``; a tag without an end is plain text."""
    lower, parts, start, unclosed = text.lower(), [], 0, set()
    for tag in _SOURCE_OPENS.finditer(text):
        name = tag[1].lower()
        if tag.start() < start or name in unclosed:
            continue
        end = lower.find(f"</{name}>", tag.end())
        if end < 0:
            unclosed.add(name)
            continue
        parts.append(text[start : tag.start()])
        start = end + len(name) + 3
    return "\n\n".join((*parts, text[start:]))


def _before_texts(paragraphs: list[str]) -> Iterator[str]:
    """Yield paragraphs up to a line that presents a text: with a colon and nothing of one's own, or a question about a text."""
    for number, paragraph in enumerate(paragraphs):
        lines = paragraph.split("\n")
        follows = "".join(paragraphs[number + 1 : number + 2])
        for at, line in enumerate(lines):
            rest = "\n".join(lines[at + 1 :]) or follows
            is_lead = line.rstrip().endswith((":", "：")) and not LIST_MARK.match(rest) and not _OWN_LEAD.search(line)
            is_lead = is_lead and not (_LABEL.fullmatch(line) and not _PRESENTING.search(line))
            is_question = at == len(lines) - 1 and _ASKED_OF_TEXT.search(line)
            if (is_lead or is_question) and rest and not rest.startswith("\x01") and len(line) <= LEAD_MAX_CHARS:
                yield "\n".join(lines[: at + 1])
                return
        yield paragraph


def _before_introductions(paragraphs: list[str]) -> Iterator[str]:
    """Yield paragraphs without what an introduction such as "here is the mail:" presents.

    An introduction that ends its line presents all that follows, unless a code block or a quotation follows, which is
    gone already. One with a colon within a line presents the rest of its paragraph, one without ("the page says that")
    its own sentence.
    """
    for number, paragraph in enumerate(paragraphs):
        follows = paragraphs[number + 1] if number + 1 < len(paragraphs) else ""
        rest = paragraph
        while (intro := _INTRODUCED.search(rest)) is not None:
            own = rest[: intro.start()].rstrip()
            cut = max(own.rfind(". "), own.rfind("! "), own.rfind("? "), own.rfind("\n"))
            if own[: cut + 1].strip():
                yield own[: cut + 1]
            is_open = intro[0].rstrip()[-1:] in ":\uff1a.?!"
            rest = rest[intro.end() :]
            if rest.strip()[:1] in ('"', "\u201c", "\u00ab", "\u201e", "\u2018", "'"):
                rest = _after_quotation(rest.lstrip()) or ""
            elif not is_open:
                ending = SENTENCE_ENDS.search(rest)
                rest = rest[ending.end() :] if ending else after_report(rest, paragraph)
            elif not rest.split("\n")[0].strip() and (rest.strip() or not follows.startswith(("\x01", '"', "\u201c"))):
                return
            else:
                rest = ""
        if rest.strip():
            yield rest


def _after_quotation(text: str) -> str | None:
    """Return what follows the quotation a text begins with; None where it is not closed."""
    closing = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "\u201e": "\u201c", "\u2018": "\u2019", "'": "'"}[
        text[0]
    ]
    end = text.find(closing, 1)
    return text[end + 1 :] if end > 0 else None


def _strip_lines(paragraph: str) -> str:
    """Return a paragraph without quoted lines and indented code; empty where it looks like data, code or a log."""
    lines = [line for line in paragraph.split("\n") if line.strip()]
    lines = [
        line
        for line in lines
        if not line.lstrip().startswith(">") and (not line.startswith(("    ", "\t")) or LIST_MARK.match(line))
    ]
    if not lines:
        return ""
    own = [
        line
        for line in lines
        if not _DATA_LINE.match(line)
        or _is_prose_list(line)
        or _OWN_LEAD.fullmatch(line.strip(" :"))
        or _is_title(line)
    ]
    return "\n".join(own) if len(own) > len(lines) * (1 - PASTED_LINES_SHARE) else ""


def _is_title(line: str) -> bool:
    """True for a Markdown heading; of one mark, which begins comments, too, only where it governs what is under it."""
    title = TITLE.match(line)
    return title is not None and (line.startswith("##") or bool(governing_title(title[1])))


def _is_prose_list(line: str) -> bool:
    """True for a sentence with many commas, which is no row of data."""
    is_row = line.lstrip()[:1] in "{}[]<|" or line.rstrip().endswith((";", "{", "}"))
    return not is_row and "\t" not in line and line.count(" ") >= 6 and bool(_CSV_WORDS.search(line))


def _ends_of(text: str) -> str:
    """Return the first and the last paragraphs of a long text."""
    head, tail = LONG_TEXT_ENDS
    first = text[:head].rpartition("\n")[0] or text[:head].rpartition(". ")[0]
    last = text[-tail:].partition("\n")[2] or text[-tail:].partition(". ")[2]
    return f"{first}\n\n{last}"

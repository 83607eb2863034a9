# ruff: noqa: RUF001 - apostrophes and letters of other languages
"""Recognition of secrets in a text: passwords, keys, tokens, numbers of cards. No sentence with one is kept by itself."""

from __future__ import annotations

import re

_NAMES = (
    r"pass ?(?:word|phrase|code|wd)|p(?:wd?|/w)|pin(?: code| number)|(?:wi-?fi|wlan|network)[ -]?(?:key|code|pass|schlüssel)|(?:unseal|encryption|decryption|signing|master|root|licen[cs]e|activation)[ _-]?keys?"
    r"|(?:door|gate|alarm|entry|unlock|safe|locker|lock|building|garage)[ -]?(?:code|combination)|api[ _-]?keys?|secret(?:[ _-]?keys?)?|access[ _-]?(?:key|token)s?|auth(?:entication)?[ _-]?tokens?"
    r"|bearer|private[ _-]?key|client[ _-]?secret|(?:recovery|backup|security|verification)[ _-]?codes?|otp|cvv|cvc|iban|ssn|social security number"
    r"|cred(?:ential)?s?|(?:seed|recovery|backup|secret)[ -](?:phrase|words?)|mnemonic|(?:credit|debit)[ _-]?card(?: number)?|card number|(?:passport|id card|driver['’]?s? licen[cs]e|national id|tax id)(?: number| no\.?)|maiden name|security question|routing number|steuer-?(?:id|nummer)|(?:combination|code) (?:of|for|to) (?:the|my|our) (?:[\w-]+ )?(?:safe|lock|door|gate|alarm|garage|locker|vault)"
    r"|passwort|kennwort|geheimzahl|zugangsdaten|kreditkartennummer|geheime?r? (?:schlüssel|code)|(?:tür|zugangs|alarm)code|(?:mot|phrase) de passe|code (?:de la porte|d['’](?:entrée|accès))|codice (?:del |di |d['’])\w+|code secret|contrase[ñn]a|clave(?: de acceso)?|senha|parola d['’]ordine"
    r"|wachtwoord|heslo|geslo|lozinka|lösenord\w*|salasana|jelszó|adgangskode|passord|sandi|mật khẩu|κωδικός|סיסמ\w+|비번|รหัสผ่าน|has[łl]o|[şs]ifre\w{0,2}|parol[aă]|пароль\w*|密码|口令|密钥|パスワード|暗証番号|비밀번호|암호|كلمة (?:السر|المرور)|पासवर्ड"
)
_VERBS = r"\b(?:is|are|was|be|lautet|ist|est|este|es|[éeèä]r?|to jest|jest|là|ise|это|هي|היא)\b|['’]s\b|[-—]|是|为|は|는|은|है"
_PREDICATES = (
    r"(?:not|no longer|never|now|still|also|already|always|only|automatically|usually|currently|stored|kept|saved|held|located|rotated|renewed|refreshed"
    r"|generated|created|issued|changed|updated|replaced|revoked|expired|disabled|deleted|removed|hashed|salted|encrypted|masked|hidden|protected|managed|owned"
    r"|handled|provided|supplied|passed|read|loaded|fetched|injected|taken|sent|shared|set|checked|validated|verified|required|needed|used|asked|requested"
    r"|missing|wrong|incorrect|invalid|valid|empty|blank|optional|mandatory|unique|different|case[ -]sensitive|too|the same|about|part|one)"
)
_NO_VALUE = rf"(?!\s+{_PREDICATES}\b(?![^.!?\n]{{0,80}}?(?:[\d\"'`“«:=]|\bto\b)))"
"""What is said of a secret without telling it: "is rotated monthly", but not "is changed to ..." nor anything with a figure."""

_NAMED = re.compile(
    rf"(?:\b|(?<=[^\x00-\x7f])|(?=[^\x00-\x7f]))(?:{_NAMES})(?:\b|(?=[^\x00-\x7f]))"
    rf"(?:[^\n.!?:：=]{{0,40}}?(?:[:：=]|->|→)|\s*(?:{_VERBS}){_NO_VALUE}|[^\n.!?]{{0,40}}?(?:{_VERBS})\s*(?=\S*\d|[\"'`“«‘]))\s*[\"'`“«]?[^\s]{{3,}}",
    re.IGNORECASE,
)
"""A name of a secret that is said with a value."""

_BESIDE = re.compile(
    rf"(?:\b|(?<=[^\x00-\x7f]))(?:{_NAMES})(?: [^\W\d]{{1,8}}){{0,2}}\s+[\"'`“«]?(?=\S*\d)(?=\S*[^\W\d_])\S{{5,}}"
    r"|\b(?:pin|puk|pass ?code|cv[vc]2?)\b(?: (?:for|of|to|on) (?:the |my |our |his |her )?[\w'-]+(?: [\w'-]+)?)?\s*(?:is|ist|est|es|['’]s|[:=-])?\s*\d{3,8}\b"
    r"|\b(?:door|gate|garage|alarm|entry|access|unlock|safe|lock\w*|building|house|verification|security|one[- ]time|login|2fa|sms|apple id)(?: \w+)? (?:code|pin)\b(?:['’]s| is|:)? *\d[\d -]{2,8}"
    r"|\b(?:passport|id card|driver['’]?s? licen[cs]e|account(?: number)?|sort code|tax id|steuer-?id)(?: is|:)? +(?=[A-Z\d ]{0,9}\d[\d ]{4})[A-Z\d][A-Z\d ]{5,}"
    r"|\b(?:log ?-?in|sign ?-?in|router|account|wi-?fi|access|unlock\w*|vault)\b[^\n.!?]{0,60}?\s[\"'`]?(?-i:(?=\S*[A-Z])(?=\S*[a-z])(?=\S*\d))[^\s\"'`/]{7,}"
    r"|\biban\b[ :]*[a-z]{2}\d\d[ \da-z]{8,}|\bpass\s?[:=]\s*(?=\S*[\d!@#$%^&*])\S{5,}"
    r"|\b(?:user(?:name)?|log ?-?in|account|root|admin)\b[^\n.!?]{0,40}\bpass\s+(?=\S*[\d!@#$%^&*])\S{5,}"
    r"|\bpass is (?=\S*\d)\S{5,}|(?<!\S)[\"'`]?(?=\S{0,60}\d)[^\s\"'`]{5,60}[\"'`]? as (?:the|my|our|your|a)(?: [\w-]+){0,2} (?:pass(?:word|phrase|code)|pin|pw|secret|api key|token)\b"
    r"|\b(?:wi-?fi|wlan|ssid)\b[^\n.!?/|]{0,30}[/|,;]\s*(?=\S*\d)(?=\S*[a-z])[^\s/]{6,}"
    r"|\b(?:tokens?|keys?|secrets?)\s+(?=[\w.+/=-]*\d)(?=[\w.+/=-]*[a-z])[\w.+/=-]{16,}"
    r"|\b(?:log ?-?in|sign ?-?in|user(?:name)?|account|zugang)\b[^\n.!?/]{0,30}\s[\w.@-]+\s+[/|]\s+(?=\S*\d)(?=\S*[A-Za-z])[^\s/]{4,}(?![^\s]*/)",
    re.IGNORECASE,
)
"""A name of a secret with what looks like one right behind it, a PIN with its digits, a name with its password."""

_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}|\bnpm_[A-Za-z0-9]{20,}|\bdckr_pat_[\w-]{8,}|\bhf_[A-Za-z0-9]{20,}"
    r"|\b[A-Za-z][A-Za-z\d]{0,7}[_-](?:[a-z]{2,5}[_-])?(?=[A-Za-z\d]*\d)(?=[A-Za-z\d]*[A-Za-z])[A-Za-z\d]{20,}|\bhvs\.[\w-]{16,}|\b0x[\da-fA-F]{64}\b"
    r"|(?<![\w.+-])(?!git@)[\w.+-]{1,64}@[\w-]{1,64}\.[\w.]{1,64} ?[:/|] ?(?=[^\s/]{0,64}\d)(?=[^\s/]{0,64}[A-Za-z])[^\s/]{6,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bSG\.[\w-]{16,}\.[\w-]{8,}|\bdop_v1_[0-9a-f]{32,}"
    r"|\bhttps://(?:hooks\.slack\.com/services|(?:[\w-]+\.)?discord(?:app)?\.com/api/webhooks|[\w.-]+\.webhook\.office\.com)/\S{8,}"
    r"|[?&](?:\w*_)?(?:token|key|sig|secret|password)=[\w%.+/-]{6,}|(?<![\w.])(?!(?:mailto|e-?mail|b?cc|to|from|contact|kontakt|sip|xmpp):)[\w.-]{2,64}:(?=[^\s:@/]{0,64}\d)[^\s:@/]{4,64}@[\w-]+\.[\w.]+"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\b\w+://[^\s/:@]+:[^\s/@]{3,}@"
)
_IN_COMMAND = re.compile(
    r"\b\w*(?:password|passwd|passphrase|_pass|_pwd|secret|token|api_?key|access_?key|account_?key)=['\"]?(?!\d{1,9}\b|[$<{]|(?:none|null|true|false)\b)[^\s'\"(.]{4,}(?![^\s'\"]*\()"
    r"|\s--?[\w-]*(?:password|passwd|secret|token|api-?key)[ =]['\"]?(?!\d{1,9}\b|[$<{-])[^\s'\"]{4,}"
    r"|\bauthorization['\"]?\s?[:=]\s?['\"]?(?:bearer|basic|token)\s+(?![$<{])[^\s'\"]{8,}"
    r"|\bcurl\b[^\n|;]{0,200}\s(?:-u|--user)\s?['\"]?[^\s:]+:[^\s'\"]{3,}|\b(?:mysql\w*|7z\w?)\b[^\n|;]{0,200}\s-p[^\s'\"-]{4,}"
    r"|\b\w+_(?:password|secret|token|api_key|access_key|secret_key|private_key)\s+['\"]?(?=\S*\d)(?=\S*[a-z])[^\s'\"$<{]{12,}"
    r"|\b(?:sshpass\s+-p|(?:(?:docker|podman|helm|skopeo)\b[^\n|;]{0,60}\slogin|mongo\w*)\b[^\n|;]{0,200}\s-p|openssl\b[^\n|;]{0,200}\s-k|redis-cli\b[^\n|;]{0,200}\s-a"
    r"|(?:un)?zip\b[^\n|;]{0,200}\s(?-i:-P)|ldap\w+\b[^\n|;]{0,200}\s-w|sudo\s+-S\b[^\n|;]{0,200}<<<|htpasswd\s+-\w*b\w*\s+\S+\s+\S+)\s?['\"]?(?![$<{-])[^\s'\"]{4,}"
    r"|\b(?:smb\w+|rpcclient|net)\b[^\n|;]{0,200}\s-U\s?[^\s%]+%[^\s'\"$]{3,}",
    re.IGNORECASE,
)
"""A secret as commands are given it: NAME=value, --name value, -u name:value."""

_CARD = re.compile(r"(?<![\d-])(?:\d[ -]?){12,18}\d(?![\d-])")
_RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{32,}")


HIDDEN_WORDS = "(words with a secret)"
"""What stands for an answer or a task that holds a secret: no block repeats one."""


def holds_secret(text: str) -> bool:
    """True where a text tells a password, a key, a token or the number of a card.

    >>> holds_secret("My password is hunter2"), holds_secret("Reset the password"), holds_secret("4111 1111 1111 1111")
    (True, False, True)
    """
    if any(pattern.search(text) for pattern in (_NAMED, _BESIDE, _SHAPES, _IN_COMMAND)):
        return True
    return any(map(_is_card, _CARD.findall(text))) or any(map(_is_random, _RANDOM.findall(text)))


def hide_secret(text: str) -> str:
    """Return a text, or what stands for one with a secret in it."""
    return HIDDEN_WORDS if holds_secret(text) else text


def _is_card(digits: str) -> bool:
    """True where the last digit is the check digit of the others (Luhn)."""
    numbers = [int(digit) for digit in reversed(digits) if digit.isdigit()]
    doubled = (sum(divmod(2 * number, 10)) if place % 2 else number for place, number in enumerate(numbers))
    return len(set(numbers)) > 1 and sum(doubled) % 10 == 0


def _is_random(word: str) -> bool:
    """True for a long word of digits and of letters in both cases, such as a key; a path or a name is none."""
    kinds = (any(map(str.isdigit, word)), any(map(str.islower, word)), any(map(str.isupper, word)))
    return all(kinds) and "/" not in word and "-" not in word and len(set(word)) > 14

"""Contextual secrets: those that only the words or the syntax before them give away, in several languages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keepsaid.adapters.redaction.formats import Masks, is_made, is_random, matches
from keepsaid.domain.redaction import MASK, SecretMark

_STRONG = (
    r"pass(?:word|wort|wd|phrase|code|word_hash)?s?|pwd|pw|kennw(?:ort|oerter)|zugangscode"
    r"|contrase(?:ñ|n)a|clave|mot de passe|mdp|senha|palavra-passe|password d[ie] \w{1,20}|parola(?: d'ordine)?"
    r"|(?:wi-?fi|wlan)[ _.-]?(?:keys?|schlüssel)"
    r"|wachtwoord|lösenord|losenord|adgangskode|passord|salasana|heslo|hasło|haslo|jelsz[oó]|şifre|sifre"
    r"|парол[ьяюе]м?|كلمة (?:المرور|السر)|סיסמ[הא]|पासवर्ड|mật khẩu"
)
"""What a password is called."""

_WEAK = (
    r"(?:api|access|secret|private|master|account|encryption|signing|license|auth|app|bot|shared|service)[ _.-]?keys?"
    r"|(?:(?:access|auth|api|bot|refresh|bearer|session|id|client|app|personal access|deploy|webhook|login)[ _.-]?)?"
    r"tokens?|(?:(?:client|app|api|webhook|shared|consumer|signing|jwt|oauth)[ _.-]?)?secrets?|credentials?|creds"
    r"|apikey|geheimnis|schlüssel|zugangsdaten|jeton|clé(?: api| secrète)?|llave|secreto|segredo|chave(?: de api)?"
    r"|токен[а-я]{0,2}|ключ[а-я]{0,2}|секрет[а-я]{0,2}|authorization|auth"
)
"""What a token or a key is called."""

_FIRST = "pkzcmswlahjşebridtogпткскסप"
KEYWORD = re.compile(
    rf"(?<![^\W_])(?=[{_FIRST}])(?:(?P<strong>{_STRONG})|(?P<weak>{_WEAK}))(?![^\W\d_])", re.IGNORECASE
)
CJK = re.compile(
    r"(?P<strong>密码|密碼|口令|パスワード|暗証番号|비밀번호|암호)|(?P<weak>令牌|密钥|密鑰|秘钥|トークン|토큰)"
)
CAMEL = re.compile(
    r"(?<=[a-z])(?:(?P<strong>Password|Passwd|Passphrase)|(?P<weak>Token|Secret|ApiKey|AccessKey|SecretKey))(?![a-z])"
)

_STEMS_TEXT = """
pass pw kennw zugang contrase clave mdp senha palavra parol wachtwoord senord adgangs salasana hesl hasł haslo
jelsz ifre парол كلمة סיסמ पासवर्ड mật key token secret cred geheim schlüssel jeton clé llave secreto segredo
chave токен ключ секрет auth
"""
STEMS = tuple(_STEMS_TEXT.split())
"""No text without any of these holds a word for a secret."""


def folded(text: str) -> str:
    """A text in lower case, with the letters that IGNORECASE takes for an ASCII letter as that letter."""
    low = text.lower()
    return low if low.isascii() else low.replace("i\u0307", "i").replace("ı", "i").replace("ſ", "s")


_COMMON_TEXT = """
a abgelaufen admin-only also always an and any authentication available bad based bool budget but bytes change
changed correct correcta count counts default demo disabled easy empty enabled encrypted example expired
falsch falsche false field fine forgotten from geheim generated good hard hashed here hidden how immer
incorrect incorrecta input int into invalid invalide it key keys leaked limit limits login long lost manager
managers masked missing needed never nicht nil noch none not now null obligatoire ok only optional or pas
passwd password passwort policies policy private prompt protected public que redacted required requis reset
revoked richtig right rotated same sample saved schon secret secure set shared short sicher stolen stored str
string strong test testing text that the there this token too true unavailable undefined unknown unsafe unset
unused usage used valid value values very weak what when where which who with without word words wrong был для
забыл не неверный это
"""
COMMON = frozenset(_COMMON_TEXT.split())
"""Words that follow a word for a secret in sentences and code, and are none."""


_LINK = re.compile(
    r"""(?P<quote>["'`*\])]{0,3})[ \t]{0,3}(?:\([^)\n]{1,40}\)[ \t]?)?
    (?:(?:for|für|fuer|pour|para|per|voor|på|för|dla|do|от|для|to|of|of the|von|zum|zu|de|del|da|di)
       (?:[ \t][^\s:=]{1,30}){1,4}?[ \t]?)?
    (?:(?P<sign>=>|:=|==?|[:：→=]|->)
      |(?P<word>(?:is|was|are|ist|war|lautet|est|c'est|es|je|era|é|è|är|er|on|jest|to|это|был|was\ changed\ to)\b
        (?:[ \t](?:now|still|jetzt|noch|ahora|maintenant|agora|adesso|теперь)\b)?:?)
      |(?P<cjk>是|为|為|は|は、|:|은|는))
    [ \t]{0,4}(?:\r?\n[ \t]{0,4})?""",
    re.VERBOSE | re.IGNORECASE,
)
_BESIDE = re.compile(r"[ \t]{1,2}")
_FLAG = re.compile(r"(?<!\S)--?$|--[\w-]{0,40}$")
_VALUE = re.compile(
    r"""(?P<fence>```|[`"'“„«「‘*]{1,3})(?P<quoted>[^\n`"'“”„«»「」‘’]{1,400})[`"'“”»」’]"""
    r"""|(?P<bare>[^\s"'`<>,;，。、「」“”„«»]{1,4000})"""
)
_BEARER = re.compile(
    r"\b(?:bearer|basic|token|apikey|digest)[ \t]{1,3}(?P<bare>[A-Za-z0-9._~+/-]{16,4000}={0,2})", re.IGNORECASE
)
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|negotiate)[ \t]{1,3}", re.IGNORECASE)
_SEED = re.compile(
    r"(?:seed|recovery|mnemonic|backup|wallet)[ _-]?(?:phrase|words|seed)?[^\n\w]{1,4}(?:(?:is|are)[ :]{1,2})?"
    r"(?P<bare>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})(?![a-z])",
    re.IGNORECASE,
)
BARE = (
    (_BEARER, "credential", ("bearer", "basic", "token", "apikey", "digest")),
    (_SEED, "seed phrase", ("seed", "recovery", "mnemonic", "backup", "wallet")),
)
"""Secrets that stand behind certain words; no folded text without any of the words holds one."""

_PIN = re.compile(
    r"(?<!\w)(?:PIN|PUK|(?i:(?:my|card|bank|sim|door|phone|meine|mein) (?:pin|puk)|(?:pin|puk)[ -]?(?:code|number)))"
    r"(?i:[ ]?[:=][ ]?| (?:is|ist|es|est|lautet|was):? )(?P<bare>\d{4,8})(?![\w]|[.,:/-]\d)"
)
"""A number of four to eight digits that is called a PIN."""

_NEAR_MAX = 60
_NAMED = re.compile(r"(?i)sha|commit|hash|digest|md5|checksum|uuid|count|usage|https?:|limit|revision|\bid\b")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_RUN = re.compile(r"(?<![\w/.+=-])[A-Za-z0-9+/_=-]{16,400}(?![\w/+=-])")

_RUN_MAX = 402
_SOUGHT = 16_384
"""How far of a word for a secret the next run is looked for."""

_NO_SECRET = re.compile(
    r"""[*•.…x_-]+$|<|\$|%|\{|\[|\(|@\w+$|https?://|(?:your|my|the|some|new|old)[_ -]|.{0,40}(?:example|placeholder)
    |(?:os|process|self|cls|this|config|settings|env|request|req|ctx|args|secrets|options|opts|data|user|params?)[.\[]
    |.{0,80}\w\(|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|[A-Z][A-Z_]+$|[a-z]+(?:_[a-z]+)+$|[A-Z][a-z]+(?:[A-Z][a-z]+)+$
    |[a-z]+(?:[A-Z][a-z]+)+$|\d{1,4}(?:[.,:/-]\d{1,4})*[%a-z]{0,3}$|[\w.+-]+@[\w-]+\.\w+$|(?:\w+/)+\w+\.\w{1,4}$
    |~?(?:/[\w.:@+-]{0,100}){2,20}$|[A-Za-z_]\w{0,60}\[|[A-Za-z_]\w{0,60}=(?i:true|false|none|null|\d{1,6})$""",
    re.VERBOSE,
)
_KEY = re.compile(
    r"""\bkeys?["'`*]{0,2}(?:[ ]is|[ ]?[:=])[ ]{0,2}["'`*]{0,2}(?P<bare>[A-Za-z0-9_+/=.~-]{20,400})(?![\w/])""",
    re.IGNORECASE,
)
_REACH = 4_000


def find_keyword_secrets(text: str) -> Iterator[SecretMark]:
    """Find the secrets that follow a keyword for one."""
    low = folded(text)
    if any(stem in low for stem in STEMS):
        yield from _Words(text).marks(KEYWORD, CAMEL)
    if not text.isascii():
        yield from _Words(text).marks(CJK)
    for pattern, kind, words in BARE:
        for found in matches(pattern, text) if any(word in low for word in words) else ():
            start, end = found.span("bare")
            if kind == "seed phrase" or is_random(text[start:end], 16):
                yield SecretMark(start, end, kind)
    for found in matches(_PIN, text) if "pin" in low or "puk" in low else ():
        yield SecretMark(*found.span("bare"), "pin")
    for found in matches(_KEY, text) if "key" in low else ():
        if _is_key(found["bare"]):
            yield SecretMark(*found.span("bare"), "credential")


def _is_key(value: str) -> bool:
    """Whether what is only called a key looks made by a machine, and like no hash or path."""
    cases = any(one.isupper() for one in value) and any(one.islower() for one in value)
    return cases and is_made(value) and not _NO_SECRET.match(value) and value.count("/") < 3


class _Words:
    """One text, read from left to right: what follows each word for a secret."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._masks = Masks(text)
        self._clear = 0
        self._run: re.Match[str] | None = None

    def marks(self, *patterns: re.Pattern[str]) -> Iterator[SecretMark]:
        """The secrets after the words that the patterns know."""
        for pattern in patterns:
            self._clear, self._run = 0, None
            for found in matches(pattern, self._text):
                mark = None if self._masks.touch(*found.span()) else self._after(found)
                if mark is not None:
                    yield mark

    def _after(self, keyword: re.Match[str]) -> SecretMark | None:
        """The secret that stands after a word for one, if any does."""
        text, strong = self._text, keyword.lastgroup == "strong"
        kind = "password" if strong else "credential"
        if (link := _LINK.match(text, keyword.end())) is None:
            flag = _FLAG.search(text, max(0, keyword.start() - 42), keyword.start())
            if (beside := _BESIDE.match(text, keyword.end())) is None:
                return None
            found = _value(text, beside.end(), kind, sure=flag is not None, said=flag is None)
            return found or self._near(keyword, kind)
        sure = link["sign"] is not None or link["cjk"] is not None
        scheme = _SCHEME.match(text, link.end())
        start = scheme.end() if scheme else link.end()
        return _value(text, start, kind, sure=sure and strong, said=not sure) or self._near(keyword, kind)

    def _near(self, keyword: re.Match[str], kind: str) -> SecretMark | None:
        """A random run a few words further on, in the same sentence."""
        after = keyword.end()
        run = self._run_after(after)
        if run is None or run.start() > after + _NEAR_MAX or _UUID.fullmatch(run.group()):
            return None
        between = self._text[after : run.start()]
        if _NAMED.search(between) or "\n" in between or ". " in between or MASK.search(between):
            return None
        value = run.group()
        mixed = any(one.isupper() for one in value) and any(one.islower() for one in value)
        if not is_random(value, 16) or (not mixed and len(value) < 24) or _NO_SECRET.match(value):
            return None
        return SecretMark(*run.span(), kind)

    def _run_after(self, after: int) -> re.Match[str] | None:
        """The first run that begins behind a place; None if none begins near it. No place is searched again."""
        if self._run is not None and self._run.start() < after:
            self._clear, self._run = 0, None
        if self._run is None and self._clear <= after + _NEAR_MAX:
            clear = after + _SOUGHT
            run = _RUN.search(self._text, after, clear + _RUN_MAX)
            self._run = run if run is not None and run.start() <= clear else None
            self._clear = clear + 1
        return self._run


def _value(text: str, start: int, kind: str, *, sure: bool, said: bool) -> SecretMark | None:
    found = _VALUE.match(text, start, start + _REACH)
    if found is None or MASK.match(text, start):
        return None
    group = "quoted" if found["quoted"] is not None else "bare"
    begin, end = found.span(group)
    value = text[begin:end]
    if group == "bare":
        value = value.rstrip(".?:)]}|\\") or value  # without the punctuation that ends a sentence or a bracket
        end = begin + len(value)
    if is_secret(value, quoted=group == "quoted", sure=sure, said=said):
        return SecretMark(begin, end, kind)
    return None


def is_secret(value: str, *, quoted: bool, sure: bool, said: bool) -> bool:
    """Whether a value that follows a word for a secret is one.

    `sure`: it was assigned to a password. `said`: it only follows in a sentence, and must look like more than a word.
    """
    if len(value) < 4 or value.lower() in COMMON or MASK.search(value):
        return False
    if _NO_SECRET.match(value) and not is_made(value):
        return False
    if quoted and value.count(" ") > 5:
        return False
    letters = any(one.isalpha() for one in value)
    digits = any(one.isdigit() for one in value)
    signs = any(not one.isalnum() and one not in "-_./' " for one in value)
    if sure:
        return (letters and (digits or signs)) or (len(value) >= 6 and (quoted or value.isdigit()))
    if said:
        return len(value) >= 6 and letters and (digits or (quoted and signs))
    return is_random(value, 8)


_ELEMENT = re.compile(
    r"<(?P<name>[A-Za-z][\w.:-]{1,60})(?:\s[^<>]{0,200})?>(?:\s{0,20}<!\[CDATA\[)?\s{0,40}(?P<value>[^<>\s\]]{4,4000})"
    r"(?:\]\]>)?\s{0,40}</"
)
_PAIR = re.compile(
    r"""(?:key|name|id)=["'](?P<name>[^"'<>\n]{2,80})["']\s{1,20}value=["'](?P<value>[^"'<>\n]{4,4000})["']"""
)
_KIND = re.compile(r"""(?m)^["' \t-]{0,20}kind["']?:[ \t]{1,4}["']?Secret\b""")
_SECTION = re.compile(r"(?P<indent>[ \t]{0,20})(?:data|stringData):[ \t]{0,4}$")
_ENTRY = re.compile(
    r"""(?P<indent>[ \t]{1,40})["']?[\w.-]{1,200}["']?:[ \t]{1,4}["']?(?P<value>[^\s"'|>][^\s"']{3,8000})"""
)
_LOGIN = re.compile(
    r"""(?:(?<=\s)-u|(?<=\s)--user|(?<=\s)--proxy-user)[ =]{0,2}["']?[^\s:"']{1,100}:(?P<value>[^\s"']{3,200})"""
)
_LOOK_BACK = 400


def find_syntax_secrets(text: str) -> Iterator[SecretMark]:
    """Find the secrets that the syntax around them identifies."""
    if "</" in text or "value=" in text:
        for pattern in (_ELEMENT, _PAIR):
            for found in matches(pattern, text):
                yield from _named(found)
    if "Secret" in text and _KIND.search(text):
        yield from _of_kubernetes(text)
    if "curl" in text:
        yield from _of_curl(text)


def _named(found: re.Match[str]) -> Iterator[SecretMark]:
    """The value, if its name is one for a secret and the value can be one."""
    keyword = KEYWORD.search(found["name"]) or CAMEL.search(found["name"])
    if keyword is None:
        return
    strong = keyword.lastgroup == "strong"
    if is_secret(found["value"], quoted=True, sure=strong, said=not strong):
        yield SecretMark(*found.span("value"), "password" if strong else "credential")


def _of_kubernetes(text: str) -> Iterator[SecretMark]:
    """Every value below `data` and `stringData` of a text that declares a Secret."""
    at, inside = 0, -1
    for line in text.splitlines(keepends=True):
        section, entry = _SECTION.match(line.rstrip("\r\n")), _ENTRY.match(line)
        if section is not None:
            inside = len(section["indent"])
        elif entry is not None and 0 <= inside < len(entry["indent"]):
            yield SecretMark(at + entry.start("value"), at + entry.end("value"), "credential")
        elif line.strip():
            inside = -1
        at += len(line)


def _of_curl(text: str) -> Iterator[SecretMark]:
    """The password of `curl -u user:password`."""
    for found in matches(_LOGIN, text):
        before = text[max(0, found.start() - _LOOK_BACK) : found.start()].rpartition("\n")[2]
        if "curl" in before and not found["value"].startswith(("$", "<", "{")):
            yield SecretMark(*found.span("value"), "password")

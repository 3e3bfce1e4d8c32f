"""Formats: secrets told by their shape, searched for in short steps: documented tokens, card numbers, prefixes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from math import log2
from typing import NamedTuple

from keepsaid.domain.redaction import MASK, SecretMark

WINDOW = 65_536
"""In this many characters matches may begin that one call looks for."""

REACH = 8_192
"""The most characters that a match, and what it looks ahead at, may have, unless a caller names more."""


def matches(pattern: re.Pattern[str], text: str, reach: int = REACH, window: int = WINDOW) -> Iterator[re.Match[str]]:
    """The matches that `pattern.finditer` gives.

    No match of the pattern may be empty, or longer than `reach` with what the pattern looks ahead at.
    """
    at, end = 0, len(text)
    for start in range(0, end, window):
        bound = start + window
        for found in pattern.finditer(text, max(at, start), min(bound + reach, end)):
            if found.start() >= bound:
                break
            at = found.end()
            yield found


class Masks:
    """The masks in a text, asked about in any order."""

    def __init__(self, text: str) -> None:
        spans = [one.span() for one in MASK.finditer(text)] if "[redacted: " in text else []
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def touch(self, start: int, end: int) -> bool:
        """Whether any mask stands, in part or whole, between two places."""
        place = bisect_left(self._starts, end) - 1
        return place >= 0 and self._ends[place] > start


_MADE = re.compile(r"[A-Za-z0-9._~+/=-]+")
_SEGMENT = re.compile(r"[A-Za-z0-9]{20,400}")


def is_random(value: str, chars_min: int) -> bool:
    """Whether a value has letters and digits as nothing written for people has them."""
    if len(value) < chars_min or not any(one.isdigit() for one in value) or not any(one.isalpha() for one in value):
        return False
    return entropy(value) >= (3.0 if len(value) >= 16 else 2.5)


def is_made(value: str) -> bool:
    """Whether a value has a long random segment, such as a token whose parts are joined by dots."""
    if _MADE.fullmatch(value) is None:
        return False
    return any(is_random(segment, 20) for segment in _SEGMENT.findall(value))


def entropy(value: str) -> float:
    """Bits a character, by how often each occurs."""
    size = len(value)
    return -sum(count / size * log2(count / size) for count in map(value.count, set(value)))


_NUMBER = re.compile(
    r"\d(?<![\w.+-]\d)(?:\d{3}([ -]?)\d{4}\1\d{4}\1\d{4}|(?<=3)[47]\d{2}([ -]?)\d{6}\2\d{5})(?![\w-]|\.\d)", re.ASCII
)
_IBAN = re.compile(r"\b[A-Z]{2}\d\d(?: \d{4}){0,5} \Z")
_LOOK_BACK = 40
_ISSUED = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|62\d{14}|3[47]\d{13}"
)


def card_marks(text: str) -> Iterator[SecretMark]:
    """Every number that a credit card may have."""
    for found in matches(_NUMBER, text):
        digits = found.group().replace(" ", "").replace("-", "")
        if (
            _ISSUED.fullmatch(digits)
            and _checks(digits)
            and not _IBAN.search(text[max(0, found.start() - _LOOK_BACK) : found.start()])
        ):
            yield SecretMark(*found.span(), "card number")


def _checks(digits: str) -> bool:
    """The check digit, after Luhn."""
    doubled = [int(one) * 2 if place % 2 else int(one) for place, one in enumerate(reversed(digits))]
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0


_TOKEN = re.compile(
    r"(?<![\w/.+%@#-])(?P<beginning>[A-Za-z][A-Za-z0-9]{1,11}(?:[_-][A-Za-z0-9]{1,8}){0,3}[_-])"
    r"(?P<rest>[A-Za-z0-9][A-Za-z0-9_-]{19,400}(?:-X)?)(?![\w/.@-]{1,2}[A-Za-z0-9])"
)
_HASHED = re.compile(
    r"(?i)(?:.*[_-])?(?:sha\d*|md5|hash|commit|rev|git|etag|uuid|guid|id|img|image|file|video|npub\w*|note\w*|build"
    r"|blob|chunk|asset|bundle|css|js|vendor|main|index|digest|cid|tx|block|version|v\d+)[_-]"
)
_HEX = re.compile(r"[0-9a-f]{32,128}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")
_PREFIX_LOOK_BACK = 300
_SHORT = 4
"""Characters of a beginning, with its separator, before which hex is more likely a hash."""

_DIGITS_MIN = 2
_TURNS_MIN = 6


def prefixed_marks(text: str) -> Iterator[SecretMark]:
    """Every token that looks made by a machine behind a short beginning."""
    if "_" not in text and "-" not in text:
        return
    for found in matches(_TOKEN, text):
        if _is_token(found["beginning"], found["rest"]) and not _in_address(text, found.start()):
            yield SecretMark(*found.span(), "token")


def _in_address(text: str, place: int) -> bool:
    """Whether a place is inside an address: pictures and documents have such names."""
    words = text[max(0, place - _PREFIX_LOOK_BACK) : place].split()
    return bool(words) and not text[place - 1].isspace() and "://" in words[-1]


def _is_token(beginning: str, rest: str) -> bool:
    if _UUID.match(rest) or rest.startswith(("-", "_")):
        return False
    if _HEX.fullmatch(rest):
        return len(beginning) > _SHORT and _HASHED.fullmatch(beginning) is None and is_random(rest, 32)
    run = max(re.split(r"[_-]", rest), key=len)
    return len(run) >= 12 and _is_mixed(rest) and _HASHED.fullmatch(beginning) is None


def _is_mixed(text: str) -> bool:
    """Whether digits and both cases alternate as they do in nothing that a person names."""
    classes = ["d" if one.isdigit() else "u" if one.isupper() else "l" for one in text if one.isalnum()]
    turns = sum(one != other for one, other in pairwise(classes))
    return len(set(classes)) == 3 and classes.count("d") >= _DIGITS_MIN and turns >= max(_TURNS_MIN, len(classes) // 4)


_EDGE = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9])"


class _Format(NamedTuple):
    """Its kind, the letters without which no text holds one, and its pattern, whose last group is the secret."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _format(kind: str, hints: str, pattern: str) -> _Format:
    return _Format(kind, tuple(hints.split()), re.compile(pattern))


def _token(kind: str, hints: str, pattern: str) -> _Format:
    return _format(kind, hints, f"{_EDGE}(?:{pattern}){_END}")


FORMATS = (
    _token("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _token("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    _token(
        "gitlab token",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- glft- glimt- glagent- gloas- glffct- glrtr-",
        r"gl(?:pat|dt|rt|rtr|ptt|cbt|soat|ft|imt|agent|oas|ffct)-[\w-]{20,128}(?:\.[\w-]{2,20}){0,3}",
    ),
    _token("gitlab token", "GR1348941", r"GR1348941[\w-]{20,40}"),
    _format("gitlab session", "_gitlab_session=", r"_gitlab_session=([0-9a-f]{32})"),
    _token("slack token", "xox", r"xox[abeoprsc]-[A-Za-z0-9-]{10,255}"),
    _token("slack token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,255}"),
    _format("slack hook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/-]{20,200})"),
    _token("anthropic key", "sk-ant-", r"sk-ant-[\w-]{20,255}"),
    _token("openai key", "sk-", r"sk-(?=[\w-]{0,100}\d)[\w-]{0,80}?[A-Za-z0-9]{20}[\w-]{0,200}"),
    _token("aws key id", "AKIA ASIA ABIA ACCA", r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}"),
    _token("aws bedrock key", "ABSK", r"ABSK[A-Za-z0-9+/]{60,300}={0,2}"),
    _token("aws bedrock key", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=]{40,3000}"),
    _token("google refresh token", "1//", r"1//0[\w-]{40,200}"),
    _format("azure key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{40,100}={0,2})"),
    _token("azure token", "AZDO", r"[A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4}"),
    _token("1password token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/_-]{200,4000}={0,3}"),
    _token("1password key", "A3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    _token("doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _token("dynatrace token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _token("clojars token", "CLOJARS_", r"CLOJARS_[A-Za-z0-9]{60}"),
    _token("flutterwave key", "FLWSECK FLWPUBK", r"FLW(?:SECK|PUBK)(?:_TEST)?-?[0-9A-Za-z]{12,40}(?:-X)?"),
    _token("duffel token", "duffel_", r"duffel_(?:test|live)_[\w=-]{43}"),
    _token("easypost key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),
    _token("huggingface token", "api_org_", r"api_org_[A-Za-z]{34}"),
    _token("defined networking key", "dnkey-", r"dnkey-[\w=-]{26,60}-[\w=-]{20,60}"),
    _token("nuget key", "oy2", r"oy2[a-z0-9]{43}"),
    _token("rubygems key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _token("cargo token", "cio", r"cio[A-Za-z0-9]{32}"),
    _token("mailchimp key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    _token("square token", "EAAA", r"EAAA[\w-]{60}"),
    _token("new relic key", "NRII- NRJS-", r"NR(?:II-[\w-]{32}|JS-[0-9a-f]{19})"),
    _token("pagerduty key", "pdus+", r"pdus\+[\w-]{20}"),
    _token("airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _token("contentful token", "CFPAT-", r"CFPAT-[\w-]{43}"),
    _token("dropbox token", "sl.", r"sl\.[\w-]{130,200}"),
    _token("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}"),
    _token("snyk token", "snyk_uat.", r"snyk_uat\.[a-z0-9]{8}\.[\w-]{60,100}(?:\.[\w-]{10,100})?"),
    _token("yandex token", "t1.", r"t1\.[\w-]{40,100}={0,2}\.[\w-]{86}={0,2}"),
    _token(
        "plaid token",
        "access-",
        r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    _token("alibaba key", "LTAI", r"LTAI[A-Za-z0-9]{17,21}"),
    _token("tencent key", "AKID", r"AKID[A-Za-z0-9]{32}"),
    _token("cloudflare key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    _token("artifactory token", "AKCp", r"AKCp[A-Za-z0-9]{69}"),
    _token("x bearer token", "AAAAAAAAAAAAAAAAAAAA", r"A{20,24}[A-Za-z0-9%]{60,150}"),
    _token("harness token", "pat. sat.", r"[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    _token("adyen key", "AQE", r"AQE[A-Za-z0-9+/]{100,250}={0,2}"),
    _token("fly token", "fm2_", r"fm2_[A-Za-z0-9+/]{80,3000}={0,3}"),
    _token("pulumi token", "pul-", r"pul-[0-9a-f]{40}"),
    _token("sonar token", "squ_ sqp_ sqa_", r"sq[upa]_[0-9a-f]{40}"),
    _token("langsmith key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    _token("cerebras key", "csk-", r"csk-[a-z0-9]{48}"),
    _token("mailersend token", "mlsn.", r"mlsn\.[0-9a-f]{64}"),
    _token("honeycomb key", "hca", r"hca[a-z]k_[a-z0-9]{58,60}"),
    _token("launchdarkly key", "sdk- mob-", r"(?:sdk|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _token("prefect key", "pnu_ pnb_", r"pn[ub]_[a-z0-9]{36}"),
    _token("sourcegraph token", "sgp_", r"sgp_(?:[0-9a-f]{16}_)?[0-9a-f]{40}"),
    _token("readme key", "rdme_", r"rdme_[a-z0-9]{70}"),
    _token("razorpay key", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{14}"),
    _token("slack token", "xoxe.", r"xoxe\.xox[bp]-\d-[A-Za-z0-9]{140,180}"),
    _token("azure secret", "8Q~ 7Q~", r"[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}"),
    _token("google key", "AIza", r"AIza[\w-]{35}"),
    _token("google token", "ya29.", r"ya29\.[\w-]{20,1000}"),
    _token("google secret", "GOCSPX-", r"GOCSPX-[\w-]{28}"),
    _token("stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _token("webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,128}"),
    _format("telegram bot token", ":", r"(?<![\w-])(?:bot)?(\d{8,10}:[\w-]{35})(?![\w-])"),
    _token("discord token", ".", r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,45}"),
    _format("discord hook", "/api/webhooks/", r"/api/webhooks/\d{10,20}/([\w-]{60,100})"),
    _token("nostr key", "nsec1", r"nsec1[02-9ac-hj-np-z]{58}"),
    _token("nostr key", "ncryptsec1", r"ncryptsec1[02-9ac-hj-np-z]{50,200}"),
    _token("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _token("npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _token("pypi token", "pypi-AgE", r"pypi-AgE[\w-]{50,1000}"),
    _token("docker token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{27,64}"),
    _token("huggingface token", "hf_", r"hf_[A-Za-z0-9]{34,40}"),
    _token("groq key", "gsk_", r"gsk_[A-Za-z0-9]{40,60}"),
    _token("xai key", "xai-", r"xai-[A-Za-z0-9]{70,90}"),
    _token("perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{40,60}"),
    _token("replicate token", "r8_", r"r8_[A-Za-z0-9]{37,40}"),
    _token("sendgrid key", "SG.", r"SG\.[\w-]{22}\.[\w-]{43}"),
    _token("twilio key", "SK", r"SK[0-9a-f]{32}"),
    _token("mailgun key", "key-", r"key-[0-9a-f]{32}"),
    _token("digitalocean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _token("shopify token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _token("square token", "sq0", r"sq0(?:atp|csp)-[\w-]{22,43}"),
    _token("linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,48}"),
    _token("notion token", "ntn_", r"ntn_[A-Za-z0-9]{40,60}"),
    _token("figma token", "figd_", r"figd_[\w-]{40,50}"),
    _token("atlassian token", "ATATT3 ATCTT3", r"AT[AC]TT3[\w=-]{60,300}"),
    _token("bitbucket token", "ATBB", r"ATBB[A-Za-z0-9]{28,40}"),
    _token("vault token", "hvs. hvb.", r"hv[sb]\.[\w-]{24,200}"),
    _token("databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _token("postman key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _token("new relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _token("sentry token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,300}"),
    _token("grafana token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{32,200}"),
    _token("heroku key", "HRKU-", r"HRKU-[\w-]{36,80}"),
    _token("supabase token", "sbp_", r"sbp_[0-9a-f]{40}"),
    _token("planetscale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w-]{32,64}"),
    _token("facebook token", "EAA", r"EAA[A-Za-z0-9]{90,300}"),
    _token("json web token", "eyJ", r"eyJ[\w-]{8,4000}\.eyJ[\w-]{8,16000}(?:\.[\w-]{0,2000})?"),
    _format("password", "://", r"://[^\s:/@\"'<>]{0,100}:([^\s/@\"'<>]{1,200})@[\w.\[-]"),
)
"""The table: what is looked for, in order."""

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PUTTY = re.compile(r"Private-Lines: \d{1,4}\s")
_LINES = re.compile(r"[A-Za-z0-9+/=\\\s:,.-]{0,20000}")
_PLACEHOLDER = re.compile(r"[*x.•…]+|<[^>]*>|\$?\{[^}]*\}|\[[^\]]*\]|%s|pass(?:word|wd)?|secret|token", re.IGNORECASE)


_REACH = 24_000
"""The most characters that a token of the table has: a JSON web token."""


def token_marks(text: str) -> Iterator[SecretMark]:
    """Every token that its format gives away."""
    for kind, hints, pattern in FORMATS:
        if any(hint in text for hint in hints):
            for found in matches(pattern, text, _REACH):
                start, end = found.span(found.lastindex or 0)
                if not _PLACEHOLDER.fullmatch(text, start, end):
                    yield SecretMark(start, end, kind)
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        yield from _private_keys(text)


def _private_keys(text: str) -> Iterator[SecretMark]:
    """Private keys, from the line that begins them to the one that ends them, or as far as one may reach."""
    done, ends = 0, True
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        end = text.find("-----END", begin.end()) if ends else -1
        ends = end >= 0
        tail = text.find("-----", end + 8, end + 80) if ends else -1
        reach = _LINES.match(text, begin.end())
        assert reach is not None, "the pattern matches nothing too"
        done = tail + 5 if tail >= 0 and end <= reach.end() + 200 else reach.end()
        yield SecretMark(begin.start(), done, "private key")
    for begin in _PUTTY.finditer(text):
        reach = _LINES.match(text, begin.end())
        yield SecretMark(begin.start(), reach.end() if reach else begin.end(), "private key")

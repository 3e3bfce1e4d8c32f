"""Shapes of secrets: the documented prefixes and lengths of tokens, and the carriers that they are written in.

Every third format is held out: the generic rules were fitted to the others alone. When they were written, recall of the
held-out ones was .995 in carriers and .818 bare; a few got rules of their own afterwards. No secret stands here; each
is made from a seed.
"""

from __future__ import annotations

import base64
import string
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

Make = Callable[[Random], str]

_LOWER, _DIGITS, _HEX = string.ascii_lowercase, string.digits, "0123456789abcdef"
_ALNUM = string.ascii_letters + _DIGITS
_UPPER = string.ascii_uppercase + _DIGITS
_LOWNUM = _LOWER + _DIGITS
_URL = _ALNUM + "-_"
_BASE64 = _ALNUM + "+/"
_CLASSES = {
    "a": _ALNUM,
    "h": _HEX,
    "u": _UPPER,
    "l": _LOWNUM,
    "d": _DIGITS,
    "w": _URL,
    "b": _BASE64,
    "s": string.ascii_letters,
    "x": "ABCDEF0123456789",
    "t": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "q": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
}


class Case(NamedTuple):
    """A text with one secret in it, at `start:end`."""

    format: str
    carrier: str
    text: str
    start: int
    end: int


def made(shape: str, chance: Random) -> str:
    """A token of a shape: literal text, and `{a36}` for 36 letters of class `a`; the last is alphanumeric."""
    parts = []
    for piece in shape.split("{"):
        field, closing, rest = piece.partition("}")
        if not closing:
            parts.append(piece)
            continue
        letters = _CLASSES[field[0]]
        body = "".join(chance.choices(letters, k=int(field[1:])))
        if not any(one.isdigit() for one in body) and len(body) > 8 and field[0] != "s":
            body = f"{body[:4]}7{body[5:]}"
        parts += [body[:-1] + (body[-1] if body[-1].isalnum() else "k"), rest]
    return "".join(parts)


PREFIXED: dict[str, str] = {
    "github classic": "ghp_{a36}",
    "github oauth": "gho_{a36}",
    "github user": "ghu_{a36}",
    "github server": "ghs_{a36}",
    "github refresh": "ghr_{a36}",
    "github fine": "github_pat_{a22}_{a59}",
    "gitlab personal": "glpat-{w20}",
    "gitlab routable": "glpat-{w27}.{l2}.{l9}",
    "gitlab pipeline": "glptt-{h40}",
    "gitlab deploy": "gldt-{w20}",
    "gitlab runner": "glrt-{w20}",
    "gitlab feed": "glft-{w20}",
    "gitlab mail": "glimt-{w25}",
    "gitlab agent": "glagent-{w50}",
    "gitlab oauth": "gloas-{h64}",
    "gitlab scim": "glsoat-{w20}",
    "gitlab flags": "glffct-{w20}",
    "gitlab job": "glcbt-{l5}_{w20}",
    "gitlab registration": "GR1348941{w20}",
    "gitlab session": "_gitlab_session={h32}",
    "slack bot": "xoxb-{d12}-{d13}-{a24}",
    "slack user": "xoxp-{d12}-{d12}-{d12}-{h32}",
    "slack app": "xapp-1-A{u10}-{d13}-{h64}",
    "slack config": "xoxe.xoxp-1-{u166}",
    "openai project": "sk-proj-{w58}T3BlbkFJ{w58}",
    "openai old": "sk-{a20}T3BlbkFJ{a20}",
    "openai service": "sk-svcacct-{w58}T3BlbkFJ{w58}",
    "anthropic": "sk-ant-api03-{w93}AA",
    "anthropic admin": "sk-ant-admin01-{w93}AA",
    "aws id": "AKIA{t16}",
    "aws session id": "ASIA{t16}",
    "aws bedrock": "ABSK{b109}=",
    "aws bedrock short": "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{b60}",
    "google api": "AIza{w35}",
    "google oauth": "ya29.{w100}",
    "google secret": "GOCSPX-{w28}",
    "gcp refresh": "1//0{w60}",
    "azure ad secret": "{a3}8Q~{w34}",
    "azure devops": "{a76}AZDO{a4}",
    "azure storage": "AccountKey={b86}==",
    "stripe live": "sk_live_{a24}",
    "stripe restricted": "rk_live_{a99}",
    "stripe test": "sk_test_{a24}",
    "stripe hook": "whsec_{a32}",
    "square access": "EAAA{w60}",
    "square old": "sq0atp-{w22}",
    "square secret": "sq0csp-{w43}",
    "shopify": "shpat_{h32}",
    "shopify shared": "shpss_{h32}",
    "telegram": "{d10}:AA{w33}",
    "discord bot": "MTA{a23}.G{a5}.{w38}",
    "npm": "npm_{a36}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{w160}",
    "rubygems": "rubygems_{h48}",
    "clojars": "CLOJARS_{l60}",
    "cargo": "cio{a32}",
    "nuget": "oy2{l43}",
    "docker personal": "dckr_pat_{w27}",
    "docker org": "dckr_oat_{w32}",
    "huggingface": "hf_{s34}",
    "huggingface org": "api_org_{s34}",
    "groq": "gsk_{a52}",
    "xai": "xai-{a80}",
    "perplexity": "pplx-{a48}",
    "replicate": "r8_{a37}",
    "openrouter": "sk-or-v1-{h64}",
    "langsmith": "lsv2_pt_{h32}_{h10}",
    "langsmith service": "lsv2_sk_{h32}_{h10}",
    "fireworks": "fw_{a24}",
    "cerebras": "csk-{l48}",
    "nvidia": "nvapi-{w64}",
    "sendgrid": "SG.{w22}.{w43}",
    "sendinblue": "xkeysib-{h64}-{a16}",
    "mailgun": "key-{h32}",
    "mailchimp": "{h32}-us12",
    "mailersend": "mlsn.{h64}",
    "resend": "re_{a8}_{a24}",
    "twilio key": "SK{h32}",
    "digitalocean": "dop_v1_{h64}",
    "digitalocean oauth": "doo_v1_{h64}",
    "digitalocean refresh": "dor_v1_{h64}",
    "heroku": "HRKU-AA{w58}",
    "fly": "fm2_{b120}",
    "fly old": "fo1_{w43}",
    "netlify": "nfp_{a36}",
    "render": "rnd_{a28}",
    "vercel": "vcp_{a24}",
    "supabase": "sbp_{h40}",
    "supabase secret": "sb_secret_{w31}",
    "planetscale password": "pscale_pw_{w43}",
    "planetscale token": "pscale_tkn_{w43}",
    "databricks": "dapi{h32}-2",
    "doppler personal": "dp.pt.{a43}",
    "doppler service": "dp.st.dev.{a43}",
    "dynatrace": "dt0c01.{u24}.{u64}",
    "datadog app": "ddapp_{a34}",
    "new relic": "NRAK-{u27}",
    "new relic insert": "NRII-{w32}",
    "new relic browser": "NRJS-{h19}",
    "grafana service": "glsa_{a32}_{h8}",
    "grafana cloud": "glc_{b80}",
    "sentry org": "sntrys_eyJ{a120}",
    "sentry user": "sntryu_{h64}",
    "honeycomb": "hcaik_01{l58}",
    "pagerduty": "pdus+{w20}",
    "launchdarkly": "sdk-{h8}-{h4}-{h4}-{h4}-{h12}",
    "statsig": "secret-{a40}",
    "posthog": "phx_{a43}",
    "linear": "lin_api_{a40}",
    "notion": "ntn_{d11}{a35}",
    "notion old": "secret_{a43}",
    "figma": "figd_{w40}",
    "airtable": "pat{a14}.{h64}",
    "asana": "1/{d16}:{h32}",
    "atlassian": "ATATT3xFf{w170}={x8}",
    "bitbucket": "ATBB{a28}{x8}",
    "contentful": "CFPAT-{w43}",
    "typeform": "tfp_{w59}",
    "dropbox": "sl.{w135}",
    "1password service": "ops_eyJ{b250}",
    "1password key": "A3-{u6}-{u11}-{u5}-{u5}-{u5}",
    "vault service": "hvs.{w90}",
    "vault batch": "hvb.{w140}",
    "terraform": "{a14}.atlasv1.{w65}",
    "pulumi": "pul-{h40}",
    "infracost": "ico-{a32}",
    "snyk oauth": "snyk_uat.{l8}.{w80}",
    "sonar user": "squ_{h40}",
    "sonar project": "sqp_{h40}",
    "codecov": "CODECOV_TOKEN={h32}",
    "postman": "PMAK-{h24}-{h34}",
    "readme": "rdme_{l70}",
    "frameio": "fio-u-{w64}",
    "shippo": "shippo_live_{h40}",
    "easypost live": "EZAK{a54}",
    "easypost test": "EZTK{a54}",
    "duffel": "duffel_live_{w43}",
    "flutterwave": "FLWSECK_TEST-{h32}-X",
    "flutterwave encryption": "FLWSECK-{h32}-X",
    "paystack": "sk_live_{h40}",
    "razorpay": "rzp_live_{a14}",
    "plaid": "access-sandbox-{h8}-{h4}-{h4}-{h4}-{h12}",
    "adyen": "AQE{b120}",
    "dnkey": "dnkey-{w50}-{w26}",
    "prefect": "pnu_{l36}",
    "scalingo": "tk-us-{w48}",
    "clickhouse": "4b1d{a38}",
    "alibaba": "LTAI{a20}",
    "tencent": "AKID{a32}",
    "yandex api": "AQVN{w36}",
    "yandex iam": "t1.{w60}.{w86}",
    "cloudflare origin": "v1.0-{h24}-{h146}",
    "cloudflare user": "cfut_{a40}",
    "defined": "dnkey-{l26}-{l52}",
    "artifactory": "AKCp{a69}",
    "artifactory reference": "cmVmdGtu{a56}",
    "facebook": "EAA{a120}",
    "twitter bearer": "AAAAAAAAAAAAAAAAAAAAA{a80}",
    "nostr": "nsec1{q58}",
    "age": "AGE-SECRET-KEY-1{u58}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJ{a60}.{w43}",
    "private cloud": "sgp_{h16}_{h40}",
    "tailscale": "tskey-auth-{a12}-{a32}",
    "ngrok": "2{a26}_{a21}",
    "buildkite": "bkua_{h40}",
    "circleci": "CCIPAT_{a22}_{h40}",
    "harness": "pat.{w22}.{h24}.{a20}",
    "kubernetes": "eyJhbGciOiJSUzI1NiIsImtpZCI6Ij{a30}.eyJ{a200}.{w100}",
}
"""Tokens with a marked beginning, as their makers document them."""

PLAIN: dict[str, str] = {
    "hex 32": "{h32}",
    "hex 40": "{h40}",
    "hex 64": "{h64}",
    "letters 24": "{a24}",
    "letters 32": "{a32}",
    "letters 40": "{a40}",
    "lower 32": "{l32}",
    "base64 40": "{b40}",
    "base64 88": "{b86}==",
    "url-safe 43": "{w43}",
}
"""Tokens that nothing but the words around them gives away."""

CARRIERS: dict[str, str] = {
    "env": "SERVICE_API_TOKEN={}",
    "export": 'export SERVICE_SECRET="{}"',
    "dotenv": "db.password={}",
    "json": '{{"api_key": "{}", "id": 7}}',
    "yaml": "service:\n  auth_token: {}\n  retries: 3",
    "k8s": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n  backend: {b64}\n",
    "k8s string": "kind: Secret\nstringData:\n  backend: {}\n",
    "xml": "<config>\n  <apiKey>\n    {}\n  </apiKey>\n</config>",
    "xml one line": "<password>{}</password>",
    "nuget": '<feed>\n<add key="ClearTextPassword" value="{}" />\n</feed>',
    "curl user": "curl -u admin:{} https://api.example.org/v1/items",
    "curl header": "curl -H 'Authorization: Bearer {}' https://api.example.org/v1",
    "url userinfo": "https://deploy:{}@git.example.org/acme/api.git",
    "url query": "https://api.example.org/v1/items?page=2&access_token={}&sort=asc",
    "header": "X-Api-Key: {}",
    "token X": "the token {} should work now",
    "my token is": "my token is {} ok?",
    "password is": "the password is {}, keep it safe",
    "secret colon": "secret: {}",
    "python": 'client = Client(token="{}", retries=3)',
    "javascript": "const apiKey = '{}';",
    "log": '2026-11-20T18:02:11Z INFO login ok api_key="{}" took 12ms',
    "multi-line": "here are the credentials:\nuser: bob\npassword: {}\nhost: db1",
    "quoted": 'he wrote "the key is {}" yesterday',
}
"""Texts that give a secret away; `{}` is the secret, `{b64}` its base64."""

BARE: dict[str, str] = {
    "bare": "{}",
    "bare sentence": "here is it: {}",
    "bare end": "can you try {} please",
    "bare brackets": "({})",
    "bare quotes": "use `{}` instead",
}
"""Texts that give nothing away: the secret has to say by its shape what it is."""


def _filled(carrier: str, secret: str) -> tuple[str, int, int]:
    if "{b64}" in carrier:
        secret = base64.b64encode(secret.encode()).decode()
        carrier = carrier.replace("{b64}", "{}")
    before, _, after = carrier.replace("{{", "\x01").replace("}}", "\x02").partition("{}")
    before, after = (part.replace("\x01", "{").replace("\x02", "}") for part in (before, after))
    return before + secret + after, len(before), len(before) + len(secret)


def cases(formats: dict[str, str], carriers: dict[str, str], seed: int = 1) -> Iterator[Case]:
    """Each format in each carrier."""
    for name, shape in formats.items():
        for carrier, pattern in carriers.items():
            secret = made(shape, Random(f"{seed} {name} {carrier}"))
            yield Case(name, carrier, *_filled(pattern, secret))


def held_out(formats: dict[str, str]) -> dict[str, str]:
    """Every third format: the generic rules were not fitted to these."""
    return {name: formats[name] for place, name in enumerate(formats) if place % 3 == 2}

"""Words: what secrets are called in several languages, and what follows such a word without being one."""

from __future__ import annotations

import re

_STRONG = (
    r"pass(?:word|wort|wd|phrase|code|word_hash)?s?|pwd|pw|kennw(?:ort|oerter)|zugangscode"
    r"|contrase(?:ñ|n)a|clave|mot de passe|mdp|senha|palavra-passe|password d[ie] \w{1,20}|parola(?: d'ordine)?"
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

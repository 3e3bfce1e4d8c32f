"""The error tree: what happened, whether data is safe, and what to run next.

KeepsaidError
├── ConfigError             a setting is wrong or missing
├── InputError              what came in cannot be taken
│   ├── UnknownChannel
│   ├── TooLarge
│   ├── KeyConflict         the same external id came with other content
│   ├── Forged              a webhook without the right signature
│   └── HookClosed          a webhook that nobody has opened
├── HomeError               the home directory cannot be used
│   ├── HomeBusy            another process is the runtime of this home
│   ├── NotRunning          no runtime answers
│   └── Stopping            the runtime is going down
├── StoreError              the database
│   ├── StoreFull           no space left
│   │   └── DiskReserve     what is left is kept for the answers under way
│   ├── StoreBroken         an I/O error; the process must be restarted
│   │   ├── StoreGone       a file in use was deleted, moved or replaced
│   │   └── ProcessFenced   the process was taken for dead, and others took over its work
│   ├── StoreLocked         another program holds the database
│   ├── StoreUnreachable    the database server cannot be reached
│   ├── ForeignStore        the file is not ours
│   ├── StoreUnpaired       one of the two stores is missing, empty, exchanged or of another home
│   ├── LogLost             the write-ahead log is gone, and commits with it
│   └── SchemaTooNew        a newer keepsaid wrote it
├── NotAllowed              the caller's key does not open this
├── MessageDamaged          a stored message is not what was stored
├── LeaseLost               another owner has the batch now
├── ToolError               a tool refused; the model gets it
├── ExtensionError          an extension cannot be let in, or asked for what is not its
├── ChannelError            the provider of a channel refuses the account, or cannot be reached
├── FileRefused             a file is not fetched from its channel, and trying again cannot help
│   └── FileUnavailable     it cannot be fetched now; trying again can help
├── TaskImpossible          a task asks for a skill or a tool that is not there
├── EmbedderError           no vectors can be made; search goes on by words
└── ModelError              a model call failed
    ├── ModelAuth           the key was refused
    ├── ModelQuota          no credit left
    ├── ModelRejected       the provider will not take this request
    │   └── ModelTooLong    the prompt is longer than the model's window
    ├── ModelMalformed      the answer cannot be read
    └── ModelUnavailable    an outage; trying again can help
        ├── ModelTimeout
        └── ModelUnreachable
"""

from __future__ import annotations


def installation(extra: str = "", folder: str = "./keepsaid") -> str:
    """Return the command that installs keepsaid, or a part of it. No index has it: `./keepsaid` is a checkout."""
    target = f"'{folder}[{extra}]'" if extra else folder
    return f"pip install {target}   (./keepsaid is the folder of your checkout)"


class KeepsaidError(Exception):
    """Something went wrong. `code` is stable; `safe` says what is known about the data; `hint` what to run."""

    code = "KS-000"
    safe = "Nothing was lost."
    hint = "keepsaid doctor"

    def __init__(self, what: str, *, safe: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        if safe is not None:
            self.safe = safe
        if hint is not None:
            self.hint = hint

    def as_json(self) -> dict[str, str]:
        """The error for programs."""
        return {"code": self.code, "what": self.what, "safe": self.safe, "hint": self.hint}


class ConfigError(KeepsaidError):
    """A setting is wrong or missing."""

    code = "KS-CFG"
    safe = "No data was touched."
    hint = "keepsaid config edit"


class InputError(KeepsaidError):
    """What came in cannot be taken; nothing of it was stored."""

    code = "KS-INP"
    safe = "Nothing was stored; what was stored before is untouched."
    hint = "correct it, and try again"


class UnknownChannel(InputError):
    """The named channel does not exist."""

    code = "KS-INP-CHANNEL"
    hint = "keepsaid config show channels"


class TooLarge(InputError):
    """It is larger than the limit."""

    code = "KS-INP-SIZE"


class KeyConflict(InputError):
    """The same external id was used before with other content."""

    first_id: int = 0  # the message of then; 0 where it is not known
    code = "KS-INP-CONFLICT"
    safe = "The first message is kept as it was; the second was not stored."
    hint = "send it again under a new id"


class NotAllowed(KeepsaidError):
    """The caller's key does not open this."""

    code = "KS-SCOPE"
    safe = "Nothing was changed."
    hint = "keepsaid config show keys"


class Forged(InputError):
    """A webhook whose signature is missing or wrong."""

    code = "KS-INP-FORGED"
    hint = "compare the secret at the sender with channels.github.secret"


class HookClosed(InputError):
    """A webhook that nobody has opened: no secret is configured."""

    code = "KS-INP-CLOSED"
    hint = "set channels.github.secret, then start again"


class HomeError(KeepsaidError):
    """The home directory cannot be used."""

    code = "KS-HOME"
    hint = "keepsaid config path"


class HomeBusy(HomeError):
    """Another process is the runtime of this home."""

    code = "KS-HOME-BUSY"
    safe = "The other process keeps working; nothing was changed."
    hint = "keepsaid status"


class NotRunning(HomeError):
    """No runtime answers on this home."""

    code = "KS-HOME-IDLE"
    safe = "What was stored is on disk."
    hint = "keepsaid serve"


class Stopping(HomeError):
    """The runtime is going down; what takes long is broken off between two steps."""

    code = "KS-HOME-STOPPING"
    safe = "What was done of it is on disk, in whole steps."
    hint = "keepsaid serve, then ask again"


class StoreError(KeepsaidError):
    """The database refused; the commit was not kept."""

    code = "KS-DB"
    safe = "What was acknowledged before is on disk; this change was not stored."


class StoreFull(StoreError):
    """No space left on the device."""

    code = "KS-DB-FULL"
    hint = "free some space; a running instance then continues by itself"


class DiskReserve(StoreFull):
    """Less disk is free than `buffer.min_free_disk_mb`: answers go on, new messages are not taken in."""

    code = "KS-DB-RESERVE"
    safe = "This message was not stored; what was stored before is on disk and is answered."


class StoreBroken(StoreError):
    """An I/O error; nothing is acknowledged any more until a restart."""

    code = "KS-DB-IO"
    hint = "check the disk, then: keepsaid serve"


class StoreUnreachable(StoreError):
    """The database server cannot be reached."""

    code = "KS-DB-AWAY"
    safe = "What was acknowledged is in the database; nothing is acknowledged until it answers."
    hint = "start the server; a running instance then continues by itself"


class StoreGone(StoreBroken):
    """A file or directory in use was deleted, moved or replaced; nothing is acknowledged any more."""

    code = "KS-DB-GONE"
    safe = (
        "Nothing more is acknowledged. What was acknowledged before is in the files that were moved away; "
        "what was deleted is only in backups."
    )
    hint = "move the files back, or keepsaid data restore BACKUP --to DIR; then keepsaid serve"


class ProcessFenced(StoreBroken):
    """The process did not say in time that it lives; others took over its work, and it may write nothing more."""

    code = "KS-DB-FENCED"
    safe = "What was acknowledged is stored, and other processes answer it."
    hint = "start it again: keepsaid serve"


class StoreLocked(StoreError):
    """Another program holds the database."""

    code = "KS-DB-LOCKED"
    hint = "close the other program, then try again"


class MessageDamaged(KeepsaidError):
    """What is on disk of a message does not match its hash; it waits for a person, and nothing of it is shown."""

    code = "KS-DB-DAMAGED"
    safe = "Its row is kept as it is; nothing altered was answered or remembered."
    hint = "keepsaid doctor --deep"


class ForeignStore(StoreError):
    """The file is not a keepsaid database; it was not touched."""

    code = "KS-DB-FOREIGN"
    safe = "The file was not touched."
    hint = "keepsaid config path"


_OR_ELSE = "keepsaid data restore BACKUP --to DIR; to go on with what is left: keepsaid data accept-loss"


class StoreUnpaired(StoreError):
    """One of the two stores is missing, empty, exchanged or from another home; nothing was changed."""

    code = "KS-DB-PAIR"
    safe = "Nothing was changed; what the files hold is as it was."
    hint = f"put the right file back, or {_OR_ELSE}"


class LogLost(StoreError):
    """The write-ahead log of a store is gone, and commits with it that the store does not hold; nothing was changed."""

    code = "KS-DB-LOG"
    safe = "Commits since the last checkpoint are only in that log; what is older is whole. Nothing was changed."
    hint = f"put the log back, or {_OR_ELSE}"


class SchemaTooNew(StoreError):
    """A newer keepsaid wrote this database; it was not touched."""

    code = "KS-DB-NEWER"
    safe = "The file was not touched."
    hint = f"git pull in your checkout, then: {installation()}"


class LeaseLost(KeepsaidError):
    """Another owner has the batch now; its work goes on there."""

    code = "KS-LEASE"
    safe = "The batch goes on under its new owner; nothing of this attempt was kept."
    hint = "keepsaid status"


class ToolError(KeepsaidError):
    """A tool refused; the text is for the model."""

    code = "KS-TOOL"


class ExtensionError(KeepsaidError):
    """An extension cannot be let in, or asked for what is not its; the others go on."""

    code = "KS-EXT"
    safe = "Everything else goes on without it."
    hint = "keepsaid ext ls"


class ChannelError(KeepsaidError):
    """The provider of a channel refuses the account, or cannot be reached."""

    code = "KS-CHN"
    safe = "Nothing was changed."
    hint = "keepsaid channel ls"


class FileRefused(KeepsaidError):
    """A file is not fetched from its channel: it is gone, too large, or not there for us; trying again cannot help."""

    code = "KS-FILE"
    safe = "The message it came with is kept."
    hint = "keepsaid inbox ls"


class FileUnavailable(FileRefused):
    """A file cannot be fetched now; trying again can help, after `retry_after_s` seconds where the provider says so."""

    code = "KS-FILE-AWAY"

    def __init__(self, what: str, retry_after_s: float | None = None) -> None:
        super().__init__(what)
        self.retry_after_s = retry_after_s


class TaskImpossible(KeepsaidError):
    """A task asks for a skill, a tool or a task that is not there; trying again cannot help."""

    code = "KS-TASK"
    safe = "The task and its messages are kept."
    hint = "keepsaid inbox tasks ls"


class EmbedderError(KeepsaidError):
    """No vectors can be made; what is said is kept and found by its words."""

    code = "KS-EMB"
    safe = "What was said is kept, and found by its words."
    hint = "keepsaid models pull"


class ModelError(KeepsaidError):
    """A model call failed."""

    code = "KS-MDL"
    safe = "Your message is stored and stays in the inbox."
    hint = "keepsaid doctor"


class ModelAuth(ModelError):
    """The provider refused the key."""

    code = "KS-MDL-AUTH"
    hint = "keepsaid init"


class ModelQuota(ModelError):
    """The account has no credit left."""

    code = "KS-MDL-QUOTA"


class ModelRejected(ModelError):
    """The provider will not take this request: no such model, or a prompt it cannot hold."""

    code = "KS-MDL-REJECTED"
    hint = "keepsaid config show models"


class ModelTooLong(ModelRejected):
    """The prompt is longer than the model's window."""

    code = "KS-MDL-LONG"
    hint = "keepsaid config show compaction"


class ModelMalformed(ModelError):
    """The answer could not be read."""

    code = "KS-MDL-MALFORMED"


class ModelUnavailable(ModelError):
    """The provider has an outage or asks to wait; trying again can help."""

    code = "KS-MDL-OUTAGE"

    def __init__(self, what: str, *, retry_after_s: float | None = None, hint: str | None = None) -> None:
        super().__init__(what, hint=hint)
        self.retry_after_s = retry_after_s


class ModelTimeout(ModelUnavailable):
    """The model did not answer in time."""

    code = "KS-MDL-TIMEOUT"


class ModelUnreachable(ModelUnavailable):
    """No connection to the provider."""

    code = "KS-MDL-NETWORK"
    hint = "see that its server runs, and where it is looked for: keepsaid config show models"

"""Settings of lanes: how long their sessions last, and how long a question waits for its answer."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from pydantic import Field, field_validator

from keepsaid.config.section import Section
from keepsaid.domain.session import Terms as SessionTerms
from keepsaid.domain.slot import OnMismatch
from keepsaid.domain.slot import Terms as SlotTerms


class SessionsConfig(Section):
    """How long a lane may be quiet."""

    inactive_s: float = Field(1_800.0, gt=0, le=31_536_000)
    """Seconds after the last turn of a lane after which its next message starts a new session."""
    sleep_s: float = Field(60.0, gt=0, le=31_536_000)
    """Seconds after which a quiet lane's session sleeps; what was said is then marked for collection."""
    end_s: float = Field(3_600.0, gt=0, le=31_536_000)
    """Seconds after which it ends."""

    def terms(self) -> SessionTerms:
        """The terms as the runtime reads them."""
        return SessionTerms(int(self.inactive_s * 1000), int(self.sleep_s * 1000), int(self.end_s * 1000))


class SlotsConfig(Section):
    """Questions that wait for an answer of a certain type."""

    expiry_s: float = Field(600.0, gt=0, le=31_536_000)
    """Seconds a question waits for its answer."""
    on_mismatch: OnMismatch = OnMismatch.CLEAR
    """What becomes of a question when its person says something else: clear ends it, keep lets it wait on."""
    timezone: str = "UTC"
    """Where `tomorrow at 5` is meant, such as Europe/Berlin."""

    @field_validator("timezone")
    @classmethod
    def known_zone(cls, timezone: str) -> str:
        """Refuse a place whose time nobody knows."""
        try:
            ZoneInfo(timezone)
        except (ValueError, OSError, KeyError) as error:
            raise ValueError(f"there is no time zone {timezone!r}; names are written Europe/Berlin") from error
        return timezone

    def terms(self) -> SlotTerms:
        """The terms as the runtime reads them."""
        return SlotTerms(int(self.expiry_s * 1000), self.on_mismatch, ZoneInfo(self.timezone))

"""The budget of a prompt, as a config sets it."""

from __future__ import annotations

from keepsaid.config import Config
from keepsaid.pipeline.prompt.assemble import Budget


def budget_of(config: Config) -> Budget:
    """What the layers of a prompt may cost, and their order."""
    context = config.context
    return Budget(
        recent_records=context.recent_messages,
        recent_tokens=context.recent_tokens,
        identity_chars=context.identity_chars,
        skills_chars=context.skills_chars,
        bulletin_chars=config.bulletin.chars,
        summary_chars=context.summary_chars,
        session_summary_chars=context.session_summary_chars,
        extensions_chars=context.extensions_chars,
        quoted_chars=context.quoted_chars,
        order=context.order,
    )

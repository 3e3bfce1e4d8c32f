"""Settings of the HTTP server: its address, its token, and how much callers may take of it."""

from __future__ import annotations

from pydantic import Field, SecretStr

from keepsaid.config.section import Section


class ServerConfig(Section):
    """The HTTP server."""

    host: str = "127.0.0.1"
    """Address to listen on; any but loopback needs a token."""
    port: int = Field(7448, ge=0, le=65_535)
    """Port; 0 takes a free one."""
    token: SecretStr | None = None
    """Bearer token for everything under /v1."""
    connections_max: int = Field(512, ge=8, le=100_000)
    """Connections open at the same time, streams included; fewer where the process may open few files. At the limit
    the connection that has waited longest for a request is closed for a new one, or the new one gets 503."""
    connections_per_address_max: int = Field(128, ge=1, le=100_000)
    """Of these, from one address other than loopback."""
    header_timeout_s: float = Field(10.0, gt=0, le=3_600)
    """Seconds a new connection has to send a whole request head, and a started head to end."""
    idle_timeout_s: float = Field(15.0, gt=0, le=3_600)
    """Seconds a connection stays open after an answer without a next request."""
    body_timeout_s: float = Field(20.0, gt=0, le=3_600)
    """Seconds in which a body must end or come as far as `body_rate_min` asks, and in which a client must read more of
    its answer; then the connection is closed."""
    body_rate_min: int = Field(32_768, ge=1)
    """Bytes per second that a body needs on average over each `body_timeout_s`; a slower one is closed with 408."""
    bodies_bytes_max: int = Field(134_217_728, ge=1_048_576)
    """Bytes of request bodies over 64 kB in memory at the same time; a request that needs more gets 503. One body is
    always taken."""

"""Adapters for telemetry (short: a package): Prometheus text and OpenTelemetry spans."""

"""HTTP: intake, webhooks and the operator's routes, on Starlette."""

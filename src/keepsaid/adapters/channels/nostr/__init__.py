"""Nostr: private direct messages (NIP-17) over relays."""

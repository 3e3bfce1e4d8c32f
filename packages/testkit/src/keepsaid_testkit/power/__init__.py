"""Power cuts: a disk that forgets what was not synced, a load on the store, and a judge of what is left."""

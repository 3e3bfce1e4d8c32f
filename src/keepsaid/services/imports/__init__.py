"""Reads the exports and homes of other programs: one reader per product, all with the protocol of `drafts.Reader`."""

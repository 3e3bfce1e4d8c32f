"""The needs: one Protocol a file, in the verbs of the domain."""

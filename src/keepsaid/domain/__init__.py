"""The words: frozen values and pure rules, standard library only."""

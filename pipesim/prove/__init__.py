"""The verdict for every schedule: a certificate from one run, a search, counterexamples, corrections."""

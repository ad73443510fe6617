"""What is drawn of a run or a counterexample, without any drawing: every exporter and picture reads this."""

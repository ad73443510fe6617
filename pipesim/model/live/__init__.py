"""The machine in place: the same rules on a state that is changed instead of copied, for engines that never go back."""

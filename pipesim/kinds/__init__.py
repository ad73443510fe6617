"""What ``pipesim explain KIND`` knows: every kind of finding and of warning, and a smallest protocol that has it."""

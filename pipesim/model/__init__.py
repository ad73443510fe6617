"""The description language, the flat program and the machine that runs it: pure, standard library only."""

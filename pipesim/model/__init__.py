"""The flat program and the machine that runs it: what every operation does to barriers, memory and agents. Pure."""

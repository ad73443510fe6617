"""The timed engine: SimPy decides who moves next, by simulated time; and bounds on the period without a simulation."""

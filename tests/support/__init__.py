"""What tests and tools share: generators of programs and traces, reference models, and the examples of golden files."""

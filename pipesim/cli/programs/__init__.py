"""Programs and kernels with a GPU: what they launch, record, and where they hang."""

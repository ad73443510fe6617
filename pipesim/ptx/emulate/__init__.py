"""All warps of one cluster, run on the values of one launch: what each does to barriers and memory, in order."""

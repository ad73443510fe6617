"""Whether what CTAs do to global memory can meet: evaluated over all CTAs, by where each access goes."""

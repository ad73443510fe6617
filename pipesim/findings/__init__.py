"""Every kind of finding and warning, one value each: what it is, its wording, its correction, its smallest example."""

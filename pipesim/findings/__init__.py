"""Every kind of finding and warning, one file each: what it is, its wording, its correction, its smallest example."""

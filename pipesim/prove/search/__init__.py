"""The search over all schedules: breadth first, reduced by persistent sets, with the footprints that these need."""

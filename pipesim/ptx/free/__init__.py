"""Values that a launch leaves free, such as the number of the CTA, and the conditions under which one run holds."""

"""The recorder: the device header and its tables, and the host side that decodes what it wrote."""

"""The second front end: a kernel's PTX and the values of one launch become a flat program.

``text`` reads PTX into plain data, ``flow`` finds its control flow and the slice that synchronises, and ``launch``
reads the values of a launch from a file.
"""

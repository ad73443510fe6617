"""How large what pipesim reads may be: the bounds of every input, checked before the work that an input asks for.

They lie far above what a kernel needs (the largest recording that comes with pipesim has 25,664 rows), and low enough
that reading a file of any kind takes less than a gigabyte. What is not read from a file, such as a protocol that the
user calls with large parameters, has the bound MAX_AGENT_OPERATIONS alone.
"""

# files, in bytes

MAX_TRACE_BYTES = 1 << 28  #: recordings of MAX_ROWS rows have 80 MB, and the metadata MAX_JSON_BYTES
MAX_JSON_BYTES = 1 << 26  #: of a flat program, or of a trace's metadata
MAX_SMALL_BYTES = 1 << 20  #: of a latency profile, of latency bounds, of a kernel's table; the largest has 20 KB
MAX_SOURCE_BYTES = 1 << 24  #: of a CUDA source with its own headers, or a Python file whose functions a shell completes
MAX_PTX_BYTES = 1 << 26  #: of a PTX file; the largest of a public kernel has 2 MB
MAX_LAUNCH_BYTES = 1 << 24  #: of a launch file, with the arrays in it
MAX_CUBIN_BYTES = 1 << 28  #: of one entry of the compile cache
MAX_IMAGE_BYTES = 1 << 32  #: of machine code or a fat binary that a process loads; those of cuBLAS have 0.5 GB
MAX_SWEEP_BYTES = 1 << 28  #: of a sweep's results file: 100,000 configurations of 1 KB have 100 MB
MAX_IMAGE_PARTS = 1 << 16  #: sections of machine code, entries of a fat binary
MAX_DUMP_BYTES = 1 << 40  #: of a core dump; with the memory of a device it has more than that, and is read in parts
MAX_UNPACKED_DUMP_BYTES = 1 << 29  #: of one that is packed, which is unpacked as a whole
MAX_SMALL_DUMP_BYTES = 1 << 27  #: the same of one with less than MAX_SMALL_BYTES packed; 132 hung SMs have 118 MB
MAX_FUNCTION_BYTES = 1 << 23  #: of machine code; what follows is not read
MAX_DUMP_SECTIONS = 1 << 21  #: of a core dump: 132 SMs with 64 warps each have 1.1 million
MAX_BUFFER_BYTES = 1 << 36  #: of one argument of a kernel; an H200 has 141 GB

# JSON documents

MAX_DEPTH = 32  #: brackets inside each other; the deepest document of pipesim's has 5, ``extra`` of a trace is free
MAX_DIGITS = 20  #: of an integer: 64 bits have no more
MAX_JSON_VALUES = 1 << 23
MAX_JSON_LISTS = 1 << 21  #: lists and objects among them
MAX_JSON_STRINGS = 1 << 21  #: strings, keys included

# texts

MAX_NAME = 200  #: characters of a name: of a protocol, parameter, role, barrier, tile, site
MAX_TEXT = 4096  #: characters of any other text, such as a source line

MAX_LOCK_FAILURES = 10_000  #: compare-and-swaps that find a lock taken; a recording has room for hundreds

# a flat program

MAX_AGENT_OPERATIONS = 1 << 23  #: that one agent may record; a ring of a million tiles has less
MAX_OPERATIONS = 1 << 20  #: of all agents of a program that is read from a file or made for a trace: 300 MB
MAX_LONG_OPERATIONS = 1 << 22  #: of one that is made for a trace that differs somewhere in so long a run: 1 GB
MAX_AGENTS = 1 << 10  #: of a program: 16 CTAs of 32 warps, two agents each
MAX_WARP = (1 << 10) - 1  #: largest number of a warp; how many a CTA has is checked with the hardware's other sizes
MAX_BARRIERS = 1 << 15  #: of a CTA: 8 bytes each, of at most 227 KiB of shared memory. Also of a group: its stages
MAX_ACCESSES = 1 << 14  #: of a program's file: ranges of memory, which are compared with each other
MAX_TABLE = 1 << 16  #: of a program's file: entries of any other side table
MAX_ADDRESS = 1 << 40  #: offsets, and bytes of one range of memory
MAX_CYCLES = 10**12  #: of one operation, or one number of a latency profile: 9 minutes at 1.8 GHz
MAX_COUNT_OPERAND = 1 << 32  #: magnitude of an arrival count, of threads, of registers: PTX has 32 bits for each
MAX_TRIPS = 1 << 32  #: trip count of a loop
MAX_ITEM = 1 << 62  #: number of an item, which a role may compute as it likes
MAX_GRID = (1 << 31) - 1  #: CTAs of a launch (CUDA programming guide, "Maximum x-dimension of a grid")
MAX_PARAMETER = (1 << 63) - 1  #: magnitude of a parameter

# devices

MAX_KHZ = 8_000_000  #: of an SM clock: four times that of an H200
MAX_SMS = 1 << 16

# a trace

MAX_ROWS = 10 << 20  #: records: up to 40 bytes each while they are compared CTA by CTA, 1,000 where two traces are
MAX_PACKED_ROWS = 1 << 18  #: of a file with less than a byte a record; recordings of a GPU have 7
MAX_ROW_GROUPS = 1 << 12  #: of the Parquet file, and entries of any other list in its footer; pipesim writes one
MAX_VALUE_BYTES = 16  #: of a value of a column, unpacked: 8 for an integer, 8 for a dictionary and its index
SPARE_COLUMN_BYTES = 1 << 16  #: of a column beside its values
MAX_TRACE_AGENTS = 1 << 10
MAX_SITES = 1 << 12
MAX_TRACE_TIME = (1 << 62) - 1  #: magnitude of a time in ps or ns: 53 days; a difference of two has 64 bits
MAX_TRACE_CYCLE = 1 << 55  #: magnitude of a reading of the SM's clock: as long at 8 GHz
MAX_TRACE_VALUE = 1 << 40  #: of ``iteration`` and ``value``
OPERATIONS_A_RECORD = 64  #: of a program made for a trace, beside SPARE_OPERATIONS; recordings have at most 6 a record
SPARE_OPERATIONS = 100_000  #: what a trace of any length allows

# a kernel's PTX

MAX_KERNEL_INSTRUCTIONS = 1 << 17  #: of a kernel with its calls inlined; those of public ones have at most 20,000
MAX_WARP_INSTRUCTIONS = 1 << 20  #: that are emulated for one program; a cluster of a public kernel runs 110,000
MAX_KERNEL_OPERATIONS = 1 << 18  #: that they record; those of public kernels have 8,000
MAX_FLOW_EDGES = 1 << 19  #: ways from one block of a kernel to the next; a table of branches has one for each entry
MAX_REGION_STEPS = 1 << 21  #: instructions between branches and the places where their ways meet, all branches together
MAX_STORED_BYTES = 1 << 20  #: of a memory that are followed by value
MAX_POINTED_BYTES = 1 << 38  #: of the memory that a pointer of a launch leads to

# launches that were observed

MAX_SPOOL_BYTES = 1 << 28  #: of the records of one process, with the memory that was copied
MAX_KERNEL_FILES = 1 << 14  #: below a folder whose kernels are checked
MAX_SPOOL_FILES = 1 << 10  #: processes that one command observes, and PTX files of a compiler's dump
MAX_RECORD_BYTES = 1 << 24  #: of one record; the parameters of a kernel have at most 32 KB
MAX_RECORDS = 1 << 14  #: of all processes
MAX_KERNEL_NAME = 1 << 14  #: characters; those of templates of C++ have up to 4,000

# an export

MAX_MODEL_OPERATIONS = 1 << 16  #: of a program as a Promela model; SPIN searches a few thousand

# schedules

MAX_MOVES = 10_000_000  #: of a schedule in words
MAX_SCHEDULE_DIGITS = 18  #: of a number in it

# a kernel's table and captures

MAX_TABLE_LINES = 10_000  #: of a kernel's table with all files that it includes
MAX_INCLUDES = 16  #: files that include each other
MAX_SOURCES = 256  #: a CUDA source and the headers beside it
MAX_EXPRESSION = 200  #: characters of an expression in a table

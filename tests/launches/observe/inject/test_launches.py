"""What the library records of launches of all kinds, and that the program does what it does without it."""

import pytest

from pipesim.launches.observe.limits import Limits
from tests.launches.observe.inject.conftest import PTX

pytestmark = pytest.mark.slow  # a C compiler makes what observes


def test_a_launch(observed, ptx):
    ran = observed("data", ptx, "number", 7, "grid", 12, "block", 96, "shared", 1000, "launch", "copy__8_4")
    record = ran.launch
    assert (record.kernel, record.origin, record.why_not) == ("copy__8_4", "PTX that the driver compiled", "")
    assert (record.grid, record.block, record.cluster) == ((12, 1, 1), (96, 1, 1), (1, 1, 1))
    assert (record.dynamic_shared, record.registers, record.via) == (1000, 40, "launch")
    first, second = record.parameters
    assert [(each.at, each.align) for each in first.pointers] == [(0, 256)]
    assert (second.data, second.pointers) == ((7).to_bytes(4, "little"), ())
    assert ran.text(record) == PTX.encode()
    (process,) = ran.records.processes
    assert (process.device, process.arch, process.argv[1:3]) == ("Fake H200 0", "sm_90", ("data", str(ptx)))
    (count,) = ran.records.counts
    assert (count.kernel, count.image, count.launches, count.distinct) == ("copy__8_4", record.image, 1, 1)
    assert ran.records.notes == []


KINDS = ["launch", "ex", "cluster", "cooperative", "extra", "thread"]


def test_the_program_does_the_same_without_the_library(observed, fake, ptx):
    every = [word for kind in KINDS for word in (kind, "copy__8_4")]
    commands = ["data", ptx, *every, "tiled", "graph", "g__8_128", "nodes", "n__8", "repeat", 20, "copy__8_4"]
    alone = fake.run(*commands)
    ran = observed(*commands)
    assert alone.returncode == 0, alone.stderr
    assert (ran.code, ran.printed) == (alone.returncode, alone.stdout)
    assert len(ran.records.launches) > 3


def test_launches_that_differ_in_addresses_of_one_alignment_are_one(observed, ptx):
    many = [word for shift in (0, 1024, 3072) for word in ("shift", shift, "launch", "copy__8_4")]
    ran = observed("data", ptx, *many, "shift", 4, "launch", "copy__8_4", "number", 1, "launch", "copy__8_4")
    aligned = [(each.parameters[0].pointers[0].align, each.parameters[1].data[0]) for each in ran.records.launches]
    assert aligned == [(256, 0), (4, 0), (4, 1)]
    (count,) = ran.records.counts
    assert (count.launches, count.distinct, count.left_out) == (5, 3, 0)


@pytest.mark.parametrize(
    ("commands", "contents", "note"),
    [
        (("contents", 41, "launch"), (41).to_bytes(4, "little") + bytes(4092), ""),
        (("shift", 65536 - 8, "launch"), bytes(8), ""),  # near the end of the allocation
        (("stream", 1, "busy", 1, "launch"), None, "work before its launch was not done"),
        (("graph",), None, "kernels of a graph"),
    ],
)
def test_memory_is_copied_before_a_launch_that_need_not_be_waited_for(observed, ptx, commands, contents, note):
    ran = observed("data", ptx, *commands, "copy__8_4")
    assert ran.launch.parameters[0].pointers[0].contents == contents
    assert [note in each for each in ran.records.notes] == [True] * bool(note)
    assert (ran.launch.via, ran.launch.cluster) == (
        ("graph", (2, 1, 1)) if commands == ("graph",) else ("launch", (1, 1, 1))
    )


def test_allocations_are_copied_whole_where_that_is_asked_for(observed, ptx):
    commands = ["data", ptx, "tiled", "contents", 41, "shift", 512, "launch", "copy__8_4", "launch", "maps__128_8"]
    ran = observed(*commands, limits=Limits(copies=1 << 20))
    for record in ran.records.launches:
        (copied,) = record.memory
        assert (ran.spool / copied.file).read_bytes()[:4] == (41).to_bytes(4, "little")
        address = int.from_bytes(record.parameters[-1 if len(record.parameters[0].data) > 8 else 0].data, "little")
        assert (address - copied.start, copied.nbytes) == (512, 65536)
    full = observed(*commands[:2], "launch", "copy__8_4", limits=Limits(copies=1 << 10))
    assert [each.file for each in full.records.launches[-1].memory] == [""]


def test_a_process_that_is_killed_in_a_launch_leaves_its_record(observed, ptx):
    ran = observed("data", ptx, "launch", "copy__8_4", "launch", "killed__8")
    assert ran.code == -9
    assert [each.kernel for each in ran.records.launches] == ["copy__8_4", "killed__8"]
    assert ran.records.counts == []


def test_threads_are_all_counted(observed, ptx):
    ran = observed("data", ptx, "launch", "copy__8_4", "threads", 8, "copy__8_4")
    (count,) = ran.records.counts
    assert (int(ran.printed), count.launches, count.distinct) == (401, 401, 1)


def test_a_module_that_is_unloaded_is_forgotten(observed, ptx, tmp_path):
    other = tmp_path / "other.ptx"
    other.write_text(PTX + "// another\n")
    ran = observed("data", ptx, "launch", "copy__8_4", "unload", "data", other, "launch", "copy__8_4")
    assert [ran.text(each) for each in ran.records.launches] == [PTX.encode(), other.read_bytes()]


def test_names_and_arguments_with_any_characters(observed, ptx):
    names = ['quo"te__8', "back\\slash__8", "tab\there__8", "umläut__8"]
    ran = observed("data", ptx, *(word for name in names for word in ("launch", name)), "contents", "1\n2")
    kernels = ['quo"te__8', "back\\slash__8", "tab?here__8", "uml??ut__8"]
    assert [each.kernel for each in ran.records.launches] == kernels
    assert sorted(each.kernel for each in ran.records.counts) == sorted(kernels)
    (process,) = ran.records.processes
    assert process.argv[4] == names[0]
    assert process.argv[-1] == "1?2"
    assert ran.records.notes == []

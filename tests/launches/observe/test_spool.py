"""What the observed process writes, and to which file."""

import os

from pipesim.launches.observe.spool import Spool


def test_a_program_that_took_the_number_of_the_file_has_nothing_written_to_its_own(tmp_path):
    spool = Spool(tmp_path, 1 << 20)
    assert spool.write({"kind": "note", "text": "first"})
    (records,) = tmp_path.iterdir()
    mine = tmp_path / "mine"
    number = os.open(mine, os.O_WRONLY | os.O_CREAT)
    os.dup2(number, spool._file)
    taken = spool._file
    try:
        assert not spool.write({"kind": "note", "text": "second"})
        spool.close()
        assert os.write(taken, b"still open") == 10
    finally:
        os.close(number)
        os.close(taken)
    assert mine.read_bytes() == b"still open"
    assert records.read_text().count("\n") == 1


def test_a_program_that_closed_the_file(tmp_path):
    spool = Spool(tmp_path, 1 << 20)
    os.close(spool._file)
    assert not spool.write({"kind": "note", "text": "first"})
    assert not spool.full
    spool.close()

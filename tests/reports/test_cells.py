"""What a spreadsheet would run is written inert and reads back the same; reports load nothing."""

import csv
import io
import re

from hypothesis import given
from hypothesis import strategies as st

from atomlearn.reports.tables import inert, plain

RISKY = ("=", "@", "+", "-", "\t", "\r")


@given(st.text(alphabet="='@+-\t\r_0159.eaxn ", max_size=6) | st.text(max_size=8))
def test_inert_text_is_not_run_and_reads_back_the_same(text):
    written = inert(text)
    assert plain(written) == text
    is_number = re.fullmatch(
        r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan|infinity)", text.strip(), re.I
    )
    assert not written.startswith(RISKY) or is_number


@given(st.text(alphabet="=+-@'a1\"\n,", max_size=8))
def test_through_a_file_of_cells(text):
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(["1", inert(text), "2"])
    (row,) = csv.reader(io.StringIO(stream.getvalue(), newline=""))
    assert plain(row[1]) == text


def test_numbers_stay_as_they_are():
    for cell in (-1.5, -3, None, "-0.25", "+4", "1e-5"):
        assert inert(cell) == cell

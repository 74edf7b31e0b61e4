"""Server-Sent Events from bytes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.sse import EventParser, ServerEvent

STREAM = (
    b"retry: 1000\n\n: still here\n\n"
    b'id: 1\nevent: transition\ndata: {"seq":1}\n\n'
    b"id: 2\r\nevent: transition\r\ndata: one\r\ndata:two\r\n\r\n"
    b"data\rid: 3\r\r"
    b"id: 4\nignored: x\ndata: \xc3\xa9\xe2\x80\xa8:\n\n"
    b"event: end\nid: end\ndata: {}\n\n"
    b"id: 9\ndata: never ended"
)
EVENTS = [
    ServerEvent("transition", '{"seq":1}', "1"),
    ServerEvent("transition", "one\ntwo", "2"),
    ServerEvent("message", "", "3"),
    ServerEvent("message", "é\u2028:", "4"),
    ServerEvent("end", "{}", "end"),
]


def parsed(*pieces: bytes) -> list[ServerEvent]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def test_events_in_one_piece():
    assert parsed(STREAM) == EVENTS


def test_events_byte_by_byte():
    assert parsed(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=10))
def test_where_the_pieces_are_cut_makes_no_difference(cuts: list[int]):
    bounds = [0, *sorted(cuts), len(STREAM)]
    assert parsed(*(STREAM[a:b] for a, b in pairwise(bounds))) == EVENTS

import random

import pytest

from weir_limiter.decision import Decision
from weir_limiter.resp import ErrorReply, Nonsense, Simple, Value, _any, encode, read

FIELDS: list[tuple[str, Value]] = [
    ("allowed", 1),
    ("rule", b"per-ip"),
    ("limit", 5),
    ("remaining", 4),
    ("cost", 1),
    ("retry_after", 0),
    ("retry_after_ms", 0),
    ("reset_after", 6),
    ("reset_after_ms", 5500),
    ("reset_at", 1717920660),
    ("delay_ms", 250),
    ("reason", b"ok"),
    ("source", b"memory"),
]
HTTP: list[tuple[str, Value]] = [
    ("status", 429),
    ("headers", b"Retry-After: 7\r\nCache-Control: no-store\r\n"),
    ("body", b'{"a":"\r\n"}'),
]
HELD: list[tuple[str, Value]] = [("reservation", b"00112233445566ff")]


def written(fields: list[tuple[str, Value]]) -> bytes:
    text = b"*%d\r\n" % (2 * len(fields))
    for name, value in fields:
        text += b"$%d\r\n%b\r\n" % (len(name), name.encode())
        if value is None:
            text += b"$-1\r\n"
        elif isinstance(value, int):
            text += b":%d\r\n" % value
        else:
            text += b"$%d\r\n%b\r\n" % (len(value), value)
    return text


def test_a_command_is_an_array_of_texts_whatever_they_hold() -> None:
    assert encode([b"ECHO", b"a\r\n", b""]) == b"*3\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n$0\r\n\r\n"


@pytest.mark.parametrize("more", [[], HTTP, HELD, HELD + HTTP])
def test_the_fast_way_and_the_general_one_read_the_same(more: list[tuple[str, Value]]) -> None:
    text = written(FIELDS + more)
    general = _any(text, 0, 3)
    assert general is not None
    assert read(b"xx" + text, 2, 3) == (general[0], len(text) + 2)
    mixed = FIELDS + more
    random.Random(7).shuffle(mixed)
    found, at = read(written(mixed), 0, 3) or (None, 0)
    assert (found, at) == ((read(text, 0, 3) or (None, 0))[0], len(text))


def test_every_field_arrives() -> None:
    found = read(written(FIELDS + HELD + HTTP), 0, 1)
    assert found is not None
    assert found[0] == Decision(
        allowed=True,
        rule="per-ip",
        limit=5,
        remaining=4,
        cost=1,
        retry_after=0.0,
        reset_after=5.5,
        delay=0.25,
        reason="ok",
        source="memory",
        reservation="00112233445566ff",
        status=429,
        header_lines=b"Retry-After: 7\r\nCache-Control: no-store\r\n",
        body=b'{"a":"\r\n"}',
        server=1,
    )
    assert isinstance(found[0], Decision)
    assert found[0].headers == [("Retry-After", "7"), ("Cache-Control", "no-store")]


def test_a_wait_that_never_ends_is_none() -> None:
    fields = [(n, None if n.startswith("retry") else v) for n, v in FIELDS]
    found = read(written(fields), 0, 0)
    assert found is not None
    assert isinstance(found[0], Decision)
    assert found[0].retry_after is None


def test_what_is_not_all_there_is_waited_for_at_every_byte() -> None:
    text = written(FIELDS + HELD + HTTP)
    for size in range(len(text)):
        assert read(text[:size], 0, 0) is None, size


def test_names_that_are_not_known_are_left_aside() -> None:
    found = read(written([*FIELDS, ("future", b"yes")]), 0, 0)
    assert found is not None
    assert isinstance(found[0], Decision)
    assert found[0].remaining == 4


def test_errors_and_plain_words_are_told_apart() -> None:
    assert read(b"-ERR no\r\n", 0, 0) == (ErrorReply("ERR no"), 9)
    assert read(b"+PONG\r\n", 0, 0) == (Simple(b"PONG"), 7)


@pytest.mark.parametrize(
    "text",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b":1\r\n",
        b"$5\r\nhello\r\n",
        b"*-1\r\n",
        b"*-7\r\n",
        b"*2000000000\r\n",
        b"*3\r\n$7\r\nallowed\r\n:1\r\n$4\r\nrule\r\n",
        b"*2\r\n*1\r\n:1\r\n:1\r\n",
        b"*2\r\n$999999999999\r\n",
        b"*2\r\n$7\r\nallowed\r\n:x\r\n",
        b"*2\r\n$7\r\nallowed\r\n:7\r\n",
        b"*2\r\n$4\r\nrule\r\n$1\r\nx\r\n",
        b"*2\r\n:1\r\n:1\r\n",
        b"*2\r\n$7\r\nallowedXX:1\r\n",
        b"*4\r\n$7\r\nallowed\r\n:1\r\n$5\r\nlimit\r\n$1\r\n5\r\n",
        b"*4\r\n$7\r\nallowed\r\n:1\r\n$4\r\nrule\r\n:5\r\n",
    ],
)
def test_nonsense_is_refused(text: bytes) -> None:
    with pytest.raises(Nonsense):
        read(text, 0, 0)


def test_random_bytes_never_do_worse_than_nonsense() -> None:
    seed = random.randrange(2**32)
    source = random.Random(seed)
    whole = written(FIELDS + HELD + HTTP)
    for _ in range(3000):
        text = bytearray(whole[: source.randrange(len(whole) + 1)])
        for _ in range(source.randrange(4)):
            if text:
                text[source.randrange(len(text))] = source.choice(b"*$:+-\r\n0129a\x00\xff")
        try:
            read(bytes(text), 0, 0)
        except Nonsense:
            pass
        except Exception as error:  # noqa: BLE001
            pytest.fail(f"seed {seed}: {error!r} for {bytes(text)!r}")

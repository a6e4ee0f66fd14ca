import random

import pytest

from weir_limiter.advice import Advice, read_advice
from weir_limiter.pace import Pace


def steady() -> float:
    return 0.0


def test_one_goes_ahead_and_where_its_answer_says_nothing_nothing_is_bounded() -> None:
    pace = Pace(steady)
    assert pace.wait(0.0) == 0
    first = pace.send()
    assert pace.wait(0.0) is None
    pace.answer(first, Advice(), 0.0, refused=False)
    for _ in range(100):
        assert pace.wait(0.0) == 0
        pace.send()


def test_no_more_are_under_way_than_the_server_has_left() -> None:
    pace = Pace(steady)
    pace.answer(pace.send(), Advice(None, 3), 0.0, refused=False)
    for _ in range(3):
        assert pace.wait(0.0) == 0
        pace.send()
    assert pace.wait(0.0) is None
    # What is lost may have been counted.
    pace.lose()
    assert pace.wait(0.0) is None
    pace.lose()
    assert pace.wait(0.0) is None
    pace.lose()
    assert pace.wait(0.0) == 0


def test_when_nothing_is_left_none_goes_before_its_time_and_then_one_goes_ahead() -> None:
    pace = Pace(steady)
    pace.answer(pace.send(), Advice(7.0, 0), 10.0, refused=False)
    assert pace.wait(10.0) == 7.0
    assert pace.wait(16.5) == 0.5
    assert pace.wait(17.0) == 0
    number = pace.send()
    assert pace.wait(17.0) is None
    pace.answer(number, Advice(None, 5), 17.1, refused=False)
    assert pace.wait(17.1) == 0


def test_answers_in_another_order_never_leave_more_than_the_least() -> None:
    pace = Pace(steady)
    first, second, third = pace.send(), pace.send(), pace.send()
    pace.answer(third, Advice(None, 2), 0.0, refused=False)
    pace.answer(first, Advice(None, 9), 0.0, refused=False)
    pace.answer(second, Advice(None, 9), 0.0, refused=False)
    assert pace.budget == 2
    pace.answer(pace.send(), Advice(None, 9), 0.0, refused=False)
    assert pace.budget == 9


def test_a_refusal_without_a_time_waits_a_second_and_then_twice_as_long() -> None:
    pace = Pace(steady)
    waits = [pace.answer(pace.send(), Advice(None, 0), 0.0, refused=True) for _ in range(3)]
    assert waits == [1.0, 2.0, 4.0]
    pace.answer(pace.send(), Advice(None, 5), 0.0, refused=False)
    assert pace.answer(pace.send(), Advice(None, 0), 0.0, refused=True) == 1.0


def test_waits_are_never_shorter_than_asked_and_little_longer() -> None:
    source = random.Random(1)
    for _ in range(200):
        pace = Pace(source.random)
        pace.answer(pace.send(), Advice(20.0, 0), 0.0, refused=True)
        assert 20.0 <= (pace.wait(0.0) or 0) <= 22.05


def test_a_bucket_that_is_asked_at_this_pace_never_refuses() -> None:
    """A server with a bucket of 5, 2 a second, and answers that come in any order."""
    seed = random.randrange(2**32)
    source = random.Random(seed)
    pace, now, level, since = Pace(source.random), 0.0, 5.0, 0.0
    under_way: list[tuple[int, Advice]] = []
    # Before the first answer nothing is known, so that one goes ahead.
    pending = [pace.send()]
    for _ in range(5000):
        level, since = min(5.0, level + 2 * (now - since)), now
        for number in pending:
            level -= 1
            assert level >= -1e-9, f"seed {seed}: refused at {now}"
            left = int(level)
            # As the service says it: until the next, or until it is full.
            advice = Advice((1 - level) / 2, 0) if left == 0 else Advice(None, left)
            under_way.append((number, advice))
        pending = []
        if under_way and source.random() < 0.7:
            number, advice = under_way.pop(source.randrange(len(under_way)))
            pace.answer(number, advice, now, refused=False)
        while len(pending) < 3 and pace.wait(now) == 0 and source.random() < 0.9:
            pending.append(pace.send())
        now += source.random() * 0.2


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, [("RateLimit", '"a";r=0')], Advice(None, 0)),
        (200, [("RateLimit", '"a";r=2;t=9, "b";r=2;t=3')], Advice(None, 2)),
        (200, [("RateLimit", '"a";r=0;t=3, "b";r=0;t=9')], Advice(9.0, 0)),
        (200, [("RateLimit", '("a" "b");r=0;t=3')], Advice()),
        (200, [("RateLimit", '"a";r=0;t=3,')], Advice(3.0, 0)),
        (429, [("Retry-After", "Sun, 99 Nov 1994 99:99:99 GMT")], Advice(None, 0)),
        (429, [("Retry-After", "9" * 400)], Advice(1e9, 0)),
        (503, [("RateLimit", '"a";r=3;t=3')], Advice(None, 3)),
    ],
)
def test_what_a_response_says(
    status: int, headers: list[tuple[str, str]], expected: Advice
) -> None:
    assert read_advice(status, headers, 1_800_000_000.0) == expected


def test_no_header_is_an_exception() -> None:
    seed = random.randrange(2**32)
    source = random.Random(seed)
    names = ["RateLimit", "Retry-After", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
    for _ in range(5000):
        text = "".join(source.choice('"\\;,=rt0189 :?-*aZ\xff\0') for _ in range(12))
        for name in names:
            read_advice(source.choice([200, 429, 503]), [(name, text)], 1.8e9)

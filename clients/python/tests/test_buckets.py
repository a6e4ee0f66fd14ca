from weir_limiter.buckets import Buckets
from weir_limiter.limit_text import parse_limit

SECOND = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 1000 * SECOND

    def __call__(self) -> int:
        return self.now


def test_a_bucket_lets_its_burst_through_and_then_says_when_to_come_back() -> None:
    clock = Clock()
    buckets = Buckets(1, clock=clock)
    limit = parse_limit("6/min burst 2")
    assert [buckets.decide(limit, "a", 1).remaining for _ in range(2)] == [1, 0]
    denied = buckets.decide(limit, "a", 1)
    assert (denied.allowed, denied.reason, denied.retry_after) == (False, "limited", 10.0)
    clock.now += 10 * SECOND - 1
    assert not buckets.decide(limit, "a", 1).allowed
    clock.now += 1
    assert buckets.decide(limit, "a", 1).allowed
    assert buckets.decide(limit, "b", 2).allowed


def test_each_process_takes_its_share_and_at_least_one() -> None:
    buckets = Buckets(8, clock=Clock())
    assert buckets.decide(parse_limit("80/h"), "a", 1).limit == 10
    few = parse_limit("2/h")
    assert buckets.decide(few, "a", 1).limit == 1
    assert buckets.decide(few, "a", 1).retry_after == 4 * 3600.0


def test_what_the_service_lets_through_is_taken_but_never_makes_a_debt() -> None:
    clock = Clock()
    buckets = Buckets(1, clock=clock)
    limit = parse_limit("60/min burst 3")
    for _ in range(10):
        buckets.feed(limit, "a", 1)
    assert buckets.decide(limit, "a", 1).retry_after == 1.0
    clock.now += SECOND
    assert buckets.decide(limit, "a", 1).allowed


def test_a_cost_above_the_burst_never_fits() -> None:
    decision = Buckets(1, clock=Clock()).decide(parse_limit("5/s"), "a", 6)
    assert (decision.allowed, decision.reason, decision.retry_after) == (False, "never_fits", None)


def test_words_decide_by_themselves() -> None:
    buckets = Buckets(1, clock=Clock())
    assert buckets.decide(parse_limit("unlimited"), "a", 1).allowed
    assert buckets.decide(parse_limit("deny"), "a", 1).reason == "deny_list"
    assert len(buckets) == 0


def test_keys_are_bounded_and_those_that_are_fresh_go_first() -> None:
    clock = Clock()
    buckets = Buckets(1, most=3, clock=clock)
    slow, fast = parse_limit("1/h"), parse_limit("1/s")
    buckets.decide(slow, "old", 1)
    buckets.decide(fast, "fresh", 1)
    buckets.decide(slow, "young", 1)
    clock.now += 2 * SECOND
    buckets.decide(slow, "new", 1)
    assert len(buckets) == 3
    assert not buckets.decide(slow, "old", 1).allowed
    buckets.decide(slow, "newer", 1)
    assert len(buckets) == 3
    assert buckets.decide(slow, "old", 1).allowed

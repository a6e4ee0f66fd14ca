import pytest

from weir_limiter import OptionError
from weir_limiter.limit_text import parse_limit


@pytest.mark.parametrize(
    ("text", "algorithm", "words"),
    [
        ("100/min foo", None, 'column 9: found "foo"'),
        ("100x/s", None, "allowed are k, M and G"),
        ("100/fortnight", None, "allowed are ms, s, min, h, day, week"),
        ("100/400day", None, "up to 366day"),
        ("20M/s", None, "at most 10000000 in 1s"),
        ("100/min burst 1G", None, "1 to 52704000"),
        ("70k concurrent", None, "1 to 65536"),
        ("100k/h", "sliding_log", "1 to 65536"),
        ("5/s burst 2", "fixed_window", "burst: fixed_window takes none"),
        ("5/s", "concurrency", "concurrent"),
        ("5/s", "gcra", "allowed are token_bucket"),
        ("9" * 5000 + "/s", None, "is not allowed"),
        ("\n", None, "expected a count"),
    ],
)
def test_what_is_no_limit_is_an_error_that_says_what_to_write(
    text: str, algorithm: str | None, words: str
) -> None:
    with pytest.raises(OptionError) as error:
        parse_limit(text, algorithm)
    assert words in str(error.value)


def test_the_option_is_named_that_was_wrong() -> None:
    with pytest.raises(OptionError) as error:
        parse_limit("often", None, "static_limit")
    assert error.value.option == "static_limit"
    with pytest.raises(OptionError) as error:
        parse_limit(100)  # type: ignore[arg-type]
    assert error.value.option == "limit"

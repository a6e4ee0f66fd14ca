"""What can go wrong that is not a denial."""


class WeirError(Exception):
    """A verb that was not carried out.

    `code` is that of the service (`invalid_argument`, `forbidden`, `not_found` …), or `unavailable`
    if none answered. Checks never raise it: what cannot be asked is decided by `on_failure`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class OptionError(ValueError):
    """An option that cannot be. The message names it and says what to write."""

    code = "invalid_option"

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option}: {message}")
        self.option = option
        self.message = f"{option}: {message}"


def quoted(text: object) -> str:
    """Text from outside, fit for a message: short, on one line."""
    shown = "".join(c if " " <= c <= "~" else "?" for c in str(text))
    return f'"{shown[:64]}"'

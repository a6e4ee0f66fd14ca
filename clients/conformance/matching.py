"""What a case expects, compared with what came: only what it names matters."""

import re


def differences(expected, actual, at="answer"):
    """What is not as expected, a line each."""
    if isinstance(expected, dict):
        operator = next((name for name in expected if name.startswith("$")), None)
        if operator is not None:
            return [] if holds(operator, expected[operator], actual) else [
                f"{at}: {actual!r} is not {operator} {expected[operator]!r}"]
        if not isinstance(actual, dict):
            return [f"{at}: {actual!r} instead of an object"]
        return [line for name, value in expected.items()
                for line in differences(value, actual.get(name), f"{at}.{name}")]
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return [f"{at}: {actual!r} instead of {expected!r}"]
        return [line for number, value in enumerate(expected)
                for line in differences(value, actual[number], f"{at}[{number}]")]
    # True is no 1 here.
    if type(expected) is not type(actual) or expected != actual:
        return [f"{at}: {actual!r} instead of {expected!r}"]
    return []


def holds(operator, argument, actual):
    if operator == "$between":
        return isinstance(actual, (int, float)) and argument[0] <= actual <= argument[1]
    if operator == "$matches":
        return isinstance(actual, str) and re.search(argument, actual) is not None
    if operator == "$absent":
        return (actual is None) == argument
    if operator == "$count":
        return isinstance(actual, list) and len(actual) == argument
    if operator == "$has":
        return isinstance(actual, list) and all(
            any(not differences(wanted, item) for item in actual) for wanted in argument)
    if operator == "$number":
        # In a list of answers, so many are as described.
        return isinstance(actual, list) and argument["are"] == sum(
            not differences(argument["of"], item) for item in actual)
    if operator == "$each":
        return isinstance(actual, list) and all(not differences(argument, item) for item in actual)
    raise ValueError(f"no such operator: {operator}")

"""Prometheus' text format, read strictly: what is not exactly by its rules is an error."""

import math
import re

import http_wire

METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
PAIR = re.compile(r'(?P<name>[^=,"]+)="(?P<value>(?:[^"\\\n]|\\[\\"n])*)"(?P<rest>,?)')
TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}


class Family:
    def __init__(self, name, help_text):
        self.name, self.help, self.type = name, help_text, None
        self.samples = {}  # (name, ((label, value), ...)) -> number


def _labels(text):
    labels = []
    while text:
        pair = PAIR.match(text)
        if not pair or not LABEL.fullmatch(pair["name"]) or pair["name"].startswith("__"):
            raise AssertionError(f"labels: {text}")
        value = re.sub(r'\\([\\"n])', lambda m: "\n" if m[1] == "n" else m[1], pair["value"])
        labels.append((pair["name"], value))
        text = text[pair.end():]
        if bool(pair["rest"]) != bool(text):
            raise AssertionError(f"labels end in: {pair[0]}")
    if len({name for name, _ in labels}) != len(labels):
        raise AssertionError(f"a label twice: {labels}")
    return tuple(sorted(labels))


def _number(text):
    if text in ("+Inf", "-Inf", "NaN"):
        return {"+Inf": math.inf, "-Inf": -math.inf, "NaN": math.nan}[text]
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        raise AssertionError(f"no number: {text}")
    return float(text)


def parse(text):
    """Families by name. Each has HELP, TYPE and then its samples, all in one place."""
    if not text.endswith("\n"):
        raise AssertionError("the last line has no end")
    families, family = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, help_text = line[len("# HELP "):].partition(" ")
            if not METRIC.fullmatch(name) or name in families or not help_text:
                raise AssertionError(line)
            family = families[name] = Family(name, help_text)
        elif line.startswith("# TYPE "):
            name, kind = line[len("# TYPE "):].split(" ")
            if family is None or family.name != name or family.type or family.samples:
                raise AssertionError(line)
            if kind not in TYPES:
                raise AssertionError(line)
            family.type = kind
        else:
            sample = SAMPLE.fullmatch(line)
            if not sample or family is None or family.type is None:
                raise AssertionError(f"no sample: {line!r}")
            key = (sample["name"], _labels(sample["labels"] or ""))
            if key in family.samples:
                raise AssertionError(f"twice: {line}")
            family.samples[key] = _number(sample["value"])
    for family in families.values():
        _check(family)
    return families


def _check(family):
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
    for (name, _), value in family.samples.items():
        if name not in {family.name + suffix for suffix in suffixes}:
            raise AssertionError(f"{name} among {family.name}")
        if family.type in ("counter", "histogram") and not value >= 0:
            raise AssertionError(f"{name} is {value}")
    if family.type == "counter" and not family.name.endswith("_total"):
        raise AssertionError(f"a counter called {family.name}")
    if family.type == "histogram":
        _check_histogram(family)


def _check_histogram(family):
    series = {}
    for (name, labels), value in family.samples.items():
        rest = tuple(pair for pair in labels if pair[0] != "le")
        one = series.setdefault(rest, {"buckets": []})
        if name.endswith("_bucket"):
            one["buckets"].append((_number(dict(labels)["le"]), value))
        else:
            one[name[len(family.name):]] = value
    for labels, one in series.items():
        bounds = [bound for bound, _ in one["buckets"]]
        counts = [count for _, count in one["buckets"]]
        if bounds != sorted(set(bounds)) or bounds[-1] != math.inf or counts != sorted(counts):
            raise AssertionError(f"{family.name}{labels}: {one['buckets']}")
        if counts[-1] != one["_count"] or "_sum" not in one:
            raise AssertionError(f"{family.name}{labels}: {one}")


class Metrics:
    """What /metrics says now."""

    def __init__(self, text):
        self.text = text
        self.families = parse(text)

    @classmethod
    def of(cls, client):
        """Through a connection that is kept, so that looking changes nothing."""
        response = client.get("/metrics")
        if response.status != 200:
            raise AssertionError(response)
        return cls(response.body.decode())

    def value(self, name, **labels):
        """0 if there is no such sample yet: counters appear when they first count."""
        for family in self.families.values():
            found = family.samples.get((name, tuple(sorted(labels.items()))))
            if found is not None:
                return found
        return 0.0

    def total(self, name, **labels):
        """The sum over all samples with these labels, among others."""
        wanted = set(labels.items())
        return sum(value for family in self.families.values()
                   for (its_name, pairs), value in family.samples.items()
                   if its_name == name and wanted <= set(pairs))


def scrape(port):
    """On a connection of its own."""
    with http_wire.Client(port) as client:
        return Metrics.of(client)

"""What all suites share: parts that may fail without ending the suite, programs, and medians."""

import collections.abc
import contextlib
import dataclasses
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import servers

# A program of a suite that runs for longer than this hangs.
LONGEST_RUN_S = 20 * 60
LONGEST_SMOKE_RUN_S = 2 * 60


@dataclasses.dataclass
class Setup:
    """What a suite measures with. `answers` holds what its parts have measured so far."""

    build: pathlib.Path  # Of the programs that are measured.
    rust: pathlib.Path
    smoke: bool = False
    answers: dict = dataclasses.field(default_factory=dict)

    def rounds(self, usual):
        return 1 if self.smoke else usual

    def answer(self, question):
        """What an earlier part measured, for a part that builds on it."""
        if question not in self.answers:
            raise RuntimeError(f"needs the result of '{question}', which failed")
        return self.answers[question]


@dataclasses.dataclass
class Part:
    """A piece of a suite that can fail alone. `measure` returns {question: answer}, plain data."""

    name: str
    measure: collections.abc.Callable[[], dict]


@dataclasses.dataclass
class Failure:
    """A part that was not measured, or not to its end."""

    part: str
    reason: str

    @classmethod
    def of(cls, part, error):
        text = str(error)
        if not isinstance(error, (RuntimeError, subprocess.SubprocessError)):
            text = f"{type(error).__name__}: {text}"
        return cls(part, "; ".join(line.strip() for line in text.splitlines() if line.strip()))

    def __str__(self):
        return f"FAILED: {self.part}: {self.reason}"

    def entry(self):
        return {"name": self.part, "failed": self.reason}


def run_parts(setup, parts, keep=lambda: None):
    """Runs the parts one after the other, fills `setup.answers` and returns the failures.

    `parts` is a generator: it may hold servers while its parts run. `keep` is called after every
    part that was measured. Only an interruption ends the suite early.
    """
    failures = []

    def fail(name, error):
        failures.append(Failure.of(name, error))
        print(failures[-1], file=sys.stderr, flush=True)

    # Closed at once: an interruption must not leave its servers running.
    with contextlib.closing(parts):
        try:
            for part in parts:
                began = time.monotonic()
                try:
                    setup.answers |= part.measure()
                    keep()
                except Exception as error:  # Whatever it was: the other parts are still measured.
                    fail(part.name, error)
                    continue
                took = time.monotonic() - began
                print(f"{part.name}: {took:.0f} s", file=sys.stderr, flush=True)
        except Exception as error:
            fail("what the remaining parts need", error)
    return failures


def run_program(command, **options):
    """Runs a program to its end and returns its output. A failure says what the program said."""
    command = list(map(str, command))
    name = " ".join(pathlib.Path(word).name for word in servers.unpinned(command)[:3])
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=LONGEST_RUN_S, check=False, **options)
    except FileNotFoundError as error:
        raise RuntimeError(f"{error.filename} is missing") from error
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{name}: no result after {LONGEST_RUN_S // 60} minutes") from error
    if done.returncode != 0:
        raise ProgramFailed(name, done)
    return done.stdout


class ProgramFailed(RuntimeError):
    """A program that ended with an error."""

    def __init__(self, name, done):
        said = "; ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
        super().__init__(f"{said or 'no message'} ({name} ended with {how})")
        self.output = done.stdout + done.stderr


def ask(program, question):
    """Runs the program with the words of the question; its answer is JSON."""
    return json.loads(run_program([program, *question]))


def median(values):
    """NaN if nothing was measured: figures and tables then leave the value out."""
    values = list(values)
    return statistics.median(values) if values else math.nan


def noise_row(name, runs):
    """How far the middle half of the rounds of a figure lie apart: typically, and at worst."""
    spreads = []
    for values in runs:
        if len(values) < 2:
            continue
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        spreads.append((high - low) / middle if middle else math.nan)
    if not spreads:
        return [name, "-", "-"]
    return [name, f"{statistics.median(spreads):.0%}", f"{max(spreads):.0%}"]

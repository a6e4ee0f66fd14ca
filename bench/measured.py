"""What suites share: asking their program, and saying how far its rounds lie apart."""

import json
import statistics
import subprocess
import sys
import time


def ask(program, question):
    """Runs the program with the words of the question; its answer is JSON."""
    began = time.monotonic()
    done = subprocess.run([program, *question], stdout=subprocess.PIPE, check=True)
    took = time.monotonic() - began
    print(f"{' '.join(question[:3])}: {took:.0f} s", file=sys.stderr, flush=True)
    return json.loads(done.stdout)


def noise_row(name, runs):
    """How far the middle half of the rounds of a figure lie apart: typically, and at worst."""
    spreads = []
    for values in runs:
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        spreads.append((high - low) / middle)
    return [name, f"{statistics.median(spreads):.0%}", f"{max(spreads):.0%}"]

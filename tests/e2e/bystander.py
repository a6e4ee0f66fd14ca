#!/usr/bin/env python3
"""A client that behaves, beside those that do not: a process of its own, so that what they do to the
test does not slow it down.

    bystander.py HTTP_PORT RESP_PORT

Asks on two connections, one after the other, a few hundred times a second, until its standard input
ends. Prints `begun` when the first answers are there, and at the end JSON: how many answers came,
the longest time one took, and what was wrong.
"""

import json
import os
import select
import sys
import time

import http_wire
import resp_wire

PAUSE = 0.002


class Bystander:
    def __init__(self, http_port, resp_port):
        self.http = http_wire.Client(http_port)
        self.resp = resp_wire.Client(resp_port)
        self.took = []
        self.wrong = []

    def ask(self, number):
        began = time.monotonic()
        response = self.http.post("/v1/check", {"user": f"bystander-{number % 100}"})
        self.note(time.monotonic() - began,
                  response.status == 200 and response.json()["rule"] == "per-user", response)
        began = time.monotonic()
        reply = self.resp.call("CL.THROTTLE", f"bystander-{os.getpid()}-{number}", 15, 30, 60)
        self.note(time.monotonic() - began, reply == [0, 16, 15, -1, 2], reply)

    def note(self, took, is_right, said):
        self.took.append(took)
        if not is_right:
            self.wrong.append(repr(said))

    def run(self):
        number = 0
        while not select.select([sys.stdin], [], [], PAUSE)[0]:
            self.ask(number)
            if number == 0:
                print("begun", flush=True)
            number += 1


def main():
    bystander = Bystander(*map(int, sys.argv[1:]))
    try:
        bystander.run()
    except OSError as error:
        bystander.wrong.append(repr(error))
    took = sorted(bystander.took)
    json.dump({"answers": len(took), "worst": took[-1] if took else None,
               "median": took[len(took) // 2] if took else None,
               "wrong": bystander.wrong[:5]}, sys.stdout)


if __name__ == "__main__":
    main()

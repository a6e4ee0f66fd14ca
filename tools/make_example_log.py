#!/usr/bin/env python3
"""Makes an access log of a shop that does not exist: examples/logs/shop.log.gz.

    make_example_log.py FILE [--clients N] [--days D] [--seed S]

Visitors come by day, look at a few pages and leave; some have accounts. Two are no visitors: one
tries passwords, as fast as it can, and one takes the whole catalogue, slowly, without a pause. The
same arguments make the same file.
"""

import argparse
import datetime
import gzip
import math
import random

START = datetime.datetime(2026, 3, 2, tzinfo=datetime.timezone.utc)
AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone)", "Mozilla/5.0 (Windows NT 10.0)")
PAGES = ("/", "/search?q=tea", "/items/17", "/items/4", "/cart", "/orders", "/help")
DAY = 86_400


def visitor(number, days, chance):
    """One visitor's requests: (second, address, user, method, path, status, agent)."""
    kind = chance.random()
    if kind < 0.05:  # IPv6, another address every time, one network.
        network = f"2001:db8:{number:x}:1::"
        addresses = [f"{network}{chance.randrange(1, 65536):x}" for _ in range(4)]
    else:
        addresses = [f"198.51.{100 + number // 250}.{number % 250 + 1}"]
    user = f"user{number}" if chance.random() < 0.4 else "-"
    agent = chance.choice(AGENTS)
    busy = math.exp(chance.gauss(0, 0.4))
    for day in range(days):
        if chance.random() > 0.6:
            continue
        # Most come in the afternoon.
        second = day * DAY + int(min(max(chance.gauss(15, 4), 0.5), 23) * 3600)
        for _ in range(1 + int(chance.expovariate(1 / (4 * busy)))):
            path = chance.choice(PAGES)
            for file in (path, "/static/style.css", "/static/shop.js")[: 1 + int(3 * chance.random())]:
                if second < days * DAY:
                    yield second, chance.choice(addresses), user, "GET", file, 200, agent
            second += 1 + int(chance.expovariate(1 / 25))


def passwords(days, chance):
    second = (days // 2) * DAY + 3 * 3600
    for attempt in range(900):
        yield second + attempt // 9, "203.0.113.66", "-", "POST", "/auth/login", 401, "python-requests/2.31"


def catalogue(days, chance):
    for at in range(600, days * DAY, 100):
        path = f"/items/{at // 100}"
        yield at + chance.randrange(20), "192.0.2.14", "-", "GET", path, 200, "catalogue-fetcher/1.0"


def line(second, address, user, method, path, status, agent):
    time = (START + datetime.timedelta(seconds=second)).strftime("%d/%b/%Y:%H:%M:%S +0000")
    size = 500 + 37 * len(path)
    return f'{address} - {user} [{time}] "{method} {path} HTTP/1.1" {status} {size} "-" "{agent}"\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--clients", type=int, default=150)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    requests = [request for number in range(options.clients)
                for request in visitor(number, options.days, chance)]
    requests += [*passwords(options.days, chance), *catalogue(options.days, chance)]
    requests.sort(key=lambda request: request[0])
    lines = [line(*request) for request in requests]
    # Every log has a few lines that are none.
    lines.insert(len(lines) // 3, "2026/03/02 19:11:02 [notice] 7#7: signal process started\n")
    data = "".join(lines).encode()
    with open(options.file, "wb") as out:
        if options.file.endswith(".gz"):
            # Without the time at which it was made.
            with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
                packed.write(data)
        else:
            out.write(data)


if __name__ == "__main__":
    main()

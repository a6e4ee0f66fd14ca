#!/usr/bin/env python3
"""Has the program learn limits from logs of which everything is known, and tries the policy out.

    lab_calibrate_test.py SOURCE PROGRAM [TEST...]
"""

import gzip
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SECONDS = 60
SOURCE = pathlib.Path()
PROGRAM = ""
START = 1_772_409_600


def weir(*arguments, text=None, env=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], input=text, capture_output=True,
                          text=True, timeout=SECONDS, check=False, env={**os.environ, **(env or {})})


def visits(seed, clients=1_100, hours=3):
    """Requests of normal clients: (second, client). How busy they are is log-normal."""
    chance = random.Random(seed)
    for number in range(clients):
        pace = 12 * math.exp(0.6 * chance.gauss(0, 1)) / 60
        for _ in range(2):
            at = chance.uniform(0, hours * 3600 - 120)
            end = at + chance.uniform(60, 120)
            while at < end:
                for page in range(4):
                    yield at + page * chance.uniform(0, 0.2), f"10.0.{number // 250}.{number % 250}"
                at += chance.expovariate(pace / 4)


def peaks(requests, seconds):
    """The most that each client sent in any stretch of that length, by counting."""
    times = {}
    for at, client in sorted(requests):
        times.setdefault(client, []).append(at)
    found = {}
    for client, all_of_it in times.items():
        first = most = 0
        for last, at in enumerate(all_of_it):
            while at - all_of_it[first] >= seconds:
                first += 1
            most = max(most, last - first + 1)
        found[client] = most
    return found


def known_log(seed):
    """A log as CSV, its abusers, and what 99.9 % of the others stay within in a minute."""
    requests = list(visits(seed))
    normal = sorted(peaks(requests, 60).values())
    quantile = normal[math.ceil(0.999 * len(normal)) - 1]
    chance = random.Random(seed + 1)
    for number in range(4):  # Floods.
        start = chance.uniform(0, 3 * 3600 - 60)
        count = int(chance.uniform(4, 12) * normal[-1])
        requests += [(start + 60 * i / count, f"192.0.2.{number}") for i in range(count)]
    hour = 12 * max(peaks(visits(seed), 3600).values())
    requests += [(3600 * i / hour, "198.51.100.7") for i in range(3 * hour)]  # Never stops.
    abusers = {f"192.0.2.{number}" for number in range(4)} | {"198.51.100.7"}
    requests.sort()
    lines = ["time,client_ip,account,path"]
    for at, client in requests:
        lines.append(f"{START + at:.6f},{client},{'a' + client.replace('.', '')},/items?page=1")
    return "\n".join(lines) + "\n", abusers, quantile, len(requests)


class InFolder(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def calibrate(self, *arguments, text=None, code=0):
        ran = weir("calibrate", *arguments, text=text)
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran


class OnAKnownLog(InFolder):
    def replay(self, log, policy, *options):
        """Which requests the policy denies, by their lines, if it is enforced."""
        enforced = self.write("enforced.yaml", policy.replace("    mode: shadow", "    mode: enforce"))
        decisions = self.folder / "decisions.jsonl"
        ran = weir("replay", log, "-c", enforced, "--decisions", decisions, "--json", *options)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        denied = set()
        for line in decisions.read_text(encoding="utf-8").splitlines():
            decision = json.loads(line)
            if not decision["allowed"]:
                denied.add(decision["line"])
        return denied

    def test_what_is_learnt_stops_abusers_and_nobody_else(self):
        for seed in (1, 2):
            with self.subTest(seed=seed):
                text, abusers, quantile, count = known_log(seed)
                log = self.write("known.csv", text)
                policy = self.folder / "learnt.yaml"
                found = json.loads(self.calibrate(log, "--json", "--policy", policy).stdout)
                self.assertEqual(found["requests"], count)
                limit = next(row["limit"] for row in found["behaviour"] if row["period"] == "minute")
                self.assertAlmostEqual(limit / (1.5 * quantile), 1, delta=0.05)
                self.assertEqual({one["client"] for one in found["set_apart"]["named"]}, abusers)

                self.assertEqual(weir("check-config", "--strict", policy).returncode, 0)
                self.assertEqual(weir("fmt", "--check", policy).returncode, 0)
                written = policy.read_text(encoding="utf-8")
                self.assertEqual(written, found["policy"])
                denied = self.replay(log, written)
                lines = text.splitlines()
                hit, others, others_denied = set(), 0, 0
                for number, line in enumerate(lines[1:], 2):
                    client = line.split(",")[1]
                    if client in abusers:
                        hit |= {client} if number in denied else set()
                    else:
                        others += 1
                        others_denied += number in denied
                self.assertEqual(hit, abusers)
                self.assertLess(others_denied, 0.001 * others)

    def test_a_column_is_read_as_user_and_the_policy_says_so(self):
        text, abusers, _, _ = known_log(3)
        log = self.write("known.csv", text)
        ran = self.calibrate(log, "--key", "account", "--policy", "-")
        self.assertIn("--column user=account", ran.stdout)
        self.assertIn("    key: user\n", ran.stdout)
        policy = self.write("learnt.yaml", ran.stdout)
        self.assertEqual(weir("check-config", "--strict", policy).stdout, f"{policy}: ok, 2 rules\n")
        denied = self.replay(log, ran.stdout, "--column", "user=account")
        lines = text.splitlines()
        hit = {lines[number - 1].split(",")[1] for number in denied}
        self.assertLessEqual(abusers, hit)


class Sources(InFolder):
    LOG = "examples/logs/shop.log.gz"

    def test_standard_input_is_as_good_as_a_file(self):
        log = SOURCE / self.LOG
        from_file = json.loads(self.calibrate(log, "--json").stdout)
        plain = gzip.decompress(log.read_bytes()).decode()
        from_input = json.loads(self.calibrate("-", "--json", text=plain).stdout)
        for name in ("behaviour", "set_apart", "would_have_denied", "clients", "rules"):
            for named in (from_file, from_input):
                for one in named["set_apart"]["named"]:
                    one.pop("file", None)
            self.assertEqual(from_file[name], from_input[name])

    def test_nothing_is_left_in_the_folder_for_temporary_files(self):
        folder = self.folder / "temporary"
        folder.mkdir()
        plain = gzip.decompress((SOURCE / self.LOG).read_bytes()).decode()
        ran = weir("calibrate", "-", text=plain, env={"TMPDIR": str(folder)})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(list(folder.iterdir()), [])
        ran = weir("calibrate", "-", text=plain, env={"TMPDIR": str(folder / "none")})
        self.assertEqual(ran.returncode, 1)
        self.assertIn("TMPDIR", ran.stderr)

    def test_the_example_is_what_its_generator_makes(self):
        made = self.folder / "shop.log.gz"
        subprocess.run([sys.executable, SOURCE / "tools" / "make_example_log.py", made], check=True,
                       timeout=SECONDS)
        self.assertEqual(gzip.decompress(made.read_bytes()),
                         gzip.decompress((SOURCE / self.LOG).read_bytes()))

    def test_ip_and_path_together_make_a_policy_without_advice(self):
        policy = self.folder / "learnt.yaml"
        self.calibrate(SOURCE / self.LOG, "--key", "ip+path", "--policy", policy)
        ran = weir("check-config", "--strict", policy)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn("/auth/login", policy.read_text(encoding="utf-8"))

    def test_an_existing_policy_is_replaced_and_keeps_its_mode(self):
        policy = self.write("learnt.yaml", "rules: []\n")
        policy.chmod(0o640)
        self.calibrate(SOURCE / self.LOG, "--policy", policy)
        self.assertIn("per-ip", policy.read_text(encoding="utf-8"))
        self.assertEqual(policy.stat().st_mode & 0o777, 0o640)

    def test_a_page_is_written(self):
        page = self.folder / "report.html"
        self.calibrate(SOURCE / self.LOG, "--html", page)
        self.assertIn("203.0.113.66", page.read_text(encoding="utf-8"))


class BadInput(InFolder):
    def test_wrong_calls(self):
        log = SOURCE / Sources.LOG
        for arguments in (["--quantile", "20"], ["--quantile", "101"], ["--margin", "0.5"],
                          ["--quantile", "nan"], ["--margin", "nan"], ["--policy", log],
                          ["--key", "ip+"], ["--horizon", "soon"], ["--max-bad", "many"]):
            ran = weir("calibrate", log, *arguments)
            self.assertEqual((ran.returncode, ran.stdout), (2, ""), arguments)
            self.assertNotEqual(ran.stderr, "")
        self.assertEqual(weir("calibrate").returncode, 2)

    def test_a_pipe_is_not_waited_for_a_second_time(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        ran = self.calibrate(pipe, code=1)
        self.assertIn("it is a pipe, which can be read only once", ran.stderr)

    def test_what_cannot_be_opened_or_used_is_said(self):
        ran = self.calibrate(self.folder / "none.log", code=1)
        self.assertIn("none.log", ran.stderr)
        rubbish = self.write("rubbish.log", "nothing of use\n" * 20)
        ran = self.calibrate(rubbish, code=1)
        self.assertIn("rubbish.log", ran.stderr)
        self.assertEqual(ran.stdout, "")
        columns = self.write("columns.csv", "time,ip\n2026-03-02T00:00:00Z,10.0.0.1\n")
        ran = self.calibrate(columns, "--key", "account", code=1)
        self.assertIn("account", ran.stderr)
        self.assertIn("ip", ran.stderr)

    def test_lines_that_cannot_be_used_are_counted_and_too_many_are_a_failure(self):
        log = gzip.decompress((SOURCE / Sources.LOG).read_bytes()).decode().splitlines(True)
        mixed = self.write("mixed.log", "".join(
            line if number % 10 else "rubbish\n" for number, line in enumerate(log, 1)))
        ran = self.calibrate(mixed, "--json", code=1)
        found = json.loads(ran.stdout)
        self.assertEqual(found["left_out"], len(log) // 10 + 1)
        self.assertTrue(any("left out" in warning for warning in found["warnings"]))
        self.assertIn("--max-bad", ran.stderr)
        self.calibrate(mixed, "--max-bad", "20%")

    def test_a_log_that_is_cut_short_is_not_passed_off_as_whole(self):
        whole = (SOURCE / Sources.LOG).read_bytes()
        cut = self.folder / "cut.log.gz"
        cut.write_bytes(whole[: len(whole) // 2])
        ran = self.calibrate(cut, "--json", code=1)
        found = json.loads(ran.stdout)
        self.assertTrue(found["partial"])
        self.assertIn("not all of the log", found["policy"])
        self.assertIn("a part of the log", ran.stderr)

    def test_a_policy_that_cannot_be_written_is_a_failure(self):
        for file in (self.folder / "none" / "learnt.yaml", self.folder):
            ran = self.calibrate(SOURCE / Sources.LOG, "--policy", file, code=1)
            self.assertIn(str(file), ran.stderr)


if __name__ == "__main__":
    SOURCE, PROGRAM = pathlib.Path(sys.argv[1]), sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

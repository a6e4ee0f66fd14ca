#!/usr/bin/env python3
"""Runs `weir replay` on access logs as they are found on disks, whole and broken.

    lab_logs_test.py SOURCE PROGRAM [TEST...]
"""

import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SECONDS = 120
PROGRAM = ""

POLICY = """\
rules:
  - name: per-ip
    key: ip
    limit: 20/min
    algorithm: sliding_window
  - name: login
    match: { path: /auth/login, method: POST }
    key: ip
    limit: 2/min
    algorithm: sliding_log
"""


def line(second, address="192.0.2.1", path="/", method="GET"):
    clock = f"{10 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return (f'{address} - - [02/Jan/2026:{clock} +0000] "{method} {path} HTTP/1.1" 200 5 '
            f'"-" "curl/8.8.0"\n').encode()


def lines(count):
    return [line(i // 10, f"192.0.2.{i % 50}", f"/item/{i}") for i in range(count)]


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.policy = self.write("weir.yaml", POLICY.encode())

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def run_it(self, *words, text=None):
        return subprocess.run([PROGRAM, "replay", "-c", str(self.policy), *map(str, words)],
                              input=text, capture_output=True, timeout=SECONDS, check=False)

    def report(self, *words, ends_with=0, text=None):
        ran = self.run_it("--json", *words, text=text)
        self.assertEqual(ran.returncode, ends_with, ran.stderr.decode())
        return json.loads(ran.stdout)


class GoodLogs(Replay):
    def test_are_reported_for_people_and_for_programs(self):
        log = self.write("access.log", b"".join(line(0) for _ in range(50)) + line(0, "192.0.2.9"))
        ran = self.run_it(log)
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        self.assertIn("ip=192.0.2.1", ran.stdout.decode())
        report = self.report(log)
        self.assertEqual((report["requests"], report["denied"], report["left_out"]), (51, 30, 0))
        self.assertEqual(report["rules"][0]["keys_denied"], 1)
        self.assertEqual(report["top"][0],
                         {"key": "ip=192.0.2.1", "rule": "per-ip", "denied": 30, "requests": 50,
                          "shadow": False})

    def test_come_from_standard_input_compressed_or_not(self):
        text = b"".join(lines(2000))
        for content in (text, gzip.compress(text)):
            self.assertEqual(self.report("-", text=content)["requests"], 2000)

    def test_are_judged_for_pipelines(self):
        log = self.write("access.log", b"".join(line(0) for _ in range(40)))
        self.assertEqual(self.run_it(log, "--fail-if-denied", "50%").returncode, 0)
        ran = self.run_it(log, "--fail-if-denied", "49.9 %")
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b"--fail-if-denied", ran.stderr)
        self.assertIn(b"per-ip", ran.stdout)

    def test_have_their_decisions_written_in_their_order(self):
        order = list(range(3000))
        shuffled = random.Random(4)
        order.sort(key=lambda i: i + shuffled.random() * 100)
        log = self.write("access.log", b"".join(line(i // 20, f"192.0.2.{i % 7}") for i in order))
        decisions = self.folder / "decisions.jsonl"
        report = self.report(log, "--decisions", decisions)
        made = [json.loads(text) for text in decisions.read_text().splitlines()]
        self.assertEqual([each["line"] for each in made], list(range(1, 3001)))
        self.assertEqual(sum(not each["allowed"] for each in made), report["denied"])
        self.assertEqual(list(made[0]), ["line", "allowed", "rule", "remaining", "retry_after_ms"])
        again = self.folder / "again.jsonl"
        self.report(log, "--decisions", again, "--threads", "1")
        self.assertEqual(decisions.read_bytes(), again.read_bytes())

    def test_show_what_changes_between_two_policies(self):
        other = self.write("other.yaml", POLICY.replace("20/min", "30/min").encode())
        log = self.write("access.log", b"".join(line(0) for _ in range(40)))
        page = self.folder / "page.html"
        report = self.report(log, "--against", other, "--html", page)
        self.assertEqual(report["against"]["newly_allowed"]["requests"], 10)
        self.assertEqual(report["against"]["newly_denied"]["requests"], 0)
        self.assertGreater(page.stat().st_size, 0)


class BrokenLogs(Replay):
    def test_that_are_truncated_are_used_up_to_there(self):
        whole = gzip.compress(b"".join(lines(20_000)))
        log = self.write("access.log.gz", whole[:len(whole) // 2])
        report = self.report(log, ends_with=1)
        self.assertTrue(report["partial"])
        self.assertGreater(report["requests"], 5_000)
        self.assertIn("ends in the middle", report["logs"][0]["cut_short"])
        ran = self.run_it(log)
        self.assertIn("This report is partial", ran.stdout.decode())
        self.assertIn(b"not all of the log could be read", ran.stderr)

    def test_with_binary_rubbish_are_counted(self):
        junk = random.Random(5)
        text = lines(3000)
        for _ in range(20):
            text.insert(junk.randrange(len(text)),
                        junk.randbytes(200).replace(b"\n", b"?") + b"\n")
        report = self.report(self.write("access.log", b"".join(text)))
        self.assertEqual((report["requests"], report["logs"][0]["unparsed"]), (3000, 20))
        self.assertEqual(len(report["logs"][0]["examples"]), 5)

    def test_with_lines_of_a_megabyte_are_counted(self):
        long = b"x" * (1 << 20) + b"\n"
        log = self.write("access.log", line(0) + long + line(1) + long + line(2))
        report = self.report(log, "--max-bad", "50%")
        self.assertEqual((report["requests"], report["logs"][0]["too_long"]), (3, 2))
        self.assertEqual(self.run_it(log).returncode, 1)

    def test_take_no_more_memory_for_a_line_without_end(self):
        small = self.write("small.log", b"".join(lines(2000)))
        large = self.folder / "large.log"
        with large.open("wb") as out:
            out.write(b"".join(lines(1000)))
            for _ in range(100):
                out.write(b"y" * (1 << 20))
            out.write(b"\n" + b"".join(lines(2000)[1000:]))
        memory = {}
        for log in (small, large):
            with subprocess.Popen([PROGRAM, "replay", "-c", str(self.policy), str(log)],
                                  stdout=subprocess.DEVNULL) as process:
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            memory[log] = used.ru_maxrss
        self.assertLess(memory[large] - memory[small], 32 * 1024)

    def test_with_too_much_left_out_do_not_end_well(self):
        log = self.write("access.log", b"".join(lines(90)) + b"rubbish\n" * 10)
        ran = self.run_it(log)
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b"--max-bad", ran.stderr)
        self.assertIn(b"left out", ran.stdout)
        self.assertEqual(self.run_it(log, "--max-bad", "10%").returncode, 0)

    def test_out_of_order_are_sorted_within_the_horizon_and_counted_beyond(self):
        log = self.write("access.log", line(100) + line(50) + line(30) + line(101))
        report = self.report(log, ends_with=1)
        self.assertEqual((report["requests"], report["logs"][0]["late"]), (3, 1))
        self.assertEqual(self.report(log, "--horizon", "2min")["requests"], 4)


class BadCalls(Replay):
    def test_do_not_switch_off_what_was_asked_for(self):
        log = self.write("access.log", b"".join(line(0) for _ in range(50)))
        ran = self.run_it(log, "--fail-if-denied", "")
        self.assertEqual(ran.returncode, 2)

    def test_say_what_is_wrong(self):
        good = self.write("access.log", line(0))
        wrong = self.write("wrong.yaml", b"rules:\n  - { name: a, key: ip, limit: 5/fortnight }\n")
        diary = self.write("diary.txt", b"dear diary\n")
        untimed = self.write("untimed.csv", b"ip,path\n1.2.3.4,/\n")
        for words, code, message in (
                ([self.folder / "none.log"], 1, "there is no such file"),
                ([self.folder], 1, "it is a folder"),
                ([diary], 1, "nothing in it looks like a log"),
                ([untimed], 1, "no column says the time; there are ip, path"),
                ([good, "--format", "yaml"], 2, "--format"),
                ([good, "--column", "time"], 2, "--column"),
                ([good, "--column", "colour=x"], 2, "there is no"),
                ([good, "--horizon", "soon"], 2, "--horizon"),
                ([good, "--max-bad", "many"], 2, "--max-bad"),
                ([good, "--fail-if-denied", "101%"], 2, "--fail-if-denied"),
                ([good, "--decisions", "/nonexistent/a"], 1, "/nonexistent/a"),
                ([good, "--html", "/nonexistent/a"], 1, "/nonexistent/a"),
                ([good, "--against", wrong], 1, "E101"),
                ([], 2, "LOG")):
            with self.subTest(words):
                ran = self.run_it(*words)
                self.assertEqual(ran.returncode, code, ran.stderr.decode())
                self.assertIn(message, ran.stderr.decode())

    def test_are_never_overwritten(self):
        content = b"".join(lines(9000))
        log = self.write("a.log", content)
        (self.folder / "other.log").hardlink_to(log)
        for words in (["--decisions", log], ["--html", log],
                      ["--decisions", self.folder / "other.log"], ["--html", self.policy],
                      ["--decisions", "-"], ["--decisions", self.folder / "new",
                                             "--html", self.folder / "new"]):
            with self.subTest(words=words):
                ran = self.run_it(log, *words)
                self.assertEqual(ran.returncode, 2, ran.stderr)
                self.assertEqual(log.read_bytes(), content)
                self.assertEqual(self.policy.read_text(), POLICY)
                self.assertFalse((self.folder / "new").exists())
        self.assertEqual(self.run_it(log, "--html", "/dev/null", "--decisions",
                                     "/dev/null").returncode, 0)

    def test_from_a_standard_input_that_cannot_be_read_are_not_taken_for_empty(self):
        for words in (["replay", "-", "-c", self.policy], ["calibrate", "-"]):
            folder = os.open(self.folder, os.O_RDONLY)
            self.addCleanup(os.close, folder)
            ran = subprocess.run([PROGRAM, *words], stdin=folder, capture_output=True,
                                 timeout=SECONDS, check=False)
            self.assertEqual((ran.returncode, ran.stdout), (1, b""))
            self.assertIn(b"standard input: it cannot be read any further", ran.stderr)

    def test_have_their_decisions_refused_where_nothing_can_be_kept(self):
        log = self.write("a.log", b"".join(lines(10)))
        ran = subprocess.run([PROGRAM, "replay", "-c", self.policy, log, "--decisions",
                              "/proc/self/fd/1"], env={"TMPDIR": str(self.folder / "none")},
                             capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn(b"nothing can be kept beside it", ran.stderr)

    def test_tell_what_shadows_would_have_denied_from_what_was_denied(self):
        self.policy.write_text(POLICY + "    mode: shadow\n")
        log = self.write("a.log", b"".join(line(i, path="/auth/login", method="POST")
                                           for i in range(10)))
        top = self.report(log)["top"]
        self.assertEqual([(key["rule"], key["denied"], key["shadow"]) for key in top],
                         [("login", 8, True)])
        self.assertIn("login (shadow)", self.run_it(log).stdout.decode())

    def test_show_no_secrets(self):
        self.policy = self.write("keys.yaml", b"""\
rules:
  - { name: by-key, key: api_key, limit: 1/min }
  - { name: by-token, match: { header.authorization: present }, key: header.authorization,
      limit: 1/min }
""")
        log = self.write("keys.jsonl", b"".join(
            b'{"ts":%d,"api_key":"SECRETKEY123","authorization":"Bearer TOKEN999"}\n' % i
            for i in range(10)))
        page = self.folder / "page.html"
        for words in ((), ("--json",)):
            ran = self.run_it(log, "--html", page, *words)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            for shown in (ran.stdout, page.read_bytes()):
                self.assertIn("api_key=SE…".encode(), shown)
                self.assertNotIn(b"CRETKEY", shown)
                self.assertNotIn(b"TOKEN999", shown)

    def test_warn_of_what_either_policy_forgets(self):
        log = self.write("many.csv", b"ts,ip\n" + b"".join(
            b"%d,10.%d.%d.%d\n" % (i // 5000, i % 8, i // 8 % 256, i // 2048 % 256)
            for i in range(400_000)))
        small = self.write("small.yaml", POLICY.encode() + b"memory: { cap: 2MiB }\n")
        warnings = self.report(log, "--against", small)["warnings"]
        self.assertTrue([text for text in warnings if "memory.cap of" in text
                         and "small.yaml" in text], warnings)

    def test_report_also_if_decisions_cannot_be_written(self):
        log = self.write("access.log", b"".join(lines(3000)))
        report = self.report(log, "--decisions", "/dev/full", ends_with=1)
        self.assertEqual(report["requests"], 3000)

    def test_warn_of_names_where_addresses_should_be(self):
        log = self.write("access.log", b"".join(
            line(0, f"host{i}.example" if i % 2 else f"192.0.2.{i}") for i in range(20)))
        warnings = self.report(log)["warnings"]
        self.assertTrue([text for text in warnings if text.startswith(
            '10 of 20 requests have no address that can be read, the first "host1.example"')],
            warnings)
        log = self.write("access.log", b"".join(line(0, f"host{i}.example") for i in range(20)))
        warnings = self.report(log)["warnings"]
        self.assertTrue([text for text in warnings if "No request of the log has ip" in text],
                        warnings)

    def test_that_find_no_request_do_not_end_well(self):
        ran = self.run_it(self.write("empty.log", b""))
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b"not one request", ran.stderr)

    def test_are_told_which_rules_a_log_says_nothing_of(self):
        self.policy.write_text("rules:\n  - { name: keys, key: api_key, limit: 5/min }\n"
                               "  - { name: held, key: ip, limit: 5 concurrent lease 1s }\n",
                               encoding="utf-8")
        warnings = " ".join(self.report(self.write("access.log", line(0)))["warnings"])
        self.assertIn("api_key, which keys asks for", warnings)
        self.assertIn("held", warnings)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    PROGRAM = sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

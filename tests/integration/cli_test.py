#!/usr/bin/env python3
"""Runs the program `weir` as people do, and reads what it says.

    cli_test.py SOURCE PROGRAM [TEST...]

Nothing here sleeps for a time and hopes: a running service is waited for by the lines it logs.
"""

import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SECONDS = 20
SOURCE = pathlib.Path()
PROGRAM = ""


def weir(*arguments, text=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], input=text, capture_output=True,
                          text=True, timeout=SECONDS, check=False)


def policy(*limits):
    """A policy with a rule for each limit."""
    rules = [f"  - name: rule-{number}\n    key: ip\n    limit: {limit}\n    algorithm: sliding_window\n"
             for number, limit in enumerate(limits)]
    return "rules:\n" + "".join(rules)


def served(*limits):
    """The same, on ports that are free."""
    return "listen: { http: 127.0.0.1:0, resp: 127.0.0.1:0 }\n" + policy(*limits)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


class Program(unittest.TestCase):
    def test_says_its_version_and_how_it_is_used(self):
        ran = weir("--version")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertRegex(ran.stdout, r"^weir \d+\.\d+\.\d+\n$")
        self.assertEqual(weir("serve", "--help").returncode, 0)
        ran = weir()
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertIn("check-config", ran.stderr)

    def test_does_not_end_well_if_the_disk_is_full(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            ran = subprocess.run([PROGRAM, "schema"], stdout=full, stderr=subprocess.PIPE,
                                 text=True, timeout=SECONDS, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (1, "weir: the output cannot be written\n"))


class CheckConfig(InFolder):
    MISTAKES = """\
store: postgres://db
trusted_proxies: [10.0.0.0/8, nonsense]
mystery: 1
rules:
  - name: a
    key: ip
    limit: 5/fortnight
  - name: a
    key: adress
    limit: 5/min
    strict: sometimes
  - name: c
    key: ip
    limit: { tier: gold }
    algorithm: bucket
  - key: ip
    limit: 0/min
  - name: d
    match: { path: no-slash }
    key: ip
    limit: 10/min
    enforce_percent: 200
"""
    # Line and code of what must be found.
    FOUND = {
        (1, "E119"), (2, "E107"), (3, "E010"), (7, "E101"), (8, "E102"), (9, "E104"), (11, "E013"),
        (14, "E109"), (15, "E016"), (16, "E018"), (17, "E101"), (19, "E106"), (22, "E118"),
    }

    def test_finds_all_mistakes_at_once(self):
        path = self.write("weir.yaml", self.MISTAKES)
        ran = weir("check-config", path)
        *lines, summary = ran.stdout.splitlines()
        self.assertEqual(ran.returncode, 1)
        found = []
        for line in lines:
            self.assertTrue(line.startswith(f"{path}:"), line)
            place, _, text = line.removeprefix(f"{path}:").partition(": ")
            number, _, column = place.partition(":")
            self.assertGreater(int(column), 0)
            found.append((int(number), text.split()[0]))
        self.assertLessEqual(self.FOUND, set(found), ran.stdout)
        self.assertEqual([line for line, _ in found], sorted(line for line, _ in found))
        errors = sum(code.startswith("E") for _, code in found)
        warnings = len(found) - errors
        self.assertEqual(summary, f"{path}: {errors} errors, {warnings} warning"
                                  + ("" if warnings == 1 else "s"))

    def test_reads_standard_input(self):
        ran = weir("check-config", "-", text=policy("5/min"))
        self.assertEqual((ran.returncode, ran.stdout), (0, "stdin: ok, 1 rule\n"))
        ran = weir("check-config", "-", text=policy("5/fortnight"))
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stdout, r"^stdin:4:\d+: E101 ")

    def test_says_that_a_file_is_missing(self):
        path = self.folder / "none.yaml"
        ran = weir("check-config", path)
        self.assertEqual(ran.returncode, 1)
        self.assertIn(f"{path}:", ran.stdout)
        self.assertIn("E017", ran.stdout)

    def test_is_content_with_the_examples(self):
        for path in sorted((SOURCE / "examples" / "policies").glob("*.yaml")):
            ran = weir("check-config", "--strict", path)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertRegex(ran.stdout, r"^[^\n]*: ok, \d+ rules?\n$")


class Explain(unittest.TestCase):
    def explain(self, request):
        ran = weir("explain", "-c", SOURCE / "examples/policies/shop.yaml", "--request", request)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def test_a_stranger_counts_by_address_alone(self):
        said = self.explain('{"ip": "203.0.113.9", "method": "GET", "path": "/"}')
        self.assertTrue(said.startswith("allowed: nearest to its limit is per-ip, 199 of 200 left\n"),
                        said)
        self.assertIn("per-ip: applies\n  key        ip=203.0.113.9\n", said)
        self.assertIn("per-user: does not apply: user is absent\n", said)

    def test_a_user_has_the_limits_of_the_tier(self):
        said = self.explain('{"ip": "203.0.113.9", "user": "ann", "tier": "pro", "path": "/"}')
        self.assertIn("tier: pro\n", said)
        self.assertIn("limit      100/s burst 200, token_bucket, from tiers.pro.requests\n", said)
        said = self.explain('{"ip": "203.0.113.9", "user": "ann", "path": "/"}')
        self.assertIn("tier: free (default, because the request has none)\n", said)

    def test_a_login_has_the_tightest_limit(self):
        said = self.explain('{"ip": "203.0.113.9", "method": "POST", "path": "/auth/login"}')
        self.assertTrue(said.startswith("allowed: nearest to its limit is credentials, 4 of 5 left\n"),
                        said)
        self.assertIn("write: applies\n", said)
        self.assertIn("mode       shadow\n", said)

    def test_keys_of_clients_stay_secret(self):
        said = self.explain('{"api_key": "sk-verysecret", "path": "/search/a"}')
        self.assertIn("search: applies\n  key        api_key~=", said)
        self.assertNotIn("verysecret", said)

    def test_wrong_requests_are_wrong_usage(self):
        ran = weir("explain", "-c", SOURCE / "examples/policies/shop.yaml", "--request", '{"usr": 1}')
        self.assertEqual(ran.returncode, 2)
        self.assertIn('"usr"', ran.stderr)
        self.assertEqual(ran.stdout, "")


class Format(InFolder):
    UNTIDY = """\
# At the top.
rules:
    -   name:   per-ip     # Behind a value.
        # Before a key.
        key: ip
        limit:   5/min



# At the end.
"""

    def test_keeps_every_comment_and_what_is_said(self):
        path = self.write("weir.yaml", self.UNTIDY)
        before = weir("explain", "-c", path, "--request", "{}").stdout
        self.assertEqual(weir("fmt", "--check", path).returncode, 1)
        self.assertEqual(path.read_text(encoding="utf-8"), self.UNTIDY)
        ran = weir("fmt", path)
        self.assertEqual((ran.returncode, ran.stdout), (0, f"{path}\n"))
        after = path.read_text(encoding="utf-8")
        for comment in ("# At the top.", "# Behind a value.", "# Before a key.", "# At the end."):
            self.assertIn(comment, after)
        self.assertIn("  - name: per-ip", after)
        self.assertEqual(weir("explain", "-c", path, "--request", "{}").stdout, before)
        self.assertEqual(weir("fmt", "--check", path).returncode, 0)

    def test_examples_are_in_form(self):
        ran = weir("fmt", "--check", *sorted((SOURCE / "examples" / "policies").glob("*.yaml")))
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))


class Schema(unittest.TestCase):
    def test_is_the_one_among_the_documents(self):
        text = (SOURCE / "docs" / "weir.schema.json").read_text(encoding="utf-8")
        self.assertEqual(weir("schema").stdout, text)


class Documents(unittest.TestCase):
    BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)

    def test_show_what_the_program_prints(self):
        pages = [SOURCE / "docs" / name for name in ("tools.md", "choosing.md")]
        blocks = [self.BLOCK.findall(page.read_text(encoding="utf-8")) for page in pages]
        self.assertTrue(all(blocks))
        path = f"{pathlib.Path(PROGRAM).resolve().parent}:{os.environ['PATH']}"
        for block in sum(blocks, []):
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                ran = subprocess.run(["bash", "-c", f"({command}) 2>&1"], cwd=SOURCE, timeout=SECONDS,
                                     capture_output=True, text=True, check=False,
                                     env={**os.environ, "PATH": path})
                self.assertEqual(ran.stdout, expected, command)


class Service:
    """A running `weir serve`, and the lines it prints."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([PROGRAM, "serve", *map(str, arguments)], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.lines = queue.Queue()
        self.seen = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def wait_for(self, words):
        """The next line that has these words."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"no line with {words!r} after\n" + "\n".join(self.seen))
            self.seen.append(line)
            if words in line:
                return line

    def tell(self, number):
        os.kill(self.process.pid, number)

    def end(self):
        """Stops it, by its id, whatever became of the test. What was covered is told at its end,
        so it is asked first."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=SECONDS)
        self.reader.join(timeout=SECONDS)
        self.process.stdout.close()


class Serve(InFolder):
    def start(self, path, *arguments):
        service = Service("-c", path, *arguments)
        self.addCleanup(service.end)
        service.wait_for("ready")
        return service

    def replace(self, path, text):
        """As editors and tools do it: by renaming."""
        os.replace(self.write("new.yaml", text), path)

    def test_takes_up_a_file_that_was_replaced(self):
        path = self.write("weir.yaml", served("5/min"))
        service = self.start(path)
        self.replace(path, served("6/min"))
        service.wait_for("version 2 is in force")
        self.replace(path, served("6/min", "7/min"))
        self.assertIn("new: rule-1", service.wait_for("version 3 is in force"))

    def test_says_where_it_listens(self):
        service = self.start(self.write("weir.yaml", served("5/min")))
        for protocol in ("http", "resp"):
            self.assertTrue(any(f"listening protocol={protocol} address=127.0.0.1:" in line
                                for line in service.seen), service.seen)

    def test_does_not_start_where_somebody_listens(self):
        service = self.start(self.write("weir.yaml", served("5/min")))
        taken = next(re.search(r"protocol=http address=(\S+)", line)[1]
                     for line in service.seen if "protocol=http" in line)
        path = self.write("second.yaml", f"listen: {{ http: {taken} }}\nrules: [{{ name: a, key: ip, limit: 5/min }}]\n")
        ran = weir("serve", "-c", path)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("in use", ran.stderr)

    def test_logs_for_programs(self):
        service = self.start(self.write("weir.yaml", served("5/min")), "--log", "json")
        events = [json.loads(line) for line in service.seen if line.startswith("{")]
        self.assertIn("127.0.0.1:", next(event["address"] for event in events
                                         if event["text"] == "listening"))

    def test_stays_with_its_policy_if_the_file_is_broken(self):
        path = self.write("weir.yaml", served("5/min"))
        service = self.start(path)
        self.replace(path, served("5/fortnight"))
        self.assertIn(" error ", service.wait_for("the policy that was in force stays"))
        service.wait_for("E101")
        self.replace(path, served("6/min"))
        service.wait_for("version 2 is in force")

    def test_refuses_what_looks_like_an_accident_unless_forced(self):
        path = self.write("weir.yaml", served("500/min"))
        service = self.start(path)
        forced = self.start(path, "--force-reload")
        self.replace(path, served("5/min"))
        self.assertIn(" warning ", service.wait_for("looks like an accident"))
        forced.wait_for("version 2 is in force")

    def test_follows_links_that_are_swapped(self):
        """As Kubernetes does with config maps: the file is a link through a link to a folder."""
        for version, limit in (("v1", "5/min"), ("v2", "6/min")):
            (self.folder / version).mkdir()
            self.write(f"{version}/weir.yaml", served(limit))
        (self.folder / "..data").symlink_to("v1")
        path = self.folder / "weir.yaml"
        path.symlink_to("..data/weir.yaml")
        service = self.start(path)
        (self.folder / "..data_tmp").symlink_to("v2")
        os.replace(self.folder / "..data_tmp", self.folder / "..data")
        service.wait_for("version 2 is in force")

    def test_takes_up_a_file_written_in_pieces_when_it_is_whole(self):
        before = served("5/min", "6/min", "7/min")
        after = before + policy("8/min").replace("rules:\n", "").replace("rule-0", "rule-3")
        path = self.write("weir.yaml", before)
        service = self.start(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(after[:110])
            file.flush()
            # What is there now is the beginning of a policy, and never in force.
            service.wait_for("the policy that was in force stays")
            file.write(after[110:])
        line = service.wait_for("is in force")
        while "version" not in line:  # Another word about the half.
            line = service.wait_for("is in force")
        self.assertIn("version 2", line)
        self.assertIn("new: rule-3", line)

    def test_reads_again_on_hangup_and_ends_well_on_terminate(self):
        path = self.write("weir.yaml", served("5/min"))
        service = self.start(path)
        service.tell(signal.SIGHUP)
        service.wait_for("say what is in force already")
        self.replace(path, served("6/min"))
        service.wait_for("version 2 is in force")
        service.tell(signal.SIGTERM)
        self.assertEqual(service.process.wait(timeout=SECONDS), 0)

    def test_ends_well_on_interrupt(self):
        service = self.start(self.write("weir.yaml", served("5/min")))
        service.tell(signal.SIGINT)
        self.assertEqual(service.process.wait(timeout=SECONDS), 0)

    def test_does_not_start_with_a_policy_that_is_wrong(self):
        ran = weir("serve", "-c", self.write("weir.yaml", served("5/fortnight")))
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("E101", ran.stderr)

    def test_does_not_start_without_its_file(self):
        ran = weir("serve", "-c", self.folder / "none.yaml")
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("E017", ran.stderr)

    def test_does_not_start_without_the_password_of_its_store(self):
        store = "store: redis://:env:WEIR_NO_SUCH_VARIABLE@127.0.0.1:6379\n"
        path = self.write("weir.yaml", store + served("5/min"))
        ran = weir("serve", "-c", path)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn(f"{path}: store: redis://127.0.0.1:6379: ", ran.stderr)
        self.assertIn("WEIR_NO_SUCH_VARIABLE", ran.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    SOURCE, PROGRAM = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

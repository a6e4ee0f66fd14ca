#!/usr/bin/env python3
"""A service that is stopped and started again goes on where it was: memory: { snapshot: FILE }."""

import json
import os
import pathlib
import resource
import stat
import tempfile
import unittest
import urllib.error
import urllib.request

import daemon

# Every algorithm, three of each; nothing comes back within the time that a test may take.
RULES = """
rules:
  - { name: token, match: { path: /token }, key: user, limit: 3/200day }
  - { name: leaky, match: { path: /leaky }, key: user, limit: 3/200day, algorithm: leaky_bucket }
  - { name: fixed, match: { path: /fixed }, key: user, limit: 3/200day, algorithm: fixed_window }
  - { name: calendar, match: { path: /calendar }, key: user, limit: 3/year,
      algorithm: fixed_window, align: calendar }
  - { name: sliding, match: { path: /sliding }, key: user, limit: 3/200day,
      algorithm: sliding_window }
  - { name: strict, match: { path: /strict }, key: user, limit: 3/200day,
      algorithm: sliding_window, strict: true }
  - { name: fine, match: { path: /fine }, key: user, limit: 3/200day,
      algorithm: sliding_window, strict: true, sub_windows: 50 }
  - { name: log, match: { path: /log }, key: user, limit: 3/200day, algorithm: sliding_log }
  - { name: places, match: { path: /places }, key: user, limit: 3 concurrent lease 1h,
      algorithm: concurrency }
  - { name: banning, match: { path: /banning }, key: user, limit: 1/s,
      block: { after: 2 denials in 1h, for: 1h } }
"""
COUNTED = ["token", "leaky", "fixed", "calendar", "sliding", "strict", "fine", "log"]
MEMORY = "memory: { snapshot: '%s' }\n"


class Kept(unittest.TestCase):
    """Services one after the other, with the same file between them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-snapshot-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "state"

    def service(self, rules=RULES, **options):
        return daemon.Daemon(MEMORY % self.file + "manage: open\n" + rules, **options)

    def ask(self, service, verb, **body):
        request = urllib.request.Request(f"http://127.0.0.1:{service.http}/v1/{verb}",
                                         data=json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=daemon.PATIENCE) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def check(self, service, path, user="ann", **body):
        return self.ask(service, "check", user=user, path=f"/{path}", **body)[1]

    def exhaust(self, service, path, user="ann"):
        """How many passed, and the denial."""
        for passed in range(100):
            decision = self.check(service, path, user)
            if not decision["allowed"]:
                return passed, decision
        self.fail("never denied")

    # --- What survives ---

    def test_exhausted_keys_of_every_algorithm_are_still_exhausted(self):
        denials = {}
        with self.service() as first:
            for path in COUNTED:
                passed, denials[path] = self.exhaust(first, path)
                self.assertEqual(passed, 3, path)
        with self.service() as second:
            second.wait_for("goes on with a snapshot")
            for path in COUNTED:
                decision = self.check(second, path)
                self.assertFalse(decision["allowed"], path)
                waited = denials[path]["retry_after_ms"] - decision["retry_after_ms"]
                self.assertGreaterEqual(waited, 0, path)
                self.assertLess(waited, 1000 * daemon.PATIENCE, path)
                self.assertTrue(self.check(second, path, "bob")["allowed"], path)

    def test_what_was_used_of_a_limit_stays_used(self):
        with self.service() as first:
            for path in COUNTED:
                self.assertEqual(self.check(first, path)["remaining"], 2, path)
        with self.service() as second:
            for path in COUNTED:
                self.assertEqual(self.check(second, path)["remaining"], 1, path)

    def test_two_restarts_are_no_different_from_one(self):
        with self.service() as first:
            self.exhaust(first, "log")
            self.exhaust(first, "fixed")
        for _ in range(2):
            with self.service() as again:
                self.assertFalse(self.check(again, "log")["allowed"])
                self.assertFalse(self.check(again, "fixed")["allowed"])

    def test_a_limit_that_comes_with_the_request_goes_on(self):
        limit = {"key": "ann", "limit": "3/200day", "algorithm": "token_bucket"}
        with self.service() as first:
            self.assertTrue(self.ask(first, "limit", cost=3, **limit)[1]["allowed"])
        with self.service() as second:
            self.assertFalse(self.ask(second, "limit", **limit)[1]["allowed"])

    def test_a_ban_goes_on(self):
        with self.service() as first:
            self.assertEqual(self.exhaust(first, "banning")[0], 1)
            self.assertEqual(self.check(first, "banning")["reason"], "banned")
        with self.service() as second:
            decision = self.check(second, "banning")
            self.assertEqual(decision["reason"], "banned")
            self.assertGreater(decision["retry_after"], 3000)

    def test_a_lease_is_released_after_the_restart(self):
        with self.service() as first:
            leases = [self.check(first, "places")["reservation"] for _ in range(3)]
            self.assertFalse(self.check(first, "places")["allowed"])
        with self.service() as second:
            self.assertFalse(self.check(second, "places")["allowed"])
            self.assertEqual(self.ask(second, "release", reservation=leases[1])[0], 200)
            self.assertEqual(self.ask(second, "release", reservation=leases[1])[0], 404)
            self.assertTrue(self.check(second, "places")["allowed"])
            self.assertFalse(self.check(second, "places")["allowed"])

    def test_a_reservation_is_settled_after_the_restart(self):
        with self.service() as first:
            kept = self.ask(first, "reserve", user="ann", path="/fixed", cost=3)[1]["reservation"]
        with self.service() as second:
            self.assertFalse(self.check(second, "fixed")["allowed"])
            status, decision = self.ask(second, "commit", reservation=kept, cost=1)
            self.assertEqual((status, decision["remaining"]), (200, 2))

    def test_a_reset_key_does_not_come_back_exhausted(self):
        with self.service() as first:
            for path in COUNTED:
                self.exhaust(first, path)
                self.assertEqual(self.ask(first, "reset", user="ann", rules=[path],
                                          path=f"/{path}")[0], 200)
        with self.service() as second:
            for path in COUNTED:
                self.assertEqual(self.check(second, path)["remaining"], 2, path)

    # --- Another policy ---

    def test_a_limit_that_was_changed_meanwhile_takes_over_what_was_used(self):
        rule = ("rules:\n  - { name: per-user, key: user, limit: %s, algorithm: fixed_window }\n")
        with self.service(rule % "10/200day") as first:
            self.assertEqual(self.check(first, "", cost=5)["remaining"], 5)
        with self.service(rule % "100/200day") as second:
            self.assertEqual(self.check(second, "", cost=0)["remaining"], 50)
        with self.service(rule % "100/200day") as third:
            self.assertEqual(self.check(third, "", cost=0)["remaining"], 50)
        with self.service(rule % "10/h") as fourth:
            fourth.wait_for("counts in another way now")
            self.assertEqual(self.check(fourth, "", cost=0)["remaining"], 10)

    def test_a_limit_that_was_changed_while_it_ran_goes_on_as_it_was(self):
        rule = ("rules:\n  - { name: per-user, key: user, limit: %s, algorithm: sliding_log }\n")
        with self.service(rule % "10/200day") as first:
            self.check(first, "", cost=5)
            self.check(first, "", "bob", cost=4)
            first.policy_file.write_text(first.policy_file.read_text().replace("10/200day", "20/200day"))
            first.wait_for("version 2")
            self.assertEqual(self.check(first, "", cost=0)["remaining"], 10)
            # Of bob nobody has asked since: what he used is still counted under the old limit.
        with self.service(rule % "20/200day") as second:
            self.assertEqual(self.check(second, "", cost=0)["remaining"], 10)
            self.assertEqual(self.check(second, "", "bob", cost=0)["remaining"], 12)

    # --- The file ---

    def test_the_file_is_for_its_owner_alone(self):
        with self.service() as first:
            self.exhaust(first, "token")
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        self.assertEqual([path.name for path in self.file.parent.iterdir()], ["state"])
        self.file.chmod(0o644)
        with self.service() as second:
            second.wait_for("may be read by others")
            self.assertFalse(self.check(second, "token")["allowed"])
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)

    def refused(self, words):
        """Whatever is there: the service starts with nothing and says why, and keeps it aside."""
        with self.service() as service:
            service.wait_for(words)
            kept = service.wait_for("is kept as").rpartition(" ")[2]
            self.assertTrue(self.check(service, "token")["allowed"])
        with self.service() as after:
            after.wait_for("goes on with a snapshot")
            self.assertEqual(self.check(after, "token")["remaining"], 1)
        return pathlib.Path(kept)

    def test_a_broken_file_is_kept_aside(self):
        with self.service() as first:
            self.exhaust(first, "token")
        whole = self.file.read_bytes()
        for broken, words in ((whole[:-1], "it ends too early"),
                              (whole[:100], "it ends too early"),
                              (whole + b"x", "something follows its end"),
                              (whole[:20] + bytes([whole[20] ^ 1]) + whole[21:], "its checksum"),
                              (whole[:8] + b"\x09" + whole[9:], "of version 9"),
                              (b"", "it ends too early"), (b"x" * 5000, "it is no snapshot")):
            with self.subTest(words):
                self.file.write_bytes(broken)
                kept = self.refused(words)
                self.assertEqual(kept.read_bytes(), broken)
                kept.unlink()

    def test_what_was_kept_aside_before_stays(self):
        for name in ("state.bad", "state.bad.2", "state.bad.3"):
            self.file.write_text(name, encoding="ascii")
            self.assertEqual(self.refused("it is no snapshot").name, name)
        for name in ("state.bad", "state.bad.2", "state.bad.3"):
            self.assertEqual(self.file.with_name(name).read_text(encoding="ascii"), name)

    @unittest.skipIf(os.geteuid() != 0, "only root can become somebody who may not read it")
    def test_one_that_may_not_be_read_stays_until_the_service_leaves_its_own(self):
        with self.service() as first:
            self.exhaust(first, "token")
        before = self.file.read_bytes()
        os.chown(self.file, 0, 0)
        # Root without the right to read what is not its own may do what the mode says.
        self.file.chmod(0)
        with self.service(before=["setpriv", "--bounding-set=-all", "--inh-caps=-all"]) as second:
            second.wait_for("cannot be opened: Permission denied; begins with nothing, "
                            "and the file stays where it is")
            self.assertTrue(self.check(second, "token")["allowed"])
            self.assertEqual(self.file.read_bytes(), before)
        second.wait_for("is kept as")
        self.assertEqual(self.file.with_name("state.bad").read_bytes(), before)
        with self.service() as third:
            self.assertEqual(self.check(third, "token")["remaining"], 1)

    def test_what_is_no_regular_file_is_kept_aside(self):
        os.mkfifo(self.file)
        self.assertTrue(self.refused("is no regular file").is_fifo())
        self.file.rename(self.file.with_name("elsewhere"))
        self.file.symlink_to("elsewhere")
        self.assertTrue(self.refused("is a symbolic link").is_symlink())

    def test_one_that_others_may_write_is_not_believed(self):
        with self.service() as first:
            self.exhaust(first, "token")
        self.file.chmod(0o620)
        self.assertTrue(self.refused("may be written by others").is_file())

    def test_a_folder_stays_where_it_is(self):
        self.file.mkdir()
        service = self.service()
        service.wait_for("is a folder")
        self.assertTrue(self.check(service, "token")["allowed"])
        self.assertEqual(service.terminate(), 1)
        service.wait_for("the state is lost")
        self.assertTrue(self.file.is_dir())

    def test_a_place_where_nothing_can_be_written_is_told_at_the_start(self):
        self.file = self.file.parent / "nowhere" / "state"
        service = self.service()
        service.wait_for("the state will be lost at the end")
        self.assertTrue(self.check(service, "token")["allowed"])
        self.assertEqual(service.terminate(), 1)

    def test_a_disk_that_is_full_leaves_the_old_file(self):
        with self.service() as first:
            self.exhaust(first, "token")
        before = self.file.read_bytes()
        service = self.service()
        self.exhaust(service, "leaky")
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (100, 100))
        self.assertEqual(service.terminate(), 1)
        service.wait_for("cannot be written: File too large; the state is lost")
        self.assertEqual(self.file.read_bytes(), before)
        self.assertEqual([path.name for path in self.file.parent.iterdir()], ["state"])

    def test_a_killed_service_leaves_the_snapshot_before(self):
        with self.service() as first:
            self.exhaust(first, "token")
        killed = self.service()
        self.exhaust(killed, "leaky")
        killed.process.kill()
        killed.process.wait()
        killed.terminate()
        with self.service() as third:
            self.assertFalse(self.check(third, "token")["allowed"])
            self.assertTrue(self.check(third, "leaky")["allowed"])

    def test_a_reload_changes_where_it_goes(self):
        with self.service() as first:
            self.exhaust(first, "token")
            text = first.policy_file.read_text()
            first.policy_file.write_text(text.replace(str(self.file), str(self.file) + "2"))
            first.wait_for("will leave a snapshot file=" + str(self.file) + "2")
        self.assertEqual([path.name for path in self.file.parent.iterdir()], ["state2"])
        self.file = self.file.with_name("state2")
        with self.service() as second:
            self.assertFalse(self.check(second, "token")["allowed"])


if __name__ == "__main__":
    daemon.main()

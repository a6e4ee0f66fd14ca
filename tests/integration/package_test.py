#!/usr/bin/env python3
"""The Debian package: what is in it, and what becomes of a clean machine that it is installed on.

    package_test.py SOURCE BUILD [TEST...]

The machine needs a root file system, which takes a minute to fetch: it is kept in BUILD/clean-root,
and fetched only with WEIR_PACKAGE_LONG=1. Without one, installing is skipped, and that is said.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import clean_root

source = pathlib.Path()
build = pathlib.Path()
COMMANDS = ("calibrate", "check-config", "compare", "explain", "fmt", "replay", "schema", "serve",
            "simulate")
EXPECTED = {
    "/etc/weir/weir.yaml": 0o644,
    "/lib/systemd/system/weir.service": 0o644,
    "/lib/systemd/system/weir.socket": 0o644,
    "/usr/bin/weir": 0o755,
    "/usr/share/bash-completion/completions/weir": 0o644,
    "/usr/share/doc/weir/README.md": 0o644,
    "/usr/share/doc/weir/changelog.Debian.gz": 0o644,
    "/usr/share/doc/weir/changelog.gz": 0o644,
    "/usr/share/doc/weir/copyright": 0o644,
    "/usr/share/fish/vendor_completions.d/weir.fish": 0o644,
    "/usr/share/man/man1/weir.1.gz": 0o644,
    "/usr/share/weir/alerts.yaml": 0o644,
    "/usr/share/weir/grafana/weir.json": 0o644,
    "/usr/share/weir/weir.schema.json": 0o644,
    "/usr/share/zsh/vendor-completions/_weir": 0o644,
}


def output_of(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True,
                          **options).stdout


def make_package(folder):
    """As `cmake --build --target package` does, elsewhere. Its path."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    output_of("cpack", "-G", "DEB", "-B", folder, "--config", build / "CPackConfig.cmake", cwd=build,
              env=environment)
    (package,) = pathlib.Path(folder).glob("*.deb")
    return package


def options_in_help(command):
    """--help -h and so on, of a command; empty: of the program."""
    text = output_of(build / "weir", *([command] if command else []), "--help")
    text = text.partition("Options:")[2].partition("Subcommands:")[0].partition("Ends with")[0]
    found = set()
    for line in text.splitlines():
        if re.match(r"  -", line):
            found.update(re.findall(r"-{1,2}[a-z][\w-]*", line.strip().split("  ")[0]
                                    .partition(" Excludes")[0]))
    return found


class Contents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-package-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.package = make_package(cls.folder.name)
        cls.root = pathlib.Path(cls.folder.name) / "unpacked"
        output_of("dpkg-deb", "-R", cls.package, cls.root)

    def test_are_what_they_should_be(self):
        found = {"/" + str(path.relative_to(self.root)): path.stat().st_mode & 0o7777
                 for path in self.root.rglob("*")
                 if path.is_file() and "DEBIAN" not in path.parts}
        examples = {path for path in found if path.startswith("/usr/share/doc/weir/examples/")}
        scenarios = {path for path in examples if "/scenarios/" in path}
        for folder, packed in (("policies", examples - scenarios), ("scenarios", scenarios)):
            self.assertEqual({path.rpartition("/")[2] for path in packed},
                             {path.name for path in (source / "examples" / folder).iterdir()})
        pages = {path for path in found if path.startswith("/usr/share/doc/weir/docs/")}
        self.assertEqual({path.partition("/docs/")[2] for path in pages},
                         {str(path.relative_to(source / "docs"))
                          for path in (source / "docs").rglob("*") if path.suffix in (".md", ".svg")})
        self.assertEqual({path: mode for path, mode in found.items()
                          if path not in examples | pages}, EXPECTED)

    def test_are_the_same_each_time(self):
        with tempfile.TemporaryDirectory(prefix="weir-package-") as folder:
            self.assertEqual(make_package(folder).read_bytes(), self.package.read_bytes())

    def test_say_what_they_are(self):
        fields = {name: output_of("dpkg-deb", "-f", self.package, name).strip()
                  for name in ("Package", "Section", "Maintainer", "Depends", "Description")}
        self.assertEqual((fields["Package"], fields["Section"]), ("weir", "net"))
        for depends in ("adduser", "tzdata", "libc6 (>=", "libssl3", "libyaml-cpp"):
            self.assertIn(depends, fields["Depends"])
        conffiles = (self.root / "DEBIAN/conffiles").read_text(encoding="ascii")
        self.assertEqual(conffiles.split(), ["/etc/weir/weir.yaml"])

    def test_have_a_program_without_symbols(self):
        sections = output_of("readelf", "-SW", self.root / "usr/bin/weir")
        self.assertNotIn(".debug_info", sections)
        self.assertNotIn(".symtab", sections)
        version = output_of(self.root / "usr/bin/weir", "--version").split()[1]
        self.assertTrue(output_of("dpkg-deb", "-f", self.package, "Version").startswith(version))

    def test_have_a_policy_without_a_word_of_advice(self):
        output_of(build / "weir", "check-config", "--strict", self.root / "etc/weir/weir.yaml")

    def test_please_lintian(self):
        done = subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0", self.package],
                              capture_output=True, text=True, check=False)
        # There is no bug that asks for it.
        told = [line for line in done.stdout.splitlines() if "initial-upload-closes-no-bugs" not in line]
        self.assertEqual(told, [], done.stderr)

    def test_have_units_that_systemd_takes(self):
        with tempfile.TemporaryDirectory(prefix="weir-units-") as folder:
            for unit in ("weir.service", "weir.socket"):
                # The program is not installed here.
                text = (self.root / "lib/systemd/system" / unit).read_text(encoding="utf-8")
                text = text.replace("/usr/bin/weir", str(build / "weir"))
                text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
                pathlib.Path(folder, unit).write_text(text, encoding="utf-8")
            units = sorted(map(str, pathlib.Path(folder).iterdir()))
            done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True,
                                  text=True, check=False)
            about = [line for line in done.stderr.splitlines() if "weir." in line]
            self.assertEqual((done.returncode, about), (0, []), done.stderr)

    def test_have_a_service_that_is_locked_in(self):
        unit = self.root / "lib/systemd/system/weir.service"
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                               unit], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr)

    def test_stop_later_than_a_drain(self):
        unit = (self.root / "lib/systemd/system/weir.service").read_text(encoding="utf-8")
        drain = (source / "src/server/serve.cc").read_text(encoding="utf-8")
        seconds = int(re.search(r"kDrainTime = std::chrono::seconds\((\d+)\)", drain)[1])
        self.assertGreater(int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[1]),
                           seconds + 1)


class Words(unittest.TestCase):
    """What shells complete, and what the manual says, against what the program has."""

    def test_the_program_has_these_commands(self):
        text = output_of(build / "weir", "--help").partition("Subcommands:")[2]
        found = re.findall(r"^  ([a-z-]+) ", text, re.MULTILINE)
        self.assertEqual(sorted(found), sorted(COMMANDS))

    def bash(self, *words):
        """What bash offers for the last of the words."""
        script = source / "packaging/completion/weir.bash"
        line = " ".join(words)
        program = f"""
            _init_completion() {{ words=("${{COMP_WORDS[@]}}"); cword=$COMP_CWORD
              cur=${{words[cword]}}; prev=${{words[cword-1]}}; }}
            _filedir() {{ COMPREPLY=(FILES); }}
            . {script}
            COMP_WORDS=({line}{' ""' if words[-1] == '' else ''}); COMP_CWORD={len(words) - 1}
            _weir
            printf '%s\\n' "${{COMPREPLY[@]}}" """
        return set(output_of("bash", "-c", program).split())

    def test_bash_knows_them_all(self):
        self.assertEqual(self.bash("weir", ""), {*COMMANDS, *options_in_help("")})
        for command in COMMANDS:
            self.assertEqual(self.bash("weir", command, "-"), options_in_help(command), command)
        self.assertEqual(self.bash("weir", "serve", "--log", ""), {"text", "json"})
        self.assertEqual(self.bash("weir", "serve", "-c", ""), {"FILES"})
        self.assertEqual(self.bash("weir", "fmt", ""), {"FILES"})
        self.assertEqual(self.bash("weir", "che"), {"check-config"})

    def test_zsh_knows_them_all(self):
        text = (source / "packaging/completion/_weir").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^  '([a-z-]+):", text, re.MULTILINE)), set(COMMANDS))
        rest = text.partition("case $words[1] in")[2]
        for command in COMMANDS:
            part = re.search(rf"^      {command}\)(.*?);;", rest, re.MULTILINE | re.DOTALL)[1]
            found = set(re.findall(r"(?<![\w-])-{1,2}[a-z][\w-]*(?=[\[,}])", part))
            self.assertEqual(found | {"-h", "--help"}, options_in_help(command), command)

    def test_fish_knows_them_all(self):
        text = (source / "packaging/completion/weir.fish").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"__fish_use_subcommand -a (\S+)", text)), set(COMMANDS))
        for command in COMMANDS:
            lines = [line for line in text.splitlines() if f"_from {command}'" in line]
            found = {"--" + word for line in lines for word in re.findall(r" -l (\S+)", line)}
            found |= {"-" + word for line in lines for word in re.findall(r" -s (\S+)", line)}
            self.assertEqual(found | {"-h", "--help"}, options_in_help(command), command)

    def test_the_manual_knows_them_all(self):
        text = (source / "packaging/weir.1").read_text(encoding="utf-8").replace("\\-", "-")
        for command in COMMANDS:
            section = re.search(rf"^\.SS {command}\n(.*?)^\.S[SH]", text, re.MULTILINE | re.DOTALL)
            self.assertIsNotNone(section, command)
            tagged = re.findall(r"^\.TP\n(.*)$", section[1], re.MULTILINE)
            found = {word for line in tagged for word in re.findall(r"-{1,2}[a-z][\w-]*", line)}
            self.assertEqual(found | {"-h", "--help"}, options_in_help(command), command)


class Installed(unittest.TestCase):
    """On a machine that has nothing but Debian."""

    @classmethod
    def setUpClass(cls):
        why = clean_root.missing()
        cache = build / "clean-root"
        long = os.environ.get("WEIR_PACKAGE_LONG") == "1"
        if not why and not long and not clean_root.archive_of(cache).exists():
            why = "no root file system is kept yet, and fetching one takes a minute"
        if why:
            print(f"SKIPPED package_test Installed: {why}")
            raise unittest.SkipTest(why)
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-machine-")
        cls.addClassCleanup(cls.folder.cleanup)
        if not clean_root.archive_of(cache).exists():
            clean_root.make_archive(cache, cls.folder.name)
        packed = pathlib.Path(cls.folder.name) / "packed"
        packed.mkdir()
        cls.package = make_package(packed)

    def root_with_package(self):
        folder = tempfile.mkdtemp(dir=self.folder.name)
        self.addCleanup(shutil.rmtree, folder)
        root = clean_root.unpack(build / "clean-root", folder)
        shutil.copy(self.package, root / "root/weir.deb")
        clean_root.fetch(root, "/root/weir.deb")
        return root

    def install(self, machine):
        return machine.run("apt-get", "-q", "-y", "--no-install-recommends", "install",
                           "/root/weir.deb")

    def check(self, machine):
        """It answers, and decides."""
        self.assertEqual(machine.run("curl", "-sf", "http://127.0.0.1:8080/readyz"), "ready")
        decision = json.loads(machine.run("curl", "-sf", "http://127.0.0.1:8080/v1/check", "-d",
                                          '{"ip": "203.0.113.9"}'))
        self.assertEqual((decision["allowed"], decision["rule"]), (True, "per-ip"))

    def property_of(self, machine, name, unit="weir.service"):
        return machine.run("systemctl", "show", "-P", name, unit).strip()

    def wait_for(self, machine, name, value):
        deadline = time.monotonic() + clean_root.PATIENCE
        while (found := self.property_of(machine, name)) != value:
            self.assertLess(time.monotonic(), deadline, f"{name} is {found}, not {value}")

    def test_with_systemd_it_runs_and_is_looked_after(self):
        with clean_root.Machine(self.root_with_package()) as machine:
            self.install(machine)
            # It runs, as soon as it is installed, and would after a boot.
            self.assertEqual(machine.run("systemctl", "is-active", "weir").strip(), "active")
            self.assertEqual(machine.run("systemctl", "is-enabled", "weir").strip(), "enabled")
            self.check(machine)
            pid = self.property_of(machine, "MainPID")
            self.assertEqual(machine.run("stat", "-c", "%U:%G", f"/proc/{pid}").strip(), "weir:weir")
            self.assertEqual(self.property_of(machine, "StatusText"),
                             "serving version 1 of the policy, 1 rule")
            self.reload(machine, pid)
            self.survive_a_crash(machine, pid)
            self.hand_over_sockets(machine)
            self.upgrade(machine)
            self.leave(machine)

    def reload(self, machine, pid):
        machine.run("sed", "-i", "s/200.min burst 50/300\\/min burst 60/", "/etc/weir/weir.yaml")
        machine.run("systemctl", "reload", "weir")
        self.wait_for(machine, "StatusText", "serving version 2 of the policy, 1 rule")
        self.assertEqual(self.property_of(machine, "MainPID"), pid)

    def survive_a_crash(self, machine, pid):
        machine.run("bash", "-c", f"kill -KILL {pid}")
        self.wait_for(machine, "NRestarts", "1")
        self.wait_for(machine, "ActiveState", "active")
        self.check(machine)

    def hand_over_sockets(self, machine):
        machine.run("systemctl", "stop", "weir")
        machine.run("systemctl", "enable", "--now", "weir.socket")
        # Whoever connects first starts it, and is answered before it says that it is ready.
        machine.run("curl", "-sf", "http://127.0.0.1:8080/healthz")
        self.wait_for(machine, "ActiveState", "active")
        self.check(machine)
        # Those who ask while it is restarted wait, and nobody is refused.
        machine.run("bash", "-c", """
            for i in 1 2 3; do systemctl restart weir; done &
            for i in $(seq 200); do
              curl -sf http://127.0.0.1:8080/healthz >/dev/null || exit 1
            done
            wait""")
        self.assertEqual(self.property_of(machine, "NRestarts"), "0")
        self.keep_the_path_of_a_socket(machine)

    def keep_the_path_of_a_socket(self, machine):
        """One that systemd opened at a path is still to be found there after a restart."""
        machine.run("bash", "-c", """
            mkdir -p /etc/systemd/system/weir.socket.d
            printf '[Socket]\\nListenStream=\\nListenStream=/run/weir/http.sock\\n' \
              >/etc/systemd/system/weir.socket.d/path.conf
            sed -i 's#^  http: .*#  http: unix:/run/weir/http.sock#; s/^  resp:/  # resp:/' \
              /etc/weir/weir.yaml
            systemctl daemon-reload
            systemctl stop weir.socket weir
            systemctl start weir.socket""")
        for _ in range(2):
            machine.run("curl", "-sf", "--unix-socket", "/run/weir/http.sock", "http://weir/healthz")
            machine.run("systemctl", "restart", "weir")
        machine.run("bash", "-c", """
            rm -r /etc/systemd/system/weir.socket.d
            sed -i 's#^  http: .*#  http: 127.0.0.1:8080#; s/^  # resp:/  resp:/' /etc/weir/weir.yaml
            systemctl daemon-reload
            systemctl stop weir.socket weir
            rm -f /run/weir/http.sock
            systemctl start weir.socket weir""")
        self.check(machine)

    def upgrade(self, machine):
        before = self.property_of(machine, "MainPID")
        machine.run("apt-get", "-q", "-y", "--reinstall", "--no-install-recommends", "install",
                    "/root/weir.deb")
        self.assertNotEqual(self.property_of(machine, "MainPID"), before)
        self.check(machine)
        # What an administrator has written stays.
        self.assertIn("300/min", machine.run("cat", "/etc/weir/weir.yaml"))

    def leave(self, machine):
        machine.run("apt-get", "-q", "-y", "remove", "weir")
        self.assertNotEqual(machine.ask("systemctl", "is-active", "weir").returncode, 0)
        self.assertNotEqual(machine.ask("curl", "-s", "http://127.0.0.1:8080/readyz").returncode, 0)
        self.assertEqual(machine.ask("test", "-e", "/etc/weir/weir.yaml").returncode, 0)
        machine.run("apt-get", "-q", "-y", "purge", "weir")
        left = machine.ask(
            "find", "/etc", "/lib/systemd/system", "/usr/bin", "/usr/share", "/var/lib", "/run",
            "-name", "*weir*", "-not", "-path", "*/dpkg/*").stdout
        self.assertEqual(left.split(), [])
        # What an administrator left for this user is nobody else's.
        self.assertEqual(machine.ask("id", "weir").returncode, 0)

    def test_without_systemd_nothing_fails(self):
        root = self.root_with_package()
        def inside(*words):
            return clean_root.call("chroot", root, *words, env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})
        inside("apt-get", "-q", "-y", "--no-install-recommends", "install", "/root/weir.deb")
        self.assertIn("weir", inside("id", "weir"))
        inside("weir", "check-config", "--strict", "/etc/weir/weir.yaml")
        # The first boot will start it.
        self.assertTrue((root / "etc/systemd/system/multi-user.target.wants/weir.service")
                        .is_symlink())
        inside("apt-get", "-q", "-y", "purge", "weir")
        self.assertFalse((root / "etc/weir").exists())
        self.assertFalse((root / "etc/systemd/system/multi-user.target.wants/weir.service")
                         .is_symlink())


if __name__ == "__main__":
    source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

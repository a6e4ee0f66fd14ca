"""A small Debian in a folder, fresh from the mirror that this machine uses, and systemd running in it.

    root = clean_root.unpack(cache, suite, folder)
    with clean_root.Machine(root) as machine:
        machine.run("systemctl", "is-active", "weir")

What the mirror gave is kept in the folder `cache` as an archive, so that the next time costs
seconds. The machine has a network of its own, in which there is nothing but itself.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

PATIENCE = 120
SUITE = "bookworm"
INCLUDED = "systemd-sysv,curl"


def mirror():
    """Where this machine has its Debian from."""
    files = [pathlib.Path("/etc/apt/sources.list"),
             *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")),
             *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.list"))]
    for file in files:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        for line in text.splitlines():
            found = re.match(r"(?:URIs:|deb(?:\s+\[[^]]*\])?)\s+(\S*?/debian)/?(?:\s|$)", line)
            if found:
                return found[1]
    raise RuntimeError("no mirror of Debian in /etc/apt")


def missing():
    """Why there can be no such machine here; empty if there can."""
    if os.geteuid() != 0:
        return "only root may make one"
    for program in ("debootstrap", "systemd-nspawn", "nsenter", "tar"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    return ""


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False, timeout=600, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}\n"
                           f"{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def archive_of(cache):
    return pathlib.Path(cache) / f"{SUITE}.tar"


def make_archive(cache, scratch):
    """With the package lists, so that packages can be fetched later on."""
    root = pathlib.Path(scratch) / "fresh"
    call("debootstrap", "--variant=minbase", f"--include={INCLUDED}", SUITE, root, mirror())
    call("chroot", root, "apt-get", "-q", "update")
    pathlib.Path(cache).mkdir(parents=True, exist_ok=True)
    # Under its name only when it is whole.
    part = archive_of(cache).with_suffix(f".{os.getpid()}")
    call("tar", "--numeric-owner", "-C", root, "-cf", part, ".")
    os.replace(part, archive_of(cache))
    shutil.rmtree(root)


def unpack(cache, folder):
    """A root of one's own."""
    root = pathlib.Path(folder) / "root"
    root.mkdir()
    call("tar", "--numeric-owner", "-C", root, "-xpf", archive_of(cache))
    return root


def fetch(root, package):
    """What the package depends on, while there is a network: the machine has none."""
    words = ("apt-get", "-q", "-y", "--no-install-recommends", "--download-only", "install", package)
    try:
        call("chroot", root, *words)
    except RuntimeError:  # The lists were too old for what the mirror has now.
        call("chroot", root, "apt-get", "-q", "update")
        call("chroot", root, *words)


class Machine:
    """systemd, as the first process of a container."""

    def __init__(self, root):
        self.root = root
        self.log = open(root.parent / "console.log", "wb")
        self.container = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network",
             "--directory", str(root), "--boot"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            self.first = self._first_process()
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise

    def _first_process(self):
        children = pathlib.Path(f"/proc/{self.container.pid}/task/{self.container.pid}/children")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.container.poll() is None:
            for child in children.read_text(encoding="ascii").split():
                with open(f"/proc/{child}/comm", encoding="ascii") as file:
                    if file.read().strip() == "systemd":
                        return child
            time.sleep(0.05)
        raise RuntimeError("it does not boot:\n" + self.console())

    def _wait_until_up(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            state = self.ask("systemctl", "is-system-running", "--wait").stdout.strip()
            if state in ("running", "degraded"):
                return
            time.sleep(0.05)
        raise RuntimeError("it does not come up:\n" + self.console())

    def console(self):
        return (self.root.parent / "console.log").read_text(encoding="utf-8", errors="replace")

    def ask(self, *words):
        """Runs a command inside, whatever comes of it."""
        return subprocess.run(["nsenter", "-t", self.first, "-a", *words], capture_output=True,
                              text=True, check=False, timeout=PATIENCE,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                                   "DEBIAN_FRONTEND": "noninteractive"})

    def run(self, *words):
        """What it prints; it must end well."""
        done = self.ask(*words)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def stop(self):
        if self.container.poll() is None:
            self.container.send_signal(signal.SIGTERM)  # Which shuts it down.
            try:
                self.container.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.container.kill()
                self.container.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and self.container.poll() is None:
            print(self.ask("journalctl", "-u", "weir", "--no-pager").stdout[-4000:])
        self.stop()

#!/usr/bin/env python3
"""The pages of the lab in a real browser: drawn, harmless, and readable wide and on a phone.

    pages_test.py SOURCE PROGRAM [TEST...]

WEIR_PAGE_WRITER is the program that writes pages of every kind, with hostile text in them, into the
folder WEIR_PAGES. Screenshots are kept in build/screenshots/. tests/e2e/setup.sh and
web/build.sh --fetch install what this needs.
"""

import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

import daemon

HOSTILE = "</script><script>alert(1)</script>"

POLICY = """\
rules:
  - name: per-client
    key: ip
    limit: 30/min
  - name: per-user
    match: { user: present }
    key: user
    limit: 20/min
"""

# The commands whose pages are looked at. {work} holds access.log, weir.yaml and tighter.yaml.
COMMANDS = {
    "compare-boundary": "compare 100/s --traffic boundary",
    "compare-poisson": "compare 100/min --burst 20 --traffic poisson",
    "calibrate": "calibrate {work}/access.log --key ip",
    "replay": "replay {work}/access.log -c {work}/weir.yaml",
    "replay-against": "replay {work}/access.log -c {work}/weir.yaml --against {work}/tighter.yaml",
    "simulate": "simulate {source}/examples/scenarios/outage-static.yaml",
}


def access_log():
    """Ten minutes of thirty clients, and of one who asks too much and has a name of his own."""
    dice = random.Random(1)
    began = 12 * 3600
    lines = []
    for client in range(30):
        for _ in range(60):
            lines.append((began + dice.random() * 600, f"192.0.2.{client + 1}", "-"))
    for i in range(1500):
        lines.append((began + 120 + i * 0.2, "198.51.100.7", HOSTILE))
    lines.sort()
    return "".join(
        f'{ip} - {user} [01/Mar/2026:{int(t) // 3600:02}:{int(t) // 60 % 60:02}:{int(t) % 60:02} +0000]'
        f' "GET /{HOSTILE} HTTP/1.1" 200 512 "-" "{HOSTILE}"\n'
        for t, ip, user in lines
    )


class Pages(unittest.TestCase):
    def setUp(self):
        self.source = daemon.source
        self.screenshots = self.source / "build" / "screenshots"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="weir-pages-"))
        self.addCleanup(shutil.rmtree, self.work)

    def look_at(self, pages, view=None):
        command = ["node", self.source / "web" / "check_pages.mjs"]
        command += ["--view", view] if view else []
        command += ["--screenshots", self.screenshots, *pages]
        return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)

    def assert_fine(self, pages, views=(None,)):
        """In these views; None: all there are."""
        for view in views:
            result = self.look_at(pages, view)
            print(result.stdout.strip())
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def samples(self):
        writer = os.environ["WEIR_PAGE_WRITER"]
        subprocess.run(
            [writer, "--gtest_filter=ReportPage.IsWrittenWhereABrowserFindsIt"],
            env={**os.environ, "WEIR_PAGES": str(self.work)}, check=True, capture_output=True,
        )
        pages = sorted(self.work.glob("sample-*.html"))
        self.assertGreaterEqual(len(pages), 3)
        return pages

    def test_pages_of_every_kind_are_drawn_and_harmless(self):
        self.assert_fine(self.samples())

    def test_pages_of_the_commands_are_drawn_and_harmless(self):
        (self.work / "access.log").write_text(access_log())
        (self.work / "weir.yaml").write_text(POLICY)
        (self.work / "tighter.yaml").write_text(POLICY.replace("30/min", "4/min"))
        pages = []
        for name, command in COMMANDS.items():
            page = self.work / f"{name}.html"
            words = command.format(work=self.work, source=self.source).split()
            result = subprocess.run(
                [daemon.program, *words, "--html", page],
                capture_output=True, text=True, timeout=300, check=False,
            )
            with self.subTest(name):
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertTrue(page.exists())
                pages.append(page)
        # The page is the same as of the samples; what is in it differs.
        self.assert_fine(pages, views=("wide-light", "phone-dark"))

    def test_what_is_wrong_with_a_page_is_found(self):
        """A check that finds nothing wrong is only worth something if it finds what is."""
        page = next(page for page in self.samples() if page.name == "sample-simulate.html")
        good = page.read_text(encoding="utf-8")
        start, end = good.index("<meta http-equiv"), good.index("<meta name=\"viewport\"")
        unguarded = good[:start] + good[end:]

        def adding(text):
            return unguarded.replace("</head>", text + "</head>")

        wrongs = {
            "another script": (good.replace("<script>", "<script>;", 1), "console:"),
            "from elsewhere": (adding('<img src="http://127.0.0.1:9/x.png">'), "asks for"),
            "an error": (adding("<script>undefined.x</script>"), "script error"),
            "a dialog": (adding("<script>alert(1)</script>"), "a dialog came up"),
            "no lines": (
                adding("<script>CanvasRenderingContext2D.prototype.stroke = () => {}</script>"),
                "is not drawn",
            ),
            "no values": (adding("<style>.tip,.readout{display:none}</style>"), "shows no values"),
            "too wide": (adding("<style>#page{min-width:1500px}</style>"), "wide in a window"),
            "too small": (adding("<style>.note,.legend *,dt{font-size:9px!important}</style>"),
                          "text below"),
            "no report": (good.replace('"sections":[', '"sections":null,"was":['), "script error"),
        }
        pages = []
        for number, (name, (text, _)) in enumerate(wrongs.items()):
            self.assertNotEqual(text, good, name)
            pages.append(self.work / f"wrong-{number}.html")
            pages[-1].write_text(text, encoding="utf-8")
        result = self.look_at(pages, view="wide-light")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for wrong, (name, (_, expected)) in zip(pages, wrongs.items()):
            told = [line for line in result.stdout.splitlines() if line.startswith(wrong.stem + ",")]
            with self.subTest(name):
                self.assertTrue(any(expected in line for line in told), told)


if __name__ == "__main__":
    daemon.main()

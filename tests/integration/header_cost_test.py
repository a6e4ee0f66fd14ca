#!/usr/bin/env python3
"""Keeps headers cheap to include.

    header_cost_test.py ROOT            checks the tree against its committed figures
    header_cost_test.py ROOT --update   writes the figures of the tree as it is
    header_cost_test.py --self-test     checks that the checks find what they should

The cost of a header is the number of lines of our own headers that it brings, itself included and
without comments and empty lines, times the number of production .cc files that include it, directly
or through other headers. tests/integration/header_cost.txt holds the ten highest costs. The test
fails when one of these headers costs more than that, or when another header costs more than the
lowest of the ten. It also fails when a header includes what FIREWALLS keeps out of headers.

It reads the #include lines only and needs no compiler. Exit codes: 0 success, 1 problems found,
2 usage error.
"""

import collections
import pathlib
import re
import sys
import tempfile

FIGURES = "tests/integration/header_cost.txt"
LISTED = 10
SHOWN = 8  # Includers that a failure names.

FOLDERS = ("include", "src", "apps")
NOT_PRODUCTION = ("_test.cc", "_bench.cc")

# Expensive includes, and the folders whose headers may have them. Headers elsewhere must not; .cc
# files may.
FIREWALLS = {
    "store/memory/memory_store.h": ("src/store/memory/", "src/limiter/"),
    "nlohmann/json.hpp": (),
    "CLI/": (),
    "simdjson.h": (),
    "spdlog/": (),
    "prometheus/": (),
    "yaml-cpp/": (),
    "nghttp2/": (),
    "zlib.h": (),
    "date/": (),
    "openssl/": ("src/net/",),
}

HEAD = f"""\
# What the {LISTED} most expensive headers cost: the lines of our own headers that each one brings
# (without comments and empty lines), times the production .cc files that include it, directly or
# through other headers.
#
# header_cost_test.py fails when a header costs more than this file says. Written by
#
#     python3 tests/integration/header_cost_test.py . --update
#
# If a header costs more for a good reason, run that, and say the reason in the commit.

# header, lines, includers, cost
"""

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)

Figure = collections.namedtuple("Figure", "lines includers")


def cost_of(figure):
    return figure.lines * figure.includers


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.lines = {}
        self.includes = {}  # By file: the names as they are written.
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in (".h", ".cc") and not path.name.endswith(NOT_PRODUCTION):
                    name = path.relative_to(self.root).as_posix()
                    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
                    self.lines[name] = sum(bool(line.strip()) for line in text.splitlines())
                    self.includes[name] = INCLUDE.findall(text)
        self.edges = {
            name: [target for target in (self.find(name, it) for it in names) if target]
            for name, names in self.includes.items()
        }
        self.brings = {name: self.reach(name) for name in self.edges}
        self.includers = collections.defaultdict(list)  # By header: .cc files.
        for name, headers in self.brings.items():
            if name.endswith(".cc"):
                for header in headers:
                    self.includers[header].append(name)
        self.figures = {
            name: Figure(
                self.lines[name] + sum(self.lines[it] for it in self.brings[name] - {name}),
                len(self.includers[name]),
            )
            for name in self.edges
            if name.endswith(".h")
        }

    def find(self, path, name):
        beside = (pathlib.PurePosixPath(path).parent / name).as_posix()
        for candidate in (f"src/{name}", f"include/{name}", beside):
            if candidate in self.lines:
                return candidate
        return None

    def reach(self, path):
        reached, open_ends = set(), [path]
        while open_ends:
            for target in self.edges[open_ends.pop()]:
                if target not in reached:
                    reached.add(target)
                    open_ends.append(target)
        return reached

    def chain(self, path, header):
        """The shortest way from a file to a header that it includes."""
        came_from, queue = {path: None}, collections.deque([path])
        while queue:
            here = queue.popleft()
            if here == header:
                way = []
                while here:
                    way.append(here)
                    here = came_from[here]
                return " -> ".join(reversed(way))
            for target in self.edges[here]:
                if target not in came_from:
                    came_from[target] = here
                    queue.append(target)
        return f"{path} -> {header}"

    def dearest(self):
        order = sorted(self.figures, key=lambda name: (-cost_of(self.figures[name]), name))
        return [name for name in order[:LISTED] if cost_of(self.figures[name]) > 0]

    def write(self):
        text = HEAD
        for name in self.dearest():
            figure = self.figures[name]
            text += f"{name:<40} {figure.lines:>5} {figure.includers:>4} {cost_of(figure):>7}\n"
        (self.root / FIGURES).write_text(text, encoding="utf-8")

    def check_costs(self, committed):
        breaches = []
        lowest = min((cost_of(figure) for figure in committed.values()), default=0)
        for name, figure in sorted(self.figures.items(), key=lambda item: -cost_of(item[1])):
            before = committed.get(name)
            was = cost_of(before) if before else lowest
            if cost_of(figure) <= was:
                continue
            if before:
                text = (
                    f"{name} costs {cost_of(figure)}, more than {was}: "
                    f"lines {before.lines} -> {figure.lines}, "
                    f"includers {before.includers} -> {figure.includers}"
                )
            else:
                text = (
                    f"{name} costs {cost_of(figure)} ({figure.lines} lines, {figure.includers} "
                    f"includers), more than the last one in {FIGURES}, {was}"
                )
            if not before or figure.lines > before.lines:
                parts = sorted(self.brings[name], key=lambda it: -self.lines[it])[:5]
                text += "".join(f"\n  brings {it}, {self.lines[it]} lines" for it in parts)
            if not before or figure.includers > before.includers:
                all_of_it = self.includers[name]
                text += "".join(f"\n  includer: {self.chain(it, name)}" for it in all_of_it[:SHOWN])
                if len(all_of_it) > SHOWN:
                    text += f"\n  and {len(all_of_it) - SHOWN} more"
            breaches.append(text)
        return breaches

    def check_firewalls(self):
        breaches = []
        for name, names in self.includes.items():
            if not name.endswith(".h") or not self.includers[name]:
                continue  # Headers of tests may include what they like.
            for written in names:
                for wall, folders in FIREWALLS.items():
                    inside = written == wall or (wall.endswith("/") and written.startswith(wall))
                    if inside and not name.startswith(folders):
                        breaches.append(
                            f"{name} includes {written}: only .cc files may"
                            + "".join(f", and headers in {folder}" for folder in folders)
                        )
        return breaches


def read_figures(path):
    figures = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, lines, count, _ = line.split()
            figures[name] = Figure(int(lines), int(count))
    return figures


def check(root):
    """What is wrong with the tree, and a hint."""
    path = pathlib.Path(root, FIGURES)
    if not path.is_file():
        return [f"{FIGURES} is missing: run this with --update"], ""
    tree = Tree(root)
    committed = read_figures(path)
    found = tree.check_firewalls() + tree.check_costs(committed)
    before = sum(cost_of(figure) for figure in committed.values())
    now = sum(cost_of(tree.figures.get(name, Figure(0, 0))) for name in committed)
    hint = ""
    if not found and now < before:
        hint = f"the listed headers cost {now}, less than {before}: run this with --update"
    return found, hint


# Trees for --self-test. BEFORE is what the figures are taken of; each case changes some files and
# names parts of what must be reported (none: nothing may be).
BEFORE = {
    "include/weir/limit.h": "#pragma once\n" + "int x;\n" * 99,
    "src/engine/engine.h": "#include <weir/limit.h>\n" + "int x;\n" * 99,
    **{f"src/engine/part{i}.cc": '#include "engine/engine.h"\n' for i in range(20)},
    **{f"src/limit/part{i}.cc": "#include <weir/limit.h>\n" for i in range(10)},
    "src/server/page.h": '#include "server/far.h"\n',
    "src/server/far.h": "int x;\n",
    "src/server/page.cc": '#include "server/page.h"\n',
}
CASES = [
    ("nothing changed", {}, []),
    ("one more includer", {"src/server/more.cc": '#include "engine/engine.h"\n'},
     ["src/engine/engine.h costs 4200, more than 4000", "includers 20 -> 21"]),
    ("a comment", {"include/weir/limit.h": "#pragma once\n" + "int x;\n" * 99 + "\n// Why.\n"}, []),
    ("more lines", {"include/weir/limit.h": "int x;\n" * 150},
     ["include/weir/limit.h costs 4500, more than 3000: lines 100 -> 150",
      "src/engine/engine.h costs 5000, more than 4000: lines 200 -> 250",
      "brings include/weir/limit.h, 150 lines"]),
    ("new includers", {f"src/server/more{i}.cc": '#include "engine/engine.h"\n' for i in range(3)},
     ["src/engine/engine.h costs 4600, more than 4000: lines 200 -> 200, "
      "includers 20 -> 23", "includer: src/engine/part0.cc -> src/engine/engine.h"]),
    ("new includers through a header",
     {"src/server/far.h": '#include "engine/engine.h"\n',
      **{f"src/server/page{i}.cc": '# include "page.h"\n' for i in range(9)}},
     ["includers 20 -> 30", "and 22 more"]),
    ("a test is no includer",
     {f"src/server/more{i}_test.cc": '#include "engine/engine.h"\n' for i in range(9)}, []),
    ("a comment includes nothing",
     {f"src/server/more{i}.cc": '/*\n#include "engine/engine.h"\n*/\n' for i in range(9)}, []),
    ("a new header", {"src/server/large.h": "int x;\n" * 1000,
     **{f"src/server/more{i}.cc": '#include "server/large.h"\n' for i in range(5)}},
     ["src/server/large.h costs 5000 (1000 lines, 5 includers)",
      "includer: src/server/more0.cc -> src/server/large.h"]),
    ("a firewall", {"src/server/far.h": '#include "store/memory/memory_store.h"\n'},
     ["src/server/far.h includes store/memory/memory_store.h: only .cc files may, and headers in"]),
    ("a library", {"src/server/far.h": "#include <CLI/App.hpp>\n"},
     ["src/server/far.h includes CLI/App.hpp: only .cc files may"]),
    ("a library in a .cc file", {"src/server/page.cc": "#include <CLI/CLI.hpp>\n"}, []),
    ("a library in a header of tests",
     {"src/server/page_under_test.h": "#include <nlohmann/json.hpp>\n"}, []),
    ("no figures", {FIGURES: None}, ["is missing"]),
]
LESS = {"include/weir/limit.h": "int x;\n" * 50}


def write_files(root, files):
    for path, text in files.items():
        target = pathlib.Path(root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            target.unlink()
        else:
            target.write_text(text, encoding="utf-8")


def after(change):
    with tempfile.TemporaryDirectory() as root:
        write_files(root, {**BEFORE, FIGURES: ""})
        Tree(root).write()
        write_files(root, change)
        return check(root)


def self_test():
    failures = 0
    for name, change, expected in CASES:
        found = "\n".join(after(change)[0])
        right = all(part in found for part in expected) if expected else not found
        if not right:
            failures += 1
            print(f"{name}: expected {expected}, found\n{found}")
    found, hint = after(LESS)
    if found or "--update" not in hint:
        failures += 1
        print(f"a header that became cheaper: expected a hint only, found {found}, {hint!r}")
    print(f"{len(CASES) + 1 - failures} of {len(CASES) + 1} as expected")
    return failures == 0


def main(arguments):
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    update = "--update" in arguments
    roots = [it for it in arguments if it != "--update"]
    if len(roots) != 1 or roots[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    if not pathlib.Path(roots[0], "src").is_dir():
        print(f"{roots[0]} holds no src/", file=sys.stderr)
        return 2
    if update:
        Tree(roots[0]).write()
        return 0
    found, hint = check(roots[0])
    if found:
        print("\n".join(found))
        print(
            "Declare what is needed instead of including it, or move it to a smaller header. If the"
            "\ncost has a good reason, run this with --update and say the reason in the commit."
        )
        return 1
    print(hint or "no header costs more than it may")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

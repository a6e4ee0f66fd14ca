#!/usr/bin/env python3
"""The rules of the source tree that a compiler does not check, read from the files themselves.

    layering_test.py ROOT        check a source tree
    layering_test.py --self-test make small bad trees and see each breach caught

What is checked: who may include whom, cycles, names that say nothing, clocks read outside one
file, exceptions outside the files that call a throwing library, files too long to hold in the
head, and types of one name in two files. The linker keeps one copy of each inline function, so of
two different types with one name, one would be moved and destroyed by functions of the other.
"""

import pathlib
import re
import sys
import tempfile

STORES = ("store", "store/memory", "store/redis", "store/guard", "store/leased")
CODECS = ("net/resp", "net/http", "net/h2")

# Each folder and those directly below it. What lies below those may be included too, except
# what NEVER takes away. A folder that is not here yet needs a row before its first file.
ARROWS = {
    "base": (),
    "limit": ("base",),
    "algorithm": ("limit",),
    "policy": ("limit",),
    "telemetry": ("base",),
    "net": ("telemetry",),
    "net/resp": ("net",),
    "net/http": ("net",),
    "net/h2": ("net",),
    "net/protobuf": ("net",),
    # store/*.h is the interface, and part of the library without a network.
    "store": ("algorithm", "telemetry"),
    "store/memory": ("store",),
    "store/redis": ("store", "net", "net/resp"),
    # Two stores that keep a local one: for the time of an outage, and for what was leased.
    "store/guard": ("store", "store/memory", "net"),
    "store/leased": ("store", "store/memory", "net"),
    "limiter": ("store", "store/memory"),
    "engine": ("policy", *STORES),
    "frontend": ("engine", "net", "telemetry"),
    "frontend/resp": ("frontend", "net/resp"),
    "frontend/http": ("frontend", "net/http"),
    "frontend/grpc": ("frontend", "net/h2", "net/protobuf"),
    "sim": ("net", "net/resp", *STORES),
    # lab/*.h is what all of the lab shows its findings with.
    "lab": ("engine", "policy", "sim", *STORES),
    "lab/compare": ("lab",),
    "lab/log": ("lab",),
    "lab/calibrate": ("lab/log",),
    "lab/replay": ("lab/log",),
    "lab/fleet": ("lab",),
}
ARROWS["server"] = tuple(ARROWS)
ARROWS["apps"] = ("server",)

NEVER = {
    "engine": (CODECS, "wire types stop at the edge"),
    **{
        folder: (CODECS, "wire types stop at the edge")
        for folder in ("lab", "lab/compare", "lab/log", "lab/calibrate", "lab/replay", "lab/fleet")
    },
    "frontend": (STORES, "front ends never see a store"),
    "frontend/resp": (STORES, "front ends never see a store"),
    "frontend/http": (STORES, "front ends never see a store"),
    "frontend/grpc": (STORES, "front ends never see a store"),
}

# The folders of weir::weir, and the libraries its users must not have to install.
EMBEDDED = ("base", "limit", "algorithm", "telemetry", "store", "store/memory", "limiter")
HEAVY = re.compile(r"(boost|asio|yaml-cpp|openssl)(/|\.)")

MAX_LINES = 600
EMPTY_WORDS = {"common", "util", "utils", "helper", "helpers", "misc", "manager"}

CLOCK_FILE = "src/base/clock.cc"
# Our own clocks say Now(), so a lower-case now() belongs to the standard library.
CLOCK = re.compile(
    r"::now\s*\(|\bhigh_resolution_clock\b|\b(clock_gettime|gettimeofday|timespec_get)\b"
    r"|(?<![\w.>])time\(|rdtsc"
)

EXCEPTION = re.compile(r"\bthrow\b|\bcatch\s*\(")
# Our code does not throw. A library's exception is caught in the one file that calls it.
MAY_CATCH = {
    "src/limit/zone.cc": "the date library throws when it does not know a time zone",
    "src/policy/yaml_tree.cc": "yaml-cpp throws when a text is not YAML",
    "src/server/command_line.cc": "CLI11 throws when a command line is wrong, or asks for help",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"[a-z0-9_]+$")
NAMESPACE = re.compile(r"\s*(?:inline )?namespace\s*([\w:]*)\s*\{")
# Neither a specialisation (`struct Name<`) nor a nested type (`struct Outer::Name`): those belong
# to a type that is found where it is defined.
TYPE = re.compile(
    r"(?:class|struct|union|enum(?: class)?)\s+"
    r"(?:\[\[\w+\]\]\s*|alignas\([^)]*\)\s*)*(\w+)(?!\w|<|::)"
)
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<string>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
          | "(?:\\.|[^"\\\n])*"
          | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*')""",
    re.DOTALL | re.VERBOSE,
)


def blank(text, kinds):
    """The text without its comments and/or strings, every line still where it was."""

    def replace(match):
        return re.sub(r"[^\n]", " ", match[0]) if match.lastgroup in kinds else match[0]

    return TOKEN.sub(replace, text)


def below(folder, arrows=None):
    """All folders that `folder` may include. An endless chain of arrows is an error."""
    arrows = ARROWS if arrows is None else arrows
    seen = set()

    def visit(name, chain):
        if name in chain:
            raise ValueError("the arrows go in a circle: " + " -> ".join((*chain, name)))
        for lower in arrows[name]:
            if lower not in seen:
                visit(lower, (*chain, name))
                seen.add(lower)

    visit(folder, ())
    return seen - set(NEVER.get(folder, ((), ""))[0])


def types_in(text):
    """The line and the full name of each type in a named namespace, in a text without comments and
    strings. What is inside a type or an anonymous namespace is not meant."""
    depth = 0
    open_namespaces = []  # each with the depth it is at
    for number, line in enumerate(text.splitlines(), 1):
        namespace = NAMESPACE.match(line)
        if namespace:
            open_namespaces.append((depth, namespace[1]))
        match = TYPE.match(line)
        names = [name for _, name in open_namespaces]
        if match and depth == len(names) and all(names) and not line.rstrip().endswith(";"):
            yield number, "::".join((*names, match[1]))
        depth += line.count("{") - line.count("}")
        while open_namespaces and depth <= open_namespaces[-1][0]:
            open_namespaces.pop()


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.found = []
        self.allowed = {folder: below(folder) for folder in ARROWS}
        self.edges = {}  # source path -> {included path: line}
        self.types = {}  # full name -> where it is defined

    def breach(self, path, line, text):
        self.found.append(f"{path}:{line}: {text}")

    def files(self, tops, suffixes):
        for top in tops:
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in suffixes and path.is_file():
                    yield path.relative_to(self.root).as_posix()

    def check(self):
        for path in self.files(("src", "include", "apps"), (".h", ".cc")):
            text = (self.root / path).read_text(encoding="utf-8")
            self.check_includes(path, blank(text, {"comment"}))
            if not path.startswith("apps/"):
                self.check_code(path, blank(text, {"comment", "string"}))
        self.check_cycles()
        everything = ("src", "include", "apps", "tests", "bench", "examples", "tools")
        for path in self.files(everything, (".h", ".cc", ".py")):
            self.check_shape(path)
        for path in self.files(("include", "src", "apps", "tests", "bench"), (".h", ".cc")):
            self.check_types(path)
        return self.found

    def folder_of(self, path):
        """The folder a file belongs to: 'store/memory', 'apps', or None under include/."""
        top, _, rest = path.partition("/")
        if top == "apps":
            return "apps"
        return rest.rpartition("/")[0] if top == "src" else None

    def check_includes(self, path, text):
        folder = self.folder_of(path)
        if folder is not None and folder not in ARROWS:
            self.breach(path, 1, f"src/{folder} has no row in the table of arrows")
            return
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                self.check_include(path, folder, number, match[2], quoted=match[1] == '"')

    def check_include(self, path, folder, number, name, quoted):
        if name.startswith("weir/"):
            self.edges.setdefault(path, {})["include/" + name] = number
            return
        if folder is None:
            if quoted or not STANDARD.match(name):
                self.breach(path, number, f"a public header includes {name}")
            return
        target = self.resolve(path, name)
        if target is None:
            if quoted:
                self.breach(path, number, f'"{name}" is no file of src/; libraries go in <>')
            elif folder in EMBEDDED and HEAVY.match(name):
                self.breach(path, number, f"weir::weir must not need <{name}>")
            return
        self.edges.setdefault(path, {})[target] = number
        lower = self.folder_of(target)
        if lower not in (folder, None) and lower not in self.allowed[folder]:
            why = ""
            if lower in NEVER.get(folder, ((), ""))[0]:
                why = f" ({NEVER[folder][1]})"
            self.breach(path, number, f"{folder} may not include {lower}{why}")

    def resolve(self, path, name):
        """The file of this tree that an include means: from src/, or beside the includer."""
        beside = (self.root / path).parent / name
        for candidate in (self.root / "src" / name, beside):
            candidate = candidate.resolve()
            if candidate.is_file() and candidate.is_relative_to(self.root):
                return candidate.relative_to(self.root).as_posix()
        # Not there (yet, or only in another checkout): the name alone may tell the folder.
        return "src/" + name if name.rpartition("/")[0] in ARROWS else None

    def check_cycles(self):
        done = set()

        def visit(path, chain):
            if path in chain:
                circle = [*chain[chain.index(path) :], path]
                self.breach(chain[-1], self.edges[chain[-1]][path], "cycle: " + " -> ".join(circle))
                return
            if path in done:
                return
            for target in self.edges.get(path, {}):
                visit(target, [*chain, path])
            done.add(path)

        for path in sorted(self.edges):
            visit(path, [])

    def check_code(self, path, text):
        caught = False
        for number, line in enumerate(text.splitlines(), 1):
            if path != CLOCK_FILE and CLOCK.search(line):
                self.breach(path, number, f"reads a clock; only {CLOCK_FILE} does, take a Now")
            if EXCEPTION.search(line):
                caught = True
                if path not in MAY_CATCH:
                    self.breach(path, number, "throws or catches; return a Result")
        if path in MAY_CATCH and not caught:
            self.breach(path, 1, "catches nothing any more: take it off MAY_CATCH")

    def check_shape(self, path):
        for part in pathlib.PurePosixPath(path).with_suffix("").parts:
            for word in sorted(EMPTY_WORDS.intersection(part.lower().split("_"))):
                self.breach(path, 1, f"'{word}' says nothing: name it after what it does")
        lines = (self.root / path).read_text(encoding="utf-8").count("\n")
        if lines > MAX_LINES:
            self.breach(path, lines, f"{lines} lines, above {MAX_LINES}: find the second idea in it")

    def check_types(self, path):
        text = (self.root / path).read_text(encoding="utf-8")
        for number, name in types_in(blank(text, {"comment", "string"})):
            first = self.types.setdefault(name, f"{path}:{number}")
            if first != f"{path}:{number}":
                self.breach(path, number, f"{name} is another type at {first}")


# Trees for --self-test: what it is, its files, and a part of the breach that must be reported
# (None: nothing may be). Exactly one breach is expected.
GOOD = {
    "include/weir/limit.h": "#include <cstdint>\n#include <weir/time.h>\n",
    "include/weir/time.h": "#include <chrono>\n",
    "src/base/clock.cc": "auto t = std::chrono::steady_clock::now();\n",
    "src/limit/text.h": '#include <weir/limit.h>\n#include "base/ticks.h"\n',
    "src/base/ticks.h": "int reset_time(int);\nint x = reset_time(10'000);\n",
    "src/limit/zone.cc": "void F() { try { G(); } catch (...) {} }\n",
    "src/algorithm/step.cc": "// no throw, no steady_clock::now() here\n"
    '/* #include "server/x.h"\n throw */ auto s = "throw time(0)"; auto r = R"(catch ()";\n'
    "#include <algorithm>\n",
    "src/store/memory/table.cc": '#include "store/store.h"\n#include "algorithm/a.h"\n'
    '#include "telemetry/counter.h"\n#include <xxhash.h>\n',
    "src/frontend/http/server.cc": '#include "engine/engine.h"\n#include "net/http/parser.h"\n'
    "#include <boost/asio.hpp>\n",
    "src/server/main_loop.cc": '#include "store/redis/redis_store.h"\n#include "lab/a.h"\n',
    "src/server/one.cc": "namespace weir {\nclass Told;\nnamespace {\nclass Own {};\n}\n"
    "struct Told::Part {};\nclass Told {\n  struct Inner {\n  };\n};\n"
    "template <>\nstruct Hash<int> {};\n}\n",
    "src/server/two.cc": "namespace weir {\nnamespace {\nclass Own {};\n}\nclass Twin {\n"
    "  struct Inner {\n  };\n};\ntemplate <>\nstruct Hash<char> {};\nnamespace lab {\n"
    "class Told {};\n}\n}\n",
    "apps/weir.cc": '#include "server/options.h"\n',
}
CASES = [
    ("a clean tree", GOOD, None),
    ("upward", {"src/base/a.h": '#include "limit/limit.h"\n'}, "base may not include limit"),
    ("upward, unusual spelling", {"src/limit/a.h": '#  include  "../algorithm/a.h"\n',
     "src/algorithm/a.h": ""}, "limit may not include algorithm"),
    ("upward, in angle brackets", {"src/limit/a.h": "#include <store/store.h>\n"},
     "limit may not include store"),
    ("sideways", {"src/telemetry/a.cc": '#include "limit/a.h"\n'}, "telemetry may not include"),
    ("network in memory", {"src/store/memory/a.cc": '#include "net/loop.h"\n'},
     "store/memory may not include net"),
    ("network in the interface", {"src/store/store.h": '#include "net/loop.h"\n'},
     "store may not include net"),
    ("sibling stores", {"src/store/memory/a.cc": '#include "store/redis/a.h"\n'},
     "store/memory may not include store/redis"),
    ("limiter with Redis", {"src/limiter/a.cc": '#include "store/redis/a.h"\n'},
     "limiter may not include store/redis"),
    ("front end with a store", {"src/frontend/http/a.cc": '#include "store/store.h"\n'},
     "front ends never see a store"),
    ("sibling front ends", {"src/frontend/http/a.cc": '#include "frontend/resp/a.h"\n'},
     "frontend/http may not include frontend/resp"),
    ("codec in the engine", {"src/engine/a.cc": '#include "net/resp/a.h"\n'}, "stop at the edge"),
    ("app from below", {"src/server/a.cc": '#include "../../apps/a.h"\n', "apps/a.h": ""},
     "server may not include apps"),
    ("unknown folder", {"src/plugins/a.cc": ""}, "no row in the table"),
    ("unknown subfolder", {"src/store/disk/a.cc": ""}, "no row in the table"),
    ("nowhere", {"src/base/a.cc": '#include "xxhash.h"\n'}, "no file of src/"),
    ("heavy library", {"src/limiter/a.cc": "#include <boost/asio.hpp>\n"}, "must not need"),
    ("public header, library", {"include/weir/a.h": "#include <fmt/core.h>\n"}, "public header"),
    ("public header, src", {"include/weir/a.h": '#include "base/a.h"\n', "src/base/a.h": ""},
     "public header"),
    ("cycle", {"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": '#include "base/a.h"\n'},
     "cycle"),
    ("cycle of public headers", {"include/weir/a.h": "#include <weir/b.h>\n",
     "include/weir/b.h": "#include <weir/a.h>\n"}, "cycle"),
    ("file name", {"src/base/string_util.h": ""}, "'util'"),
    ("folder name", {"tests/integration/helpers/a.cc": ""}, "'helpers'"),
    ("throw", {"src/base/a.cc": "int F() {\n  throw 1;\n}\n"}, "a.cc:2: throws"),
    ("catch", {"src/base/a.cc": "} catch (...) {\n"}, "throws or catches"),
    ("catch no longer needed", {"src/limit/zone.cc": "int x;\n"}, "MAY_CATCH"),
    ("long file", {"src/base/a.cc": "\n" * 601}, "601 lines"),
    ("one name, two types", {"src/server/a.h": "namespace weir::lab {\nstruct Trial {\n};\n}\n",
     "src/server/b.h": "namespace weir {\n// }\nnamespace lab {\nclass alignas(64) Trial final\n"
     "    : public Base {\n};\n}\n}\n"},
     "b.h:4: weir::lab::Trial is another type at src/server/a.h:2"),
]
CASES += [
    (f"clock: {code}", {"src/limiter/a.cc": code + ";\n"}, "reads a clock")
    for code in (
        "auto t = std::chrono::steady_clock::now()",
        "auto t = system_clock::now()",
        "using C = std::chrono::high_resolution_clock",
        "clock_gettime(CLOCK_MONOTONIC, &ts)",
        "gettimeofday(&tv, nullptr)",
        "auto t = std::time(nullptr)",
        "auto t = time(nullptr)",
        "auto t = __rdtsc()",
    )
]
CASES += [("clock in a public header", {"include/weir/a.h": "auto t = C::now();\n"}, "clock")]


def self_test():
    failures = 0
    for name, files, expected in CASES:
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                target = pathlib.Path(root, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            found = Tree(root).check()
        if expected is None:
            right = not found
        else:
            right = len(found) == 1 and expected in found[0]
        if not right:
            failures += 1
            print(f"{name}: expected {expected!r}, found {found}")
    try:
        below("a", {"a": ("b",), "b": ("a",)})
        failures += 1
        print("arrows in a circle were not noticed")
    except ValueError:
        pass
    print(f"{len(CASES) + 1 - failures} of {len(CASES) + 1} as expected")
    return failures == 0


def main(arguments):
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    if not pathlib.Path(arguments[0], "src").is_dir():
        print(f"{arguments[0]} holds no src/", file=sys.stderr)
        return 2
    found = Tree(arguments[0]).check()
    print("\n".join(found) if found else "no breach")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

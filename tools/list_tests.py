#!/usr/bin/env python3
"""Lists every test case of a build: what ctest runs there, down to single cases.

    tools/list_tests.py BUILD            one line per case: PRESET, RUN BY, TEST, CASE
    tools/list_tests.py BUILD --sources  the same from the sources alone, so that BUILD need only be
                                         configured; a parameterized case is one line
    tools/list_tests.py BUILD --check    fail unless every GoogleTest case of every program is
                                         selected by exactly one ctest test

BUILD is a build folder, such as build/release, also of another commit's tree. RUN BY is `test.sh`
or `--full`. Cases of GoogleTest come from the programs, those of Python, Node and Rust from their
sources.
"""

import argparse
import ast
import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def ctest_tests(build):
    """The tests of a build folder as (name, command, labels)."""
    # In a folder of its own: ctest replaces the log of a run that is under way.
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{build}")\n',
                                                               encoding="utf-8")
        out = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, check=True,
                             capture_output=True, text=True).stdout
    for test in json.loads(out)["tests"]:
        labels = [value for entry in test.get("properties", []) if entry["name"] == "LABELS"
                  for value in entry["value"]]
        yield test["name"], test.get("command", []), labels


def gtest_cases(program):
    """All cases of a GoogleTest program, as Suite.Case."""
    # Values of parameterized tests are printed as they are, whatever their bytes.
    out = subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True,
                         encoding="utf-8", errors="replace").stdout
    suite = ""
    for line in out.splitlines():
        word = line.split("#")[0].rstrip()
        if line.startswith("  "):
            yield suite + word.strip()
        elif word.endswith("."):
            suite = word


def source_cases(path):
    """The cases of a GoogleTest source, as Suite.Case."""
    kinds = "TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP"
    text = path.read_text(encoding="utf-8")
    for suite, case in re.findall(rf"^(?:{kinds})\(\s*(\w+),\s*(\w+)", text, re.MULTILINE):
        yield f"{suite}.{case}"


def selected(cases, arguments):
    """The cases that the --gtest_filter among the arguments selects; all without one."""
    for argument in arguments:
        if argument.startswith("--gtest_filter="):
            patterns = argument.partition("=")[2].split(":")
            return [case for case in cases
                    if any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns)]
    return list(cases)


def python_cases(path, only):
    """Class.method of unittest classes and plain test functions; `only` names classes, if any."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            if only and node.name not in only:
                continue
            for item in node.body:
                if isinstance(item, functions) and item.name.startswith("test"):
                    yield f"{node.name}.{item.name}"
        elif isinstance(node, functions) and node.name.startswith("test"):
            yield node.name


def client_cases(root, client):
    """The cases of a client's own tests."""
    folder = root / "clients" / client
    if client == "python":
        for path in sorted(folder.glob("tests/**/test_*.py")):
            yield from (f"{path.stem}.{case}" for case in python_cases(path, ()))
    elif client == "node":
        for path in sorted(folder.glob("test/**/*.test.*")):
            text = path.read_text(encoding="utf-8")
            for quote, title in re.findall(r"\b(?:test|it)\(\s*(['\"`])(.*?)\1", text):
                yield f"{path.name}: {title}"
    else:
        for path in sorted([*folder.glob("src/**/*.rs"), *folder.glob("tests/**/*.rs")]):
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r"#\[(?:tokio::)?test[^\]]*\]\s*(?:async )?fn (\w+)", text):
                yield f"{path.relative_to(folder)}: {name}"


class Build:
    def __init__(self, folder, from_sources):
        self.folder, self.from_sources = folder.resolve(), from_sources
        self.root = self.source_folder()
        self.listed = {}
        # By test: src/limit/zone_rule_test.cc is limit_zone_rule_test.
        self.sources = {"_".join(path.relative_to(self.root).with_suffix("").parts[1:]): path
                        for top in ("src", "tests") for path in (self.root / top).rglob("*.cc")}

    def source_folder(self):
        cache = (self.folder / "CMakeCache.txt").read_text(encoding="utf-8")
        return pathlib.Path(re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.M)[1])

    def gtest(self, path):
        """The cases of a program; nothing if it is not one of GoogleTest."""
        name = pathlib.Path(path).name
        if not re.search(r"_tests?$|^interleaving_", name):
            return None
        if path not in self.listed:
            self.listed[path] = list(gtest_cases(path))
        return self.listed[path]

    def cases_of(self, name, command):
        if self.from_sources:
            source = self.sources.get(name.removesuffix("_long"))
            if source:
                return list(source_cases(source))
        elif command and self.gtest(command[0]) is not None:
            return selected(self.gtest(command[0]), command[1:])
        client = re.fullmatch(r"clients_(\w+)_test", name)
        if client:
            return list(client_cases(self.root, client[1]))
        scripts = [word for word in command if word.endswith("_test.py")]
        if scripts:
            only = [word for word in command[1:] if re.fullmatch(r"[A-Z]\w+", word)]
            return list(python_cases(pathlib.Path(scripts[0]), only)) or ["(whole)"]
        return ["(whole)"]


def run_by(preset, labels):
    """Which command runs a test; None if none does in this preset."""
    if preset == "tsan" and "threads" not in labels:
        return None
    if "long" in labels or ("unit" in labels and preset == "release"):
        return "--full"
    return "test.sh"


def list_cases(build):
    preset = build.folder.name
    for name, command, labels in ctest_tests(build.folder):
        command_line = run_by(preset, labels)
        if command_line:
            for case in build.cases_of(name, command):
                yield f"{preset}\t{command_line}\t{name}\t{case}"


def check(build):
    """What is wrong with the filters of a build, as lines."""
    chosen = {}
    found = []
    for name, command, _ in ctest_tests(build.folder):
        cases = build.gtest(command[0]) if command else None
        if cases is None or name.endswith("_long"):
            continue
        mine = selected(cases, command[1:])
        if not mine:
            found.append(f"{name} selects no case")
        for case in mine:
            chosen.setdefault((command[0], case), []).append(name)
    for program, cases in build.listed.items():
        for case in cases:
            names = chosen.get((program, case), [])
            if len(names) != 1:
                who = "no ctest test" if not names else " and ".join(names)
                found.append(f"{pathlib.Path(program).name}: {case} is run by {who}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--sources", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    build = Build(options.build, options.sources)
    if options.check:
        problems = check(build)
        total = sum(len(cases) for cases in build.listed.values())
        print("\n".join(problems) or f"{total} cases of {len(build.listed)} programs, each run once")
        sys.exit(1 if problems else 0)
    print("\n".join(sorted(list_cases(build))))


if __name__ == "__main__":
    main()

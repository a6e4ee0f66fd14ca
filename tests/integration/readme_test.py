#!/usr/bin/env python3
"""Compiles and runs the C++ in README.md, docs/, gateways/, clients/ and examples/, loads the
policies in them, and follows the links between them.

    readme_test.py SOURCE BUILD COMPILER

A block marked `cpp` that holds `int main` is a program. The other `cpp` blocks of a page are, one
after the other, the body of one more program. Each must compile against the library in BUILD and
end with 0. A block marked `output` is what the program before it prints. A block marked `yaml` that
says `clients:` is a scenario, whose simulation must find nothing; another is a policy that must load
without a word of advice, and so is every file in gateways/ and examples/
whose name begins with `weir` and ends in `.yaml`. A relative link must lead to a file that is there and, if it names
one, to a heading in it.
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FLAGS = ("-std=c++23", "-O0", "-Wall", "-Wextra", "-Werror")
LIBRARIES = ("-ldate-tz", "-lpthread")
# What a program with an engine needs besides.
ENGINE = re.compile(r"#include <weir/(engine|policy\w*|identity)\.h>")
ENGINE_LIBRARIES = ("-lyaml-cpp", "-lsimdjson", "-lssl", "-lcrypto")
SECONDS = 60

BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
INLINE_CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)


@dataclasses.dataclass
class Program:
    where: str  # page:line
    code: str
    output: str | None = None  # None: whatever it prints


def programs_of(page, text):
    """The programs of one page, fragments joined to one."""
    found = []
    includes, body = [], []
    fragments_from = 0
    for block in BLOCK.finditer(text):
        language, code = block[1], block[2]
        line = text.count("\n", 0, block.start(2)) + 1
        if language == "output":
            if not found:
                raise ValueError(f"{page}:{line}: output without a program before it")
            found[-1].output = code
        if language != "cpp":
            continue
        marked = f'#line {line} "{page}"\n{code}'
        if "int main" in code:
            found.append(Program(f"{page}:{line}", marked))
            continue
        fragments_from = fragments_from or line
        for number, words in enumerate(code.splitlines(), line):
            (includes if words.startswith("#include") else body).append(
                f'#line {number} "{page}"\n{words}')
    if body:
        code = "\n".join([*includes, "int main() {", *body, "}", ""])
        found.append(Program(f"{page}:{fragments_from} (fragments)", code))
    return found


def policies_of(page, text):
    """The policies of one page: where each is, and its text."""
    for block in BLOCK.finditer(text):
        if block[1] == "yaml":
            line = text.count("\n", 0, block.start(2)) + 1
            yield Program(f"{page}:{line}", block[2])


class Builder:
    def __init__(self, source, build, compiler):
        self.include = source / "include"
        self.library = build / "src" / "libweir.a"
        self.policy_library = build / "src" / "libweir_policies.a"
        self.weir = build / "weir"
        self.compiler = compiler

    def policy_problem(self, policy):
        """What is wrong with a policy, or with a scenario, or None."""
        if re.search(r"^clients:", policy.code, re.MULTILINE):
            return self.scenario_problem(policy)
        checked = run([self.weir, "check-config", "--strict", "-"], policy.code)
        if checked.returncode == 0:
            return None
        return "does not load as it is\n" + checked.stdout + checked.stderr

    def scenario_problem(self, scenario):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            file.write(scenario.code)
            file.flush()
            ran = run([self.weir, "simulate", file.name])
        return None if ran.returncode == 0 else "does not end well\n" + ran.stdout + ran.stderr

    def problem(self, program):
        """What is wrong with a program, or None."""
        with tempfile.TemporaryDirectory() as folder:
            source, binary = pathlib.Path(folder, "program.cc"), pathlib.Path(folder, "program")
            source.write_text(program.code, encoding="utf-8")
            libraries = [self.library, *LIBRARIES]
            if ENGINE.search(program.code):
                libraries = [self.policy_library, *libraries, *ENGINE_LIBRARIES]
            compiled = run([self.compiler, *FLAGS, f"-I{self.include}", source, *libraries,
                            "-o", binary])
            if compiled.returncode != 0:
                return "does not compile\n" + compiled.stderr
            try:
                ran = run([binary])
            except subprocess.TimeoutExpired:
                return f"runs longer than {SECONDS} s"
        if ran.returncode != 0:
            return f"ends with {ran.returncode}\n{ran.stdout}{ran.stderr}"
        if program.output is not None and ran.stdout != program.output:
            return f"prints\n{ran.stdout}rather than\n{program.output}"
        return None


def run(command, text_in=""):
    return subprocess.run(command, input=text_in, capture_output=True, text=True, timeout=SECONDS,
                          check=False)


FOLDERS = ("docs", "gateways", "clients", "examples")


def pages_in(folder):
    """Our own; what was installed beside them has pages, too."""
    return [page for page in sorted(folder.rglob("*.md")) if "node_modules" not in page.parts]


# --- Links ---


def anchors_of(text):
    """The names that a heading can be linked by."""
    headings = HEADING.findall(BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page, text, root):
    for match in LINK.finditer(INLINE_CODE.sub("", BLOCK.sub("", text))):
        path, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (root / page).parent / path if path else root / page
        if not target.exists():
            yield f"{page}: {match[1]} leads nowhere"
        elif anchor and anchor not in anchors_of(target.read_text(encoding="utf-8")):
            yield f"{page}: {match[1]}: no such heading"


# --- The checks, and the check of the checks ---

# A page, and a part of what must be said of it; None: nothing may be.
PAGES = [
    ("```cpp\nint main() { return 0; }\n```\n", None),
    ("```cpp\nint main() { retrun 0; }\n```\n", "page.md:2: does not compile"),
    ("```cpp\nint main() { return 3; }\n```\n", "page.md:2: ends with 3"),
    ("```cpp\n#include <cstdio>\nint main() { std::puts(\"a\"); }\n```\n```output\na\n```\n", None),
    ("```cpp\n#include <cstdio>\nint main() { std::puts(\"a\"); }\n```\n```output\nb\n```\n",
     "prints\na\nrather than\nb"),
    ("```cpp\nint x = 1;\n```\nand\n```cpp\nif (x != 1) return 1;\n```\n", None),
    ("```cpp\nint x = 1;\n```\nand\n```cpp\nreturn x;\n```\n", "ends with 1"),
    ("```sh\nint main() { retrun 0; }\n```\n", None),
    ("```yaml\nrules: [{ name: a, key: ip, limit: 1/s }]\n```\n", None),
    ("```yaml\nrules: [{ name: a, key: ip, limit: 1/parsec }]\n```\n", "E101"),
    ("```yaml\npolicy: any\nclients: [{ rate: 5/s }]\n```\n", None),
    ("```yaml\npolicy: any\nclients: [{ rate: 5/s }]\nexpect: { requests: at most 1 }\n```\n",
     "does not end well"),
    ("# A b: `c`\n[here](#a-b-c) `[no](link)`\n", None),
    ("[there](gone.md)\n", "gone.md leads nowhere"),
    ("# Here\n[there](page.md#there)\n", "no such heading"),
]


def self_check(builder):
    """A check that finds nothing wrong is only worth something if it finds what is."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for text, expected in PAGES:
            (root / "page.md").write_text(text, encoding="utf-8")
            _, found = check(root, [root / "page.md"], builder)
            right = not found if expected is None else len(found) == 1 and expected in found[0]
            if not right:
                yield f"self-check: expected {expected!r} of\n{text}found {found}"


def check(root, pages, builder):
    found, programs, policies = [], [], []
    for path in pages:
        page, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        found += broken_links(page, text, root)
        programs += programs_of(page, text)
        policies += policies_of(page, text)
    for policy in policies:
        problem = builder.policy_problem(policy)
        if problem is not None:
            found.append(f"{policy.where}: {problem}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for program, problem in zip(programs, pool.map(builder.problem, programs)):
            if problem is not None:
                found.append(f"{program.where}: {problem}")
    return len(programs), found


def policy_files(root, paths, builder):
    for path in paths:
        policy = Program(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        problem = builder.policy_problem(policy)
        if problem is not None:
            yield f"{policy.where}: {problem}"


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    root, build = (pathlib.Path(argument).resolve() for argument in arguments[:2])
    builder = Builder(root, build, arguments[2])
    if not builder.library.is_file():
        print(f"{builder.library} is not there; build it first", file=sys.stderr)
        return 2
    pages = [root / "README.md", *(page for folder in FOLDERS for page in pages_in(root / folder))]
    count, found = check(root, pages, builder)
    policies = [file for folder in ("gateways", "examples")
                for file in sorted((root / folder).rglob("weir*.yaml"))]
    found += policy_files(root, policies, builder)
    found += self_check(builder)
    print("\n".join([*found, f"{count} programs in {len(pages)} pages, {len(found)} problems"]))
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

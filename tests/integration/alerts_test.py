#!/usr/bin/env python3
"""docs/alerts.yaml: good rules, that fire when they should.

    alerts_test.py SOURCE
"""

import pathlib
import shutil
import subprocess
import sys

import yaml


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"promtool {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def check_rule(rule):
    """What is wrong with a rule that promtool does not mind."""
    name = rule["alert"]
    if rule.get("labels", {}).get("severity") not in ("page", "ticket"):
        yield f"{name}: severity is neither page nor ticket"
    annotations = rule.get("annotations", {})
    if not annotations.get("summary") or len(annotations.get("description", "")) < 80:
        yield f"{name}: say in summary what happened, and in description what to do"


def main(source):
    if shutil.which("promtool") is None:
        print("promtool is missing: install the package prometheus")
        return 1
    root = pathlib.Path(source)
    alerts = root / "docs/alerts.yaml"
    tests = root / "tests/integration/alerts_rules.yaml"
    good = promtool("check", "rules", "--lint-fatal", alerts) and promtool("test", "rules", tests)
    rules = [
        rule
        for group in yaml.safe_load(alerts.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]
    wrong = [problem for rule in rules for problem in check_rule(rule)]
    told = tests.read_text(encoding="utf-8")
    wrong += [f"{rule['alert']}: no history tests it" for rule in rules if rule["alert"] not in told]
    print("\n".join(wrong) if wrong else f"{len(rules)} rules")
    return 0 if good and not wrong else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

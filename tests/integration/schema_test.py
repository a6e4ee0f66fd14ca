#!/usr/bin/env python3
"""Holds docs/weir.schema.json against policies that are right and policies that are not.

    schema_test.py SOURCE

Every policy among the examples must be valid. Every small policy below must not be, so that an
editor that goes by the schema marks what `weir check-config` would refuse.
"""

import json
import pathlib
import re
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """Texts as Weir and editors read them: `off` is a word, and a date no date."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers
            if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for word in ("true", "false"):
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(f"^{word}$"),
                                 word[0])

RULE = "rules: [{ name: a, key: ip, limit: 5/min%s }]"
# Parts that the examples do not have.
GOOD = [
    "rules:",
    RULE % ", mode: off",
    RULE % ", overrides: customers.csv",
    RULE % ", overrides: { ann: 10/min, bob: unlimited }",
    RULE % ", overrides: [{ user: ann, org: acme, limit: 10/min }, { file: more.csv }]",
    RULE % ", block: { after: 10 denials in 1min, for: 10min, growing: 2x up to 1day }",
    RULE % ", cost: 5",
    RULE % ", cost: 1k",
    RULE % ', match: { path: "/users/{id}/**", header.x-team: { not: [a, b] }, any: [{ ip: 10.0.0.0/8 }] }',
    RULE % ", match: { not: { user: absent }, query.page: 5 }",
    "rules: [{ name: a, key: [{ ip: { v6: 56 } }, { first_of: [user, { api_key: { hash: true } }] }], limit: deny }]",
    "rules: [{ name: a, key: global, limit: 20 concurrent lease 30s }]",
    "rules: [{ name: a, key: ip, limit: 1M/month, align: calendar, algorithm: fixed_window }]",
    "rules: [{ name: a, key: ip, limit: 5/30s }]",
    "allow: { ip: 10.0.0.0/8 }\ndeny: [{ user: eve }]",
    "store: [redis://a:6379, rediss://b:6379]\nredis: { timeout: 20ms, connections: 2 }",
    "listen: { http: { address: 127.0.0.1:8080, token: env:TOKEN, tls: { certificate: a, key: b } } }",
    "listen: { http: { address: 127.0.0.1:8080, token: env:TOKEN, manage_token: file:manage } }",
    "memory: { cap: 64MiB }\nlimits: { body: 65536, waiters: 10k }\nmax_wait: 10s",
    "limits: { command: 1MiB, buffers: 1GiB, idle_timeout: 1h, header_timeout: 5s, write_timeout: 500ms }",
    "client_ip: { header: forwarded, hops: 2, ipv6_prefix: 48 }\nfleet_size: 3",
    "headers: ratelimit\nreset: delta\nmanage: open\nunidentified: skip",
]
BROKEN = [
    "rulez: []",
    "rules: {}",
    "rules: [{ key: ip, limit: 5/min }]",
    "rules: [{ name: a, limit: 5/min }]",
    "rules: [{ name: a, key: ip }]",
    "rules: [{ name: a b, key: ip, limit: 5/min }]",
    "rules: [{ name: a, key: adress, limit: 5/min }]",
    "rules: [{ name: a, key: { first_of: [] }, limit: 5/min }]",
    "rules: [{ name: a, key: { ip: { v6: 200 } }, limit: 5/min }]",
    "rules: [{ name: a, key: { ip: { v5: 20 } }, limit: 5/min }]",
    "rules: [{ name: a, key: ip, limit: 5 per minute }]",
    "rules: [{ name: a, key: ip, limit: 5/fortnight }]",
    "rules: [{ name: a, key: ip, limit: 5/min bursts 3 }]",
    "rules: [{ name: a, key: ip, limit: 5 }]",
    "rules: [{ name: a, key: ip, limit: { teir: requests } }]",
    RULE % ", burst: 5",
    RULE % ", algorithm: bucket",
    RULE % ", mode: on",
    RULE % ", strict: sometimes",
    RULE % ", enforce_percent: 101",
    RULE % ", cost: -1",
    RULE % ", cost: { header: a, form: trusted }",
    RULE % ", match: { usr: present }",
    RULE % ", match: [user]",
    RULE % ", match: { header: x-team }",
    RULE % ", match: { user: { unless: ann } }",
    RULE % ", block: { after: 10 times, for: 10min }",
    RULE % ", block: { after: 10 denials in 1min, for: 10 minutes }",
    RULE % ", overrides: [{ user: ann }]",
    RULE % ", overrides: { ann: lots }",
    RULE % ", on_store_failure: ignore",
    "tiers: { free: 10/min }",
    "tiers: { free: { requests: many } }",
    "identity: { usr: { header: a } }",
    "identity: { user: { header: a, from: everyone } }",
    "client_ip: { ipv6_prefix: 8 }",
    "store: postgres://a",
    "listen: { https: 127.0.0.1:8080 }",
    "listen: { http: 8080 }",
    "listen: { http: { address: 127.0.0.1:8080, token: env:TOKEN, manage_token: hunter2 } }",
    "listen: { http: { address: 127.0.0.1:8080, manage_token: env:TOKEN } }",
    "limits: { idle_timeout: 5 }",
    "limits: { buffers: lots }",
    "hash_secret: hunter2",
    "headers: [x-rate-limit]",
    "memory: { cap: 64 megabytes }",
    "max_wait: 10 s",
    "- a list",
]


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0])
    schema = json.loads((root / "docs" / "weir.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    def problems(text):
        return [f"{error.json_path}: {error.message[:200]}"
                for error in validator.iter_errors(yaml.load(text, Loader))]

    failures = []
    examples = sorted((root / "examples" / "policies").glob("*.yaml"))
    if not examples:
        failures.append("there are no examples")
    for name, text in [*((path.name, path.read_text(encoding="utf-8")) for path in examples),
                       *((text, text) for text in GOOD)]:
        failures += [f"{name}: should be valid: {problem}" for problem in problems(text)]
    failures += [f"{text}: should not be valid" for text in BROKEN if not problems(text)]
    print("\n".join(failures) if failures else
          f"{len(examples) + len(GOOD)} valid, {len(BROKEN)} not, as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

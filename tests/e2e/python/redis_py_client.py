#!/usr/bin/env python3
"""Runs commands by redis-py.

    redis_py_client.py HOST PORT PROTOCOL PASSWORD

PROTOCOL is `default`, 2 or 3. Standard input has {"one_by_one": [[WORD...]...], "pipelined": [...]};
standard output gets the replies in the same places, an error as {"error": TEXT}.
"""

import json
import sys

import redis


def plain(reply):
    """Something that JSON can say."""
    if isinstance(reply, Exception):
        return {"error": str(reply)}
    if isinstance(reply, bytes):
        return reply.decode()
    if isinstance(reply, dict):
        return {plain(name): plain(value) for name, value in reply.items()}
    if isinstance(reply, (list, tuple)):
        return [plain(item) for item in reply]
    return reply


def call(client, words):
    try:
        return plain(client.execute_command(*words))
    except redis.ResponseError as error:
        return plain(error)


def main(host, port, protocol, password):
    settings = {}
    if protocol != "default":
        settings["protocol"] = int(protocol)
    if password:
        settings["password"] = password
    work = json.load(sys.stdin)
    client = redis.Redis(host=host, port=int(port), **settings)
    replies = {"version": redis.__version__,
               "one_by_one": [call(client, words) for words in work["one_by_one"]]}
    pipeline = client.pipeline(transaction=False)
    for words in work["pipelined"]:
        pipeline.execute_command(*words)
    replies["pipelined"] = plain(pipeline.execute(raise_on_error=False))
    client.close()
    json.dump(replies, sys.stdout)


main(*sys.argv[1:])

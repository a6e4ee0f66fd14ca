"""gRPC as programs speak it: grpcio, with stubs made from our .proto files by setup.sh. Whoever
imports this is run again by the interpreter that has them.

    with grpc_client.Client(service.grpc) as client:
        client.check(user="ann").remaining
        client.ask("shop", entries(user="ann"), entries(path="/")).statuses
"""

import os
import pathlib
import subprocess
import sys

MADE = pathlib.Path(__file__).resolve().parents[2] / "build" / "clients"
HOME = MADE / "grpc-py"


def made(name):
    path = MADE / name
    if not path.exists():
        raise SystemExit(f"{path} is not there: run tests/e2e/setup.sh")
    return str(path)


PYTHON = made("grpc-py/bin/python")
if not os.path.samefile(sys.prefix, HOME):
    os.execv(PYTHON, [PYTHON, *sys.argv])
sys.path.insert(0, str(HOME / "stubs"))

# pylint: disable=wrong-import-position
import grpc
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from weir.v1 import limiter_pb2, limiter_pb2_grpc

import daemon

Code = grpc.StatusCode
OK = rls_pb2.RateLimitResponse.OK
OVER_LIMIT = rls_pb2.RateLimitResponse.OVER_LIMIT


def entries(hits=None, *, negative=False, limit=None, **values):
    """A descriptor. `limit`: a count and the name of a unit."""
    made_of = ratelimit_pb2.RateLimitDescriptor(is_negative_hits=negative)
    for key, value in values.items():
        made_of.entries.add(key=key, value=value)
    if hits is not None:
        made_of.hits_addend.value = hits
    if limit is not None:
        made_of.limit.requests_per_unit, made_of.limit.unit = limit
    return made_of


def request(domain, *descriptors, hits=0):
    return rls_pb2.RateLimitRequest(domain=domain, descriptors=descriptors, hits_addend=hits)


def named(values):
    """NamedValue messages of a dict."""
    return [limiter_pb2.NamedValue(name=name, value=value) for name, value in values.items()]


class Client:
    """One connection."""

    def __init__(self, address, *, token=None, options=()):
        """A port of 127.0.0.1, or the path of a unix socket."""
        target = f"127.0.0.1:{address}" if isinstance(address, int) else f"unix:{address}"
        # None of another client's, and no waiting where something has gone.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0), *options]
        self.channel = grpc.insecure_channel(target, options=options)
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.limiter = limiter_pb2_grpc.LimiterStub(self.channel)
        self.rls = rls_pb2_grpc.RateLimitServiceStub(self.channel)

    def call(self, method, message, *, timeout=daemon.PATIENCE, **more):
        """A method of weir.v1.Limiter, by its name."""
        return getattr(self.limiter, method)(message, timeout=timeout, metadata=self.metadata,
                                             **more)

    def check(self, **fields):
        return self.call("Check", limiter_pb2.CheckRequest(**fields))

    def peek(self, **fields):
        return self.call("Peek", limiter_pb2.CheckRequest(**fields))

    def ask(self, domain, *descriptors, hits=0, **more):
        return self.rls.ShouldRateLimit(request(domain, *descriptors, hits=hits),
                                        timeout=daemon.PATIENCE, metadata=self.metadata, **more)

    def raw(self, path, data, **more):
        """Bytes to any method, and bytes back."""
        return self.channel.unary_unary(path)(data, timeout=daemon.PATIENCE,
                                              metadata=self.metadata, **more)

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def error_of(call, *arguments, **more):
    """What a call that must fail fails with."""
    try:
        said = call(*arguments, **more)
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"no error, but {said}")


def run(program, *arguments, status=0):
    """Its output. `status`: what it must end with."""
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                         timeout=daemon.PATIENCE)
    if ran.returncode != status:
        raise AssertionError(f"{program} {arguments}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout + ran.stderr

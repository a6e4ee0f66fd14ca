"""Talks to the service by stubs of Envoy's own .proto files, and compares those files with ours.

    envoy_stubs_client.py STUBS PROTOSET PORT

STUBS is the folder with the stubs, PROTOSET what our files say. Prints JSON.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

# pylint: disable=wrong-import-position
import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.json_format import MessageToDict
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc


def shape(field):
    """What counts on the wire."""
    return (field.name, field.type, field.label, field.type_name)


def compare_messages(ours, theirs, where, found):
    fields = {field.number: field for field in theirs.field}
    for field in ours.field:
        found["fields"] += 1
        other = fields.get(field.number)
        if other is None:
            found["newer"].append(f"{where}.{field.name}")
        elif shape(other) != shape(field):
            found["differences"].append(f"{where}.{field.name}")
    nested = {message.name: message for message in theirs.nested_type}
    for message in ours.nested_type:
        compare_messages(message, nested[message.name], f"{where}.{message.name}", found)
    enums = {enum.name: enum for enum in theirs.enum_type}
    for enum in ours.enum_type:
        compare_enums(enum, enums[enum.name], f"{where}.{enum.name}", found)


def compare_enums(ours, theirs, where, found):
    def values(enum):
        return {(value.name, value.number) for value in enum.value}
    found["differences"] += [f"{where}.{name}" for name, _ in values(ours) - values(theirs)]


def compare(protoset):
    found = {"fields": 0, "newer": [], "differences": []}
    pool = descriptor_pool.Default()
    with open(protoset, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
    for ours in files:
        if not ours.package.startswith("envoy."):
            continue
        for message in ours.message_type:
            theirs = descriptor_pb2.DescriptorProto()
            name = f"{ours.package}.{message.name}"
            pool.FindMessageTypeByName(name).CopyToProto(theirs)
            compare_messages(message, theirs, name, found)
        for enum in ours.enum_type:
            theirs = descriptor_pb2.EnumDescriptorProto()
            name = f"{ours.package}.{enum.name}"
            pool.FindEnumTypeByName(name).CopyToProto(theirs)
            compare_enums(enum, theirs, name, found)
    return found


def main():
    found = compare(sys.argv[2])
    channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[3]}")
    stub = rls_pb2_grpc.RateLimitServiceStub(channel)
    descriptor = ratelimit_pb2.RateLimitDescriptor(
        entries=[ratelimit_pb2.RateLimitDescriptor.Entry(key="user", value="stub")])
    request = rls_pb2.RateLimitRequest(domain="shop", descriptors=[descriptor])
    said = [stub.ShouldRateLimit(request, timeout=30) for _ in range(4)]
    name = rls_pb2.RateLimitResponse.Code.Name
    found["codes"] = [name(one.overall_code) for one in said]
    found["limit"] = MessageToDict(said[0].statuses[0].current_limit,
                                   preserving_proto_field_name=True)
    found["headers"] = [header.key for header in said[3].response_headers_to_add]
    found["body"] = said[3].raw_body.decode()
    descriptor.limit.requests_per_unit, descriptor.limit.unit = 10, 4
    descriptor.hits_addend.value = 4
    status = stub.ShouldRateLimit(rls_pb2.RateLimitRequest(
        domain="shop", descriptors=[descriptor], hits_addend=9), timeout=30).statuses[0]
    unit = rls_pb2.RateLimitResponse.RateLimit.Unit.Name(status.current_limit.unit)
    found["override"] = [name(status.code), status.limit_remaining, unit]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()

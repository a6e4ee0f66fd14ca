// Tells clients without stubs what services there are: grpc.reflection.v1 and v1alpha, which are
// the same on the wire.
#pragma once

#include <string_view>

#include "net/byte_buffer.h"

namespace weir {

// The descriptors of all .proto files, as protoc made them: a FileDescriptorSet.
std::string_view GrpcDescriptors() noexcept;

// Answers one message. False if it is no ServerReflectionRequest.
bool AnswerReflection(std::string_view request, ByteBuffer& out);

}  // namespace weir

// Messages of gRPC calls, read by us and by Google's protobuf: what one takes the other must take,
// and both must read the same.
//
// The first byte says which message it is; the rest is the message.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include "frontend/grpc/health.h"
#include "frontend/grpc/limiter_message.h"
#include "frontend/grpc/reflection.h"
#include "frontend/grpc/rls_message.h"

namespace {

namespace pb = google::protobuf;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// Google's reader, from the descriptors that we tell clients of.
class Second {
 public:
  Second() {
    pb::FileDescriptorSet files;
    const std::string_view bytes = weir::GrpcDescriptors();
    if (!files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) Fail("no descriptors");
    for (const auto& file : files.file()) {
      if (pool_.BuildFile(file) == nullptr) Fail("a file that cannot be built: " + file.name());
    }
  }
  // None if it is no such message.
  std::unique_ptr<pb::Message> Read(const std::string& type, std::string_view bytes) {
    std::unique_ptr<pb::Message> message(
        factory_.GetPrototype(pool_.FindMessageTypeByName(type))->New());
    if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return nullptr;
    return message;
  }

 private:
  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_{&pool_};
};

Second& Theirs() {
  static Second second;
  return second;
}

const pb::FieldDescriptor* FieldOf(const pb::Message& message, const char* name) {
  return message.GetDescriptor()->FindFieldByName(name);
}
std::string TextOf(const pb::Message& message, const char* name) {
  return message.GetReflection()->GetString(message, FieldOf(message, name));
}
int CountOf(const pb::Message& message, const char* name) {
  return message.GetReflection()->FieldSize(message, FieldOf(message, name));
}
const pb::Message& ItemOf(const pb::Message& message, const char* name, int number) {
  return message.GetReflection()->GetRepeatedMessage(message, FieldOf(message, name), number);
}

void Same(std::string_view ours, const std::string& theirs, const char* what) {
  if (ours != theirs) Fail(std::string("we read something else: ") + what);
}

// That it was not read because of its bytes, rather than of what it says.
bool IsUnreadable(const weir::Error& error) {
  return error.message.find(".proto?") != std::string::npos ||
         error.message.find("UTF-8") != std::string::npos;
}

void CheckRls(std::string_view bytes) {
  weir::RlsRequest ours;
  const auto error = weir::ReadRlsRequest(bytes, ours);
  const auto theirs = Theirs().Read("envoy.service.ratelimit.v3.RateLimitRequest", bytes);
  if (theirs == nullptr && !error) Fail("we read what is no RateLimitRequest");
  if (theirs != nullptr && error && IsUnreadable(*error)) Fail("we do not read a RateLimitRequest");
  if (error || theirs == nullptr) return;
  Same(ours.domain, TextOf(*theirs, "domain"), "domain");
  const int count = CountOf(*theirs, "descriptors");
  if (static_cast<std::size_t>(count) != ours.descriptors.size()) Fail("another number of them");
  for (int i = 0; i < count; ++i) {
    const pb::Message& descriptor = ItemOf(*theirs, "descriptors", i);
    const auto entries = ours.EntriesOf(ours.descriptors[static_cast<std::size_t>(i)]);
    const int entry_count = CountOf(descriptor, "entries");
    if (static_cast<std::size_t>(entry_count) != entries.size()) Fail("another number of entries");
    for (int j = 0; j < entry_count; ++j) {
      const pb::Message& entry = ItemOf(descriptor, "entries", j);
      Same(entries[static_cast<std::size_t>(j)].name, TextOf(entry, "key"), "key");
      Same(entries[static_cast<std::size_t>(j)].value, TextOf(entry, "value"), "value");
    }
    const auto& mine = ours.descriptors[static_cast<std::size_t>(i)];
    const pb::Reflection& reflection = *descriptor.GetReflection();
    if (mine.is_negative !=
        reflection.GetBool(descriptor, FieldOf(descriptor, "is_negative_hits"))) {
      Fail("is_negative_hits");
    }
    if (mine.hits.has_value() !=
        reflection.HasField(descriptor, FieldOf(descriptor, "hits_addend"))) {
      Fail("hits_addend");
    }
    if (mine.limit.has_value() != reflection.HasField(descriptor, FieldOf(descriptor, "limit"))) {
      Fail("limit");
    }
    if (mine.limit) {
      const pb::Message& limit = reflection.GetMessage(descriptor, FieldOf(descriptor, "limit"));
      if (mine.limit->requests !=
          limit.GetReflection()->GetUInt32(limit, FieldOf(limit, "requests_per_unit"))) {
        Fail("requests_per_unit");
      }
    }
  }
}

void CheckLimiter(std::string_view bytes, weir::GrpcMethodKind method, const std::string& type) {
  weir::LimiterMessage ours;
  const auto error = weir::ReadLimiterMessage(bytes, method, ours);
  const auto theirs = Theirs().Read(type, bytes);
  if (theirs == nullptr && !error) Fail("we read what is no " + type);
  if (theirs != nullptr && error && IsUnreadable(*error)) Fail("we do not read a " + type);
  if (error || theirs == nullptr || method != weir::GrpcMethodKind::kCheck) return;
  Same(ours.request.ip, TextOf(*theirs, "ip"), "ip");
  Same(ours.request.user, TextOf(*theirs, "user"), "user");
  Same(ours.request.domain, TextOf(*theirs, "domain"), "domain");
  if (static_cast<std::size_t>(CountOf(*theirs, "headers")) != ours.headers.size()) Fail("headers");
  if (static_cast<std::size_t>(CountOf(*theirs, "rules")) != ours.rules.size()) Fail("rules");
  const auto* const cost = FieldOf(*theirs, "cost");
  if (ours.has_cost != theirs->GetReflection()->HasField(*theirs, cost)) Fail("cost");
  if (ours.has_cost && ours.cost != theirs->GetReflection()->GetInt64(*theirs, cost)) Fail("cost");
}

void CheckReflection(std::string_view bytes) {
  weir::ByteBuffer out;
  const bool read = weir::AnswerReflection(bytes, out);
  if (!read) return;
  if (Theirs().Read("grpc.reflection.v1.ServerReflectionResponse", out.view()) == nullptr &&
      Theirs().Read("grpc.reflection.v1.ServerReflectionRequest", bytes) != nullptr) {
    Fail("our answer is no ServerReflectionResponse");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = [] {
    pb::SetLogHandler(nullptr);
    return true;
  }();
  if (size == 0 || !quiet) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  using Kind = weir::GrpcMethodKind;
  switch (data[0] % 8) {
    case 0:
    case 1:
      CheckRls(bytes);
      break;
    case 2:
      CheckLimiter(bytes, Kind::kCheck, "weir.v1.CheckRequest");
      break;
    case 3:
      CheckLimiter(bytes, Kind::kLimit, "weir.v1.LimitRequest");
      break;
    case 4:
      CheckLimiter(bytes, Kind::kReserve, "weir.v1.ReserveRequest");
      break;
    case 5:
      CheckLimiter(bytes, Kind::kCommit, "weir.v1.CommitRequest");
      break;
    case 6: {
      std::vector<std::string_view> requests;
      const bool read = !weir::ReadBatchMessage(bytes, requests).has_value();
      if (!read && Theirs().Read("weir.v1.CheckBatchRequest", bytes) != nullptr &&
          requests.size() <= weir::kMostGrpcBatch) {
        Fail("we do not read a CheckBatchRequest");
      }
      break;
    }
    default:
      CheckReflection(bytes);
      const auto service = weir::ReadHealthRequest(bytes);
      const auto theirs = Theirs().Read("grpc.health.v1.HealthCheckRequest", bytes);
      if (service.has_value() != (theirs != nullptr)) Fail("HealthCheckRequest");
      if (service) Same(*service, TextOf(*theirs, "service"), "service");
  }
  return 0;
}

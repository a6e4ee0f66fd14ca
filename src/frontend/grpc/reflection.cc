#include "frontend/grpc/reflection.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/grpc/grpc_status.h"
#include "net/protobuf/wire.h"

namespace weir {
namespace {

// What is in the files, by name. Of descriptor.proto only the names of things are read.
class DescriptorIndex {
 public:
  DescriptorIndex() {
    ProtobufReader set(GrpcDescriptors());
    while (set.Next()) {
      if (set.Is(1, WireType::kBytes)) AddFile(set.bytes());
    }
  }

  // None if there is no such file, or symbol.
  const std::string_view* FileNamed(std::string_view name) const { return Find(files_, name); }
  const std::string_view* FileWith(std::string_view symbol) const { return Find(symbols_, symbol); }
  const std::vector<std::string>& services() const noexcept { return services_; }

 private:
  using Files = std::map<std::string, std::string_view, std::less<>>;

  static const std::string_view* Find(const Files& files, std::string_view name) {
    const auto found = files.find(name);
    return found == files.end() ? nullptr : &found->second;
  }

  // The first text of a message under this number.
  static std::string TextOf(std::string_view message, std::uint32_t field) {
    for (ProtobufReader reader(message); reader.Next();) {
      if (reader.Is(field, WireType::kBytes)) return std::string(reader.bytes());
    }
    return {};
  }

  void AddFile(std::string_view file) {
    constexpr std::uint32_t kName = 1, kPackage = 2, kMessage = 4, kEnum = 5, kService = 6;
    files_[TextOf(file, kName)] = file;
    const std::string package = TextOf(file, kPackage);
    for (ProtobufReader reader(file); reader.Next();) {
      if (reader.Is(kMessage, WireType::kBytes)) AddMessage(file, package, reader.bytes());
      if (reader.Is(kEnum, WireType::kBytes)) AddNamed(file, package, reader.bytes(), 2);
      if (!reader.Is(kService, WireType::kBytes)) continue;
      AddNamed(file, package, reader.bytes(), 2);
      services_.push_back(package + "." + TextOf(reader.bytes(), 1));
    }
  }

  // One with a name, and members with names under the number.
  std::string AddNamed(std::string_view file, const std::string& scope, std::string_view thing,
                       std::uint32_t members) {
    const std::string name = scope + "." + TextOf(thing, 1);
    symbols_[name] = file;
    for (ProtobufReader reader(thing); reader.Next();) {
      if (reader.Is(members, WireType::kBytes)) {
        symbols_[name + "." + TextOf(reader.bytes(), 1)] = file;
      }
    }
    return name;
  }

  void AddMessage(std::string_view file, const std::string& scope, std::string_view message) {
    constexpr std::uint32_t kField = 2, kNested = 3, kEnum = 4;
    const std::string name = AddNamed(file, scope, message, kField);
    for (ProtobufReader reader(message); reader.Next();) {
      if (reader.Is(kNested, WireType::kBytes)) AddMessage(file, name, reader.bytes());
      if (reader.Is(kEnum, WireType::kBytes)) AddNamed(file, name, reader.bytes(), 2);
    }
  }

  Files files_;
  Files symbols_;
  std::vector<std::string> services_;
};

const DescriptorIndex& Index() {
  static const DescriptorIndex kIndex;
  return kIndex;
}

// Numbers in ServerReflectionRequest,
constexpr std::uint32_t kHost = 1;
constexpr std::uint32_t kFileByName = 3;
constexpr std::uint32_t kFileWithSymbol = 4;
constexpr std::uint32_t kFileWithExtension = 5;
constexpr std::uint32_t kExtensionsOfType = 6;
constexpr std::uint32_t kListServices = 7;
// and in ServerReflectionResponse.
constexpr std::uint32_t kOriginalRequest = 2;
constexpr std::uint32_t kFileAnswer = 4;
constexpr std::uint32_t kExtensionsAnswer = 5;
constexpr std::uint32_t kServicesAnswer = 6;
constexpr std::uint32_t kErrorAnswer = 7;

void WriteError(ProtobufWriter& writer, GrpcCode code, std::string_view message) {
  const auto inner = writer.Begin(kErrorAnswer);
  writer.Number(1, static_cast<std::uint64_t>(code));
  writer.Bytes(2, message);
  writer.End(inner);
}

void WriteFile(ProtobufWriter& writer, const std::string_view* file, std::string_view name) {
  if (file == nullptr) {
    return WriteError(writer, GrpcCode::kNotFound, "there is nothing called " + std::string(name));
  }
  const auto inner = writer.Begin(kFileAnswer);
  writer.Bytes(1, *file);
  writer.End(inner);
}

void WriteServices(ProtobufWriter& writer) {
  const auto inner = writer.Begin(kServicesAnswer);
  for (const std::string& service : Index().services()) {
    const auto item = writer.Begin(1);
    writer.Bytes(1, service);
    writer.End(item);
  }
  writer.End(inner);
}

// Nobody extends anything here.
void WriteNoExtensions(ProtobufWriter& writer, std::string_view type) {
  if (Index().FileWith(type) == nullptr) {
    return WriteError(writer, GrpcCode::kNotFound, "there is nothing called " + std::string(type));
  }
  const auto inner = writer.Begin(kExtensionsAnswer);
  writer.Bytes(1, type);
  writer.End(inner);
}

}  // namespace

bool AnswerReflection(std::string_view request, ByteBuffer& out) {
  std::string_view host;
  std::uint32_t asked = 0;  // Of several the last counts.
  std::string_view about;
  ProtobufReader reader(request);
  while (reader.Next()) {
    const bool is_text = reader.type() == WireType::kBytes && reader.field() <= kListServices &&
                         reader.field() != kFileWithExtension && reader.field() != 2;
    if (is_text && !IsUtf8(reader.bytes())) return false;
    if (reader.Is(kHost, WireType::kBytes)) host = reader.bytes();
    const bool asks = reader.type() == WireType::kBytes && reader.field() >= kFileByName &&
                      reader.field() <= kListServices;
    if (!asks) continue;
    asked = reader.field();
    about = reader.bytes();
  }
  if (reader.is_broken()) return false;
  ProtobufWriter writer(out);
  writer.Bytes(1, host);
  writer.WantedBytes(kOriginalRequest, request);
  switch (asked) {
    case kFileByName:
      WriteFile(writer, Index().FileNamed(about), about);
      break;
    case kFileWithSymbol:
      WriteFile(writer, Index().FileWith(about), about);
      break;
    case kFileWithExtension:
      WriteError(writer, GrpcCode::kNotFound, "there are no extensions");
      break;
    case kExtensionsOfType:
      WriteNoExtensions(writer, about);
      break;
    case kListServices:
      WriteServices(writer);
      break;
    default:
      WriteError(writer, GrpcCode::kInvalidArgument, "this asks for nothing");
  }
  return true;
}

}  // namespace weir

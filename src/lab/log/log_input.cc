#include "lab/log/log_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <system_error>
#include <vector>

#include "limit/limit_words.h"

namespace weir::lab {
namespace {

constexpr std::size_t kPieceBytes = 131'072;

// As they are on the disk.
class RawBytes {
 public:
  RawBytes() = default;
  RawBytes(const RawBytes&) = delete;
  RawBytes& operator=(const RawBytes&) = delete;
  virtual ~RawBytes() = default;
  virtual std::size_t Read(std::span<char> room) = 0;

  std::string error{};
  std::uint64_t read = 0;
  std::uint64_t size = 0;
};

class FileBytes final : public RawBytes {
 public:
  FileBytes(int descriptor, std::uint64_t its_size) : descriptor_(descriptor) { size = its_size; }
  ~FileBytes() override { ::close(descriptor_); }

  std::size_t Read(std::span<char> room) override {
    std::size_t got = 0;
    while (got < room.size()) {
      const ssize_t more = ::read(descriptor_, room.data() + got, room.size() - got);
      if (more < 0 && errno == EINTR) continue;
      if (more < 0)
        error =
            std::string("it cannot be read any further: ") + std::generic_category().message(errno);
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    read += got;
    return got;
  }

 private:
  const int descriptor_;
};

class StreamBytes final : public RawBytes {
 public:
  explicit StreamBytes(std::istream& in) : in_(in) {}

  std::size_t Read(std::span<char> room) override {
    in_.read(room.data(), static_cast<std::streamsize>(room.size()));
    const auto got = static_cast<std::size_t>(in_.gcount());
    if (HasFailed(in_)) error = "it cannot be read any further";
    read += got;
    return got;
  }

 private:
  std::istream& in_;
};

// What was looked at to tell the format comes first.
class Input : public LogInput {
 public:
  Input(std::unique_ptr<RawBytes> raw, std::string head)
      : raw_(std::move(raw)), head_(std::move(head)) {}
  const std::string& cut_short() const final { return cut_short_; }
  std::uint64_t bytes_read() const final { return raw_->read; }
  std::uint64_t bytes() const final { return raw_->size; }

 protected:
  std::size_t ReadRaw(std::span<char> room) {
    const std::size_t from_head = std::min(room.size(), head_.size() - head_used_);
    std::memcpy(room.data(), head_.data() + head_used_, from_head);
    head_used_ += from_head;
    if (from_head == room.size()) return from_head;
    const std::size_t got = from_head + raw_->Read(room.subspan(from_head));
    if (!raw_->error.empty()) cut_short_ = raw_->error;
    return got;
  }
  void CutShort(std::string why) {
    if (cut_short_.empty()) cut_short_ = std::move(why);
  }

 private:
  std::unique_ptr<RawBytes> raw_;
  std::string head_;
  std::size_t head_used_ = 0;
  std::string cut_short_;
};

class PlainInput final : public Input {
 public:
  using Input::Input;
  std::size_t Read(std::span<char> room) override { return ReadRaw(room); }
};

class GzipInput final : public Input {
 public:
  GzipInput(std::unique_ptr<RawBytes> raw, std::string head)
      : Input(std::move(raw), std::move(head)), piece_(kPieceBytes) {
    // 15: any window; 16: gzip and nothing else.
    is_ready_ = ::inflateInit2(&zlib_, 15 + 16) == Z_OK;
  }
  ~GzipInput() override {
    if (is_ready_) ::inflateEnd(&zlib_);
  }

  std::size_t Read(std::span<char> room) override {
    if (!is_ready_) CutShort("there is no memory to decompress it");
    std::size_t got = 0;
    while (is_ready_ && !ended_ && got < room.size()) {
      if (zlib_.avail_in == 0 && !Refill()) break;
      if (between_members_ && !BeginMember()) break;
      zlib_.next_out = reinterpret_cast<Bytef*>(room.data() + got);
      zlib_.avail_out = static_cast<uInt>(room.size() - got);
      const int result = ::inflate(&zlib_, Z_NO_FLUSH);
      got = room.size() - zlib_.avail_out;
      if (result == Z_STREAM_END) {
        between_members_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        CutShort(std::string("the gzip data is damaged (") +
                 (zlib_.msg != nullptr ? zlib_.msg : "no reason given") + ")");
        ended_ = true;
      }
    }
    return got;
  }

 private:
  bool Refill() {
    zlib_.next_in = reinterpret_cast<Bytef*>(piece_.data());
    zlib_.avail_in = static_cast<uInt>(ReadRaw(piece_));
    if (zlib_.avail_in > 0) return true;
    ended_ = true;
    if (!between_members_) CutShort("the gzip data ends in the middle");
    return false;
  }

  // Several members may follow each other, and zeros the last.
  bool BeginMember() {
    if (!is_first_) {
      while (zlib_.avail_in > 0 && *zlib_.next_in == 0) {
        ++zlib_.next_in;
        --zlib_.avail_in;
      }
      if (zlib_.avail_in == 0) return true;  // Comes again with more, if there is more.
      if (*zlib_.next_in != 0x1f) {
        CutShort("there is something else behind the gzip data");
        ended_ = true;
        return false;
      }
      ::inflateReset(&zlib_);
    }
    is_first_ = false;
    between_members_ = false;
    return true;
  }

  std::vector<char> piece_;
  z_stream zlib_{};
  bool is_ready_ = false;
  bool ended_ = false;
  bool is_first_ = true;
  bool between_members_ = true;
};

class ZstdInput final : public Input {
 public:
  ZstdInput(std::unique_ptr<RawBytes> raw, std::string head)
      : Input(std::move(raw), std::move(head)),
        piece_(kPieceBytes),
        zstd_(::ZSTD_createDStream()) {}
  ~ZstdInput() override { ::ZSTD_freeDStream(zstd_); }

  std::size_t Read(std::span<char> room) override {
    if (zstd_ == nullptr) CutShort("there is no memory to decompress it");
    ZSTD_outBuffer out{.dst = room.data(), .size = room.size(), .pos = 0};
    while (zstd_ != nullptr && !ended_ && out.pos < out.size) {
      // What did not fit last time comes without more input.
      if (in_.pos == in_.size && !may_have_more_ && !Refill()) break;
      const std::size_t before = out.pos;
      const std::size_t result = ::ZSTD_decompressStream(zstd_, &out, &in_);
      if (::ZSTD_isError(result) != 0) {
        CutShort(std::string("the zstd data is damaged (") + ::ZSTD_getErrorName(result) + ")");
        ended_ = true;
      }
      in_frame_ = result != 0;
      may_have_more_ = out.pos == out.size && out.pos > before && in_frame_;
    }
    return out.pos;
  }

 private:
  bool Refill() {
    in_ = {.src = piece_.data(), .size = ReadRaw(piece_), .pos = 0};
    if (in_.size > 0) return true;
    ended_ = true;
    if (in_frame_) CutShort("the zstd data ends in the middle");
    return false;
  }

  std::vector<char> piece_;
  ZSTD_DStream* const zstd_;
  ZSTD_inBuffer in_{};
  bool in_frame_ = true;
  bool may_have_more_ = false;
  bool ended_ = false;
};

Result<std::unique_ptr<RawBytes>> OpenRaw(const std::string& file, std::istream& standard_input) {
  if (file == "-") return std::make_unique<StreamBytes>(standard_input);
  const auto wrong = [&](ErrorCode code, const std::string& why) {
    return std::unexpected(Error{code, file + ": " + why});
  };
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT) return wrong(ErrorCode::kNotFound, "there is no such file");
    if (errno == EACCES) return wrong(ErrorCode::kForbidden, "there is no permission to read it");
    return wrong(ErrorCode::kInternal,
                 std::string("it cannot be opened: ") + std::generic_category().message(errno));
  }
  struct stat about{};
  if (::fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode)) {
    ::close(descriptor);
    return wrong(ErrorCode::kInvalidArgument, "it is a folder; name the files in it");
  }
  const auto size = S_ISREG(about.st_mode) ? static_cast<std::uint64_t>(about.st_size) : 0;
  return std::make_unique<FileBytes>(descriptor, size);
}

}  // namespace

bool HasFailed(const std::istream& in) {
  return in.bad() || (&in == &std::cin && std::ferror(stdin) != 0);
}

Result<std::unique_ptr<LogInput>> LogInput::Open(const std::string& file,
                                                 std::istream& standard_input) {
  Result<std::unique_ptr<RawBytes>> raw = OpenRaw(file, standard_input);
  if (!raw) return std::unexpected(raw.error());
  std::array<char, 4> head{};
  const std::size_t size = (*raw)->Read(head);
  std::string begins(head.data(), size);
  if (size == 0 && !(*raw)->error.empty()) {
    const std::string name = file == "-" ? "standard input" : file;
    return std::unexpected(Error{ErrorCode::kInternal, name + ": " + (*raw)->error});
  }
  using std::string_view_literals::operator""sv;
  if (begins.starts_with("\x1f\x8b"sv)) {
    return std::make_unique<GzipInput>(*std::move(raw), std::move(begins));
  }
  const bool skippable =
      size == 4 && (begins[0] & '\xf0') == '\x50' && begins.ends_with("\x2a\x4d\x18"sv);
  if (begins == "\x28\xb5\x2f\xfd"sv || skippable) {
    return std::make_unique<ZstdInput>(*std::move(raw), std::move(begins));
  }
  return std::make_unique<PlainInput>(*std::move(raw), std::move(begins));
}

}  // namespace weir::lab

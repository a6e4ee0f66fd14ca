#include "net/h2/session.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <nghttp2/nghttp2.h>

namespace weir {
namespace {

// Requests come in small messages; a peer need not be told of room after each few.
constexpr std::int32_t kConnectionWindow = 1 << 20;

std::string_view View(const std::uint8_t* text, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(text), size};
}

struct NvList {
  static constexpr std::size_t kMost = 16;

  explicit NvList(std::span<const H2Field> fields) noexcept
      : count(std::min(fields.size(), kMost)) {
    // nghttp2 does not write to what it is given.
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    for (std::size_t i = 0; i < count; ++i) {
      const H2Field& field = fields[i];
      const auto flags = static_cast<std::uint8_t>(
          field.is_fixed ? NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE
                         : NGHTTP2_NV_FLAG_NONE);
      list[i] = {.name = bytes(field.name),
                 .value = bytes(field.value),
                 .namelen = field.name.size(),
                 .valuelen = field.value.size(),
                 .flags = flags};
    }
  }

  std::array<nghttp2_nv, kMost> list;
  std::size_t count;
};

}  // namespace

struct H2Session::Hooks {
  static H2Session& Of(void* user) noexcept { return *static_cast<H2Session*>(user); }
  static H2Stream* Find(nghttp2_session* session, std::int32_t id) noexcept {
    return static_cast<H2Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }

  // --- Memory, counted as it is. ---

  static void* Count(H2Session& of, void* memory) noexcept {
    if (memory != nullptr) of.bytes_ += malloc_usable_size(memory);
    return memory;
  }
  static void* Allocate(std::size_t size, void* user) noexcept {
    return Count(Of(user), std::malloc(size));
  }
  static void* AllocateZeroed(std::size_t count, std::size_t size, void* user) noexcept {
    return Count(Of(user), std::calloc(count, size));
  }
  static void* Reallocate(void* memory, std::size_t size, void* user) noexcept {
    const std::size_t before = memory == nullptr ? 0 : malloc_usable_size(memory);
    void* const moved = std::realloc(memory, size);
    if (moved != nullptr) Of(user).bytes_ += malloc_usable_size(moved) - before;
    return moved;
  }
  static void Release(void* memory, void* user) noexcept {
    if (memory == nullptr) return;
    Of(user).bytes_ -= malloc_usable_size(memory);
    std::free(memory);
  }

  // --- What comes in. ---

  static bool IsRequest(const nghttp2_frame* frame) noexcept {
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
  }

  static int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (!IsRequest(frame)) return 0;
    H2Stream* const stream = Of(user).handler_.OnRequest(frame->hd.stream_id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame,
                      const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                      std::size_t value_size, std::uint8_t /*flags*/, void* user) {
    H2Stream* const stream = Find(session, frame->hd.stream_id);
    if (stream == nullptr || !IsRequest(frame)) return 0;  // Trailers tell nothing.
    const bool goes_on =
        Of(user).handler_.OnHeader(*stream, View(name, name_size), View(value, value_size));
    return goes_on ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    H2Stream* const stream = Find(session, frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (IsRequest(frame)) Of(user).handler_.OnHead(*stream);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    stream->has_ended = true;
    Of(user).handler_.OnEnd(*stream);
    return 0;
  }

  static int OnData(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id,
                    const std::uint8_t* data, std::size_t size, void* user) {
    H2Stream* const stream = Find(session, id);
    if (stream != nullptr) Of(user).handler_.OnData(*stream, View(data, size));
    return 0;
  }

  static int OnClosed(nghttp2_session* session, std::int32_t id, std::uint32_t /*code*/,
                      void* user) {
    H2Stream* const stream = Find(session, id);
    if (stream == nullptr) return 0;
    nghttp2_session_set_stream_user_data(session, id, nullptr);
    Of(user).handler_.OnClosed(*stream);
    return 0;
  }

  // Who was answered to the end has paid, and need not send the rest. Only now: what was reset
  // meanwhile was no answer, and a reset would keep one from going out.
  static void OnAnswered(nghttp2_session* session, const nghttp2_frame_hd& sent,
                         H2Session& of) noexcept {
    if ((sent.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
    const H2Stream* const stream = Find(session, sent.stream_id);
    if (stream == nullptr) return;
    if (stream->pays) of.watch_.CreditRequest();
    if (stream->has_ended) return;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, sent.stream_id, NGHTTP2_NO_ERROR);
  }

  // Those who open more than they were told ask for the end of the connection; those who were not
  // told yet are refused.
  static int OnInvalid(nghttp2_session* /*session*/, const nghttp2_frame* frame, int error,
                       void* user) {
    H2Handler& handler = Of(user).handler_;
    const bool is_one_more = error == NGHTTP2_ERR_PROTO && IsRequest(frame) && handler.IsFull();
    if (error == NGHTTP2_ERR_REFUSED_STREAM || is_one_more) handler.OnRefused();
    return 0;
  }

  // Nobody may wait for what cannot be sent; whoever has reset it does not.
  static int OnNotSent(nghttp2_session* session, const nghttp2_frame* frame, int /*error*/,
                       void* /*user*/) {
    if (frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (Find(session, frame->hd.stream_id) == nullptr) return 0;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                              NGHTTP2_INTERNAL_ERROR);
    return 0;
  }

  static int OnSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
      OnAnswered(session, frame->hd, Of(user));
      return 0;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      Of(user).is_broken_ |= frame->goaway.error_code != NGHTTP2_NO_ERROR;
      return 0;
    }
    if (frame->hd.type != NGHTTP2_RST_STREAM) return 0;
    if (frame->rst_stream.error_code == NGHTTP2_NO_ERROR) return 0;
    // Those that a peer provokes cost as much as those it sends.
    H2Session& of = Of(user);
    const auto abuse = of.watch_.Charge(H2Abuse::kResets, 1, of.now_);
    if (abuse && !of.abuse_) of.abuse_ = abuse;
    return 0;
  }

  // --- What goes out. ---

  static ssize_t OnRead(nghttp2_session* session, std::int32_t id, std::uint8_t* room,
                        std::size_t size, std::uint32_t* flags, nghttp2_data_source* source,
                        void* /*user*/) {
    auto& stream = *static_cast<H2Stream*>(source->ptr);
    const std::size_t taken = std::min(size, stream.out.size());
    if (taken > 0) {
      std::memcpy(room, stream.out.view().data(), taken);
      stream.out.Consume(taken);
    }
    if (!stream.out.empty()) return static_cast<ssize_t>(taken);
    if (!stream.is_finished) {
      if (taken > 0) return static_cast<ssize_t>(taken);
      stream.is_deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!stream.trailers.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const NvList fields(stream.trailers);
      nghttp2_submit_trailer(session, id, fields.list.data(), fields.count);
    }
    return static_cast<ssize_t>(taken);
  }

  // Made once: they are the same for all.
  static const nghttp2_session_callbacks* Callbacks() noexcept {
    static const nghttp2_session_callbacks* const kCallbacks = [] {
      nghttp2_session_callbacks* made = nullptr;
      nghttp2_session_callbacks_new(&made);
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, &OnBeginHeaders);
      nghttp2_session_callbacks_set_on_header_callback(made, &OnHeader);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, &OnFrame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, &OnData);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, &OnClosed);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, &OnInvalid);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, &OnSent);
      nghttp2_session_callbacks_set_on_frame_not_send_callback(made, &OnNotSent);
      return made;
    }();
    return kCallbacks;
  }
  static const nghttp2_option* Choices() noexcept {
    static const nghttp2_option* const kChoices = [] {
      nghttp2_option* made = nullptr;
      nghttp2_option_new(&made);
      nghttp2_option_set_no_closed_streams(made, 1);
      // The watch has a better idea of how many are too many.
      constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 40;
      nghttp2_option_set_stream_reset_rate_limit(made, kUnlimited, kUnlimited);
      return made;
    }();
    return kChoices;
  }
};

void H2Session::Free::operator()(nghttp2_session* session) const noexcept {
  nghttp2_session_del(session);
}

H2Session::H2Session(H2Handler& handler, const Options& options, SteadyTime now)
    : handler_(handler),
      options_(options),
      watch_({.header_block = options.header_bytes}, now),
      now_(now) {
  nghttp2_mem memory{.mem_user_data = this,
                     .malloc = &Hooks::Allocate,
                     .free = &Hooks::Release,
                     .calloc = &Hooks::AllocateZeroed,
                     .realloc = &Hooks::Reallocate};
  nghttp2_session* made = nullptr;
  nghttp2_session_server_new3(&made, Hooks::Callbacks(), this, Hooks::Choices(), &memory);
  session_.reset(made);
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<std::uint32_t>(options.streams)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(options.header_bytes)},
  }};
  nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

// Streams are not told of their end by nghttp2 when its session is deleted.
H2Session::~H2Session() = default;

bool H2Session::Feed(std::string_view bytes, SteadyTime now) noexcept {
  now_ = now;
  if (const auto abuse = watch_.See(bytes, now)) abuse_ = abuse;
  if (!abuse_) {
    const ssize_t used = nghttp2_session_mem_recv(
        session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    is_other_protocol_ = used == NGHTTP2_ERR_BAD_CLIENT_MAGIC;
    if (used == NGHTTP2_ERR_FLOODED) abuse_ = H2Abuse::kPings;
    is_broken_ |= used < 0;
    if (used < 0 && !abuse_) return false;
  }
  if (!abuse_) return !is_over();
  EndWithError();
  return false;
}

void H2Session::TakeOutput(ByteBuffer& out) noexcept {
  if (is_other_protocol_) return;
  while (true) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
    if (size <= 0) return;
    out.Append(View(bytes, static_cast<std::size_t>(size)));
  }
}

void H2Session::Answer(H2Stream& stream, std::span<const H2Field> fields) noexcept {
  stream.is_answered = true;
  const NvList list(fields);
  nghttp2_data_provider body{.source = {.ptr = &stream}, .read_callback = &Hooks::OnRead};
  nghttp2_submit_response(session_.get(), stream.id, list.list.data(), list.count, &body);
}

void H2Session::Resume(H2Stream& stream) noexcept {
  if (!std::exchange(stream.is_deferred, false)) return;
  nghttp2_session_resume_data(session_.get(), stream.id);
}

void H2Session::AnswerWithoutBody(H2Stream& stream, std::span<const H2Field> fields) noexcept {
  stream.is_answered = true;
  stream.is_finished = true;
  const NvList list(fields);
  nghttp2_submit_response(session_.get(), stream.id, list.list.data(), list.count, nullptr);
}

void H2Session::Cancel(H2Stream& stream) noexcept {
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_CANCEL);
}

void H2Session::AnnounceEnd() noexcept { nghttp2_submit_shutdown_notice(session_.get()); }

void H2Session::RefuseNewRequests() noexcept {
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_.get()), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

void H2Session::EndWithError() noexcept {
  nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
}

H2Stream* H2Session::Find(std::int32_t id) noexcept { return Hooks::Find(session_.get(), id); }

bool H2Session::has_output() const noexcept {
  return nghttp2_session_want_write(session_.get()) != 0;
}

bool H2Session::is_over() const noexcept {
  return nghttp2_session_want_read(session_.get()) == 0 &&
         nghttp2_session_want_write(session_.get()) == 0;
}

}  // namespace weir

// The other end of an HTTP/2 connection, by nghttp2: what tests send, and what they are told.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

namespace weir {

class H2ClientUnderTest {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  struct Response {
    std::map<std::string, std::string> headers{};
    std::map<std::string, std::string> trailers{};
    std::string body{};
    bool closed = false;
    std::uint32_t error = 0;  // With which it was closed.
  };

  H2ClientUnderTest() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &OnClose);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &OnFrame);
    nghttp2_session* made = nullptr;
    nghttp2_session_client_new(&made, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    session_.reset(made);
    nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, nullptr, 0);
  }

  // A request whose body is sent whole; with `open` it is not ended.
  std::int32_t Request(const Fields& fields, std::string body, bool open = false) {
    std::vector<nghttp2_nv> list;
    for (const auto& [name, value] : fields) {
      list.push_back({.name = Bytes(name),
                      .value = Bytes(value),
                      .namelen = name.size(),
                      .valuelen = value.size(),
                      .flags = NGHTTP2_NV_FLAG_NONE});
    }
    auto& sending =
        *bodies_.emplace_back(std::make_unique<Body>(Body{.text = std::move(body), .open = open}));
    nghttp2_data_provider provider{.source = {.ptr = &sending}, .read_callback = &OnRead};
    const std::int32_t id = nghttp2_submit_request(session_.get(), nullptr, list.data(),
                                                   list.size(), &provider, nullptr);
    by_stream_[id] = &sending;
    return id;
  }
  // More of a request that was left open.
  void Add(std::int32_t id, std::string_view body, bool end) {
    Body& sending = *by_stream_.at(id);
    sending.text += body;
    sending.open = !end;
    nghttp2_session_resume_data(session_.get(), id);
  }
  void Reset(std::int32_t id) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  }
  void SetWindow(std::uint32_t bytes) {
    const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bytes};
    nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, &entry, 1);
  }

  // What is to be sent.
  std::string Take() {
    std::string bytes;
    const std::uint8_t* chunk = nullptr;
    ssize_t size = 0;
    while ((size = nghttp2_session_mem_send(session_.get(), &chunk)) > 0) {
      bytes.append(reinterpret_cast<const char*>(chunk), static_cast<std::size_t>(size));
    }
    return bytes;
  }
  // False if that is no HTTP/2.
  bool Receive(std::string_view bytes) {
    return nghttp2_session_mem_recv(session_.get(),
                                    reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                    bytes.size()) == static_cast<ssize_t>(bytes.size());
  }

  const Response& of(std::int32_t id) { return responses_[id]; }
  std::optional<std::uint32_t> going_away{};  // With which error.
  std::int32_t last_stream = 0;               // That the server took up, as it says.

 private:
  struct Body {
    std::string text{};
    bool open = false;
  };
  struct Free {
    void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
  };

  static std::uint8_t* Bytes(const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  }
  static H2ClientUnderTest& Of(void* user) { return *static_cast<H2ClientUnderTest*>(user); }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* user) {
    Response& response = Of(user).responses_[frame->hd.stream_id];
    const std::string field(reinterpret_cast<const char*>(name), name_size);
    const bool is_first = frame->headers.cat == NGHTTP2_HCAT_RESPONSE || response.headers.empty();
    (is_first ? response.headers : response.trailers)[field] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }
  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t size, void* user) {
    Of(user).responses_[id].body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int OnClose(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
    Response& response = Of(user).responses_[id];
    response.closed = true;
    response.error = error;
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    Of(user).going_away = frame->goaway.error_code;
    Of(user).last_stream = frame->goaway.last_stream_id;
    return 0;
  }
  static ssize_t OnRead(nghttp2_session*, std::int32_t, std::uint8_t* room, std::size_t size,
                        std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& body = *static_cast<Body*>(source->ptr);
    const std::size_t taken = std::min(size, body.text.size());
    std::copy_n(body.text.data(), taken, reinterpret_cast<char*>(room));
    body.text.erase(0, taken);
    if (!body.text.empty()) return static_cast<ssize_t>(taken);
    if (!body.open) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (taken == 0) {
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(taken);
  }

  std::vector<std::unique_ptr<Body>> bodies_;
  std::map<std::int32_t, Body*> by_stream_;
  std::map<std::int32_t, Response> responses_;
  std::unique_ptr<nghttp2_session, Free> session_;
};

}  // namespace weir

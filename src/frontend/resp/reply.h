// The reply to one command: written once, and counted by how it turned out.
#pragma once

#include <string>
#include <string_view>

#include <weir/result.h>

#include "frontend/error_table.h"
#include "frontend/metrics.h"
#include "net/resp/writer.h"

namespace weir::resp {

class Reply {
 public:
  Reply(ByteBuffer& out, Version version, ListenerMetrics& metrics) noexcept
      : writer(out, version), out_(out), metrics_(metrics) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply() {
    if (!failed_) metrics_.requests[kReplyRespOk].Add();
  }

  void Ok() { out_.Append("+OK\r\n"); }

  // "-CODE text".
  void Fail(std::string_view code, std::string_view text) {
    failed_ = true;
    metrics_.requests[ReplyCodeNumber(code)].Add();
    writer.Error(std::string(code).append(" ").append(text));
  }
  void Fail(const Error& error) { Fail(RowOf(error.code).resp, error.message); }

  ReplyWriter writer;

  ByteBuffer& out() noexcept { return out_; }
  ListenerMetrics& metrics() noexcept { return metrics_; }

 private:
  ByteBuffer& out_;
  ListenerMetrics& metrics_;
  bool failed_ = false;
};

}  // namespace weir::resp

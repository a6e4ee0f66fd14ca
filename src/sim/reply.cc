#include "sim/reply.h"

#include "net/resp/writer.h"

namespace weir::sim {

void Write(const Reply& reply, ByteBuffer& out) {
  resp::ReplyWriter writer(out, resp::Version::kResp2);
  switch (reply.kind) {
    case Reply::Kind::kNil:
      return writer.Null();
    case Reply::Kind::kNilArray:
      return out.Append("*-1\r\n");
    case Reply::Kind::kInteger:
      return writer.Integer(reply.integer);
    case Reply::Kind::kBulk:
      return writer.Bulk(reply.text);
    case Reply::Kind::kStatus:
      return writer.Simple(reply.text);
    case Reply::Kind::kError:
      return writer.Error(reply.text);
    case Reply::Kind::kArray:
      writer.Array(reply.items.size());
      for (const Reply& item : reply.items) Write(item, out);
      return;
  }
}

std::string ToText(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kNil:
    case Reply::Kind::kNilArray:
      return "(nil)";
    case Reply::Kind::kInteger:
      return "(integer) " + std::to_string(reply.integer);
    case Reply::Kind::kBulk:
      return "\"" + reply.text + "\"";
    case Reply::Kind::kStatus:
      return reply.text;
    case Reply::Kind::kError:
      return "(error) " + reply.text;
    case Reply::Kind::kArray:
      break;
  }
  std::string text = "[";
  for (const Reply& item : reply.items) {
    if (text.size() > 1) text += ", ";
    text += ToText(item);
  }
  return text + "]";
}

}  // namespace weir::sim

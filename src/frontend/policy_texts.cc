#include "frontend/policy_texts.h"

#include "frontend/rate_limit_headers.h"

namespace weir {

void PolicyTexts::Write(Kept& kept, const Item& item) noexcept {
  RoomyText text(kept.text.data());
  text.Put('"');
  text.Put(item.name);
  text.Put("\";q=");
  PutFieldInteger(text, item.quota);
  if (item.window > Duration(0)) {
    text.Put(";w=");
    PutFieldInteger(text, RoundUpTo<std::chrono::seconds>(item.window));
  }
  kept.quota = item.quota;
  kept.window = item.window;
  kept.name_size = item.name.size();
  kept.size = static_cast<std::size_t>(text.end() - kept.text.data());
}

}  // namespace weir

#include "engine/owned_request.h"

#include <array>
#include <cstring>
#include <new>
#include <string_view>

namespace weir {
namespace {

constexpr std::array kTexts = {&Request::ip,   &Request::user, &Request::api_key,
                               &Request::org,  &Request::tier, &Request::method,
                               &Request::path, &Request::host, &Request::domain};
constexpr std::array kLists = {&Request::headers, &Request::cookies, &Request::query,
                               &Request::descriptors};

std::size_t ListBytes(const Request& request) noexcept {
  std::size_t bytes = request.rules.size() * sizeof(std::string_view);
  for (const auto list : kLists) bytes += (request.*list).size() * sizeof(NamedValue);
  return bytes;
}

std::size_t TextBytes(const Request& request) noexcept {
  std::size_t bytes = 0;
  for (const auto text : kTexts) bytes += (request.*text).size();
  for (const auto list : kLists) {
    for (const NamedValue& pair : request.*list) bytes += pair.name.size() + pair.value.size();
  }
  for (const std::string_view rule : request.rules) bytes += rule.size();
  return bytes;
}

// Lists from the front of the block, where they are aligned; texts behind them.
class BlockWriter {
 public:
  BlockWriter(std::byte* lists, std::byte* texts) noexcept
      : lists_(lists), texts_(reinterpret_cast<char*>(texts)) {}

  std::string_view Text(std::string_view text) noexcept {
    if (text.empty()) return {};
    char* const start = texts_;
    std::memcpy(start, text.data(), text.size());
    texts_ += text.size();
    return {start, text.size()};
  }

  // `keep` makes an item whose texts are in the block.
  template <typename Item, typename Keep>
  std::span<const Item> List(std::span<const Item> items, Keep&& keep) noexcept {
    Item* const start = reinterpret_cast<Item*>(lists_);
    for (const Item& item : items) {
      new (lists_) Item(keep(item));
      lists_ += sizeof(Item);
    }
    return {start, items.size()};
  }

 private:
  std::byte* lists_;
  char* texts_;
};

}  // namespace

OwnedRequest::OwnedRequest(const Request& request)
    : bytes_(ListBytes(request) + TextBytes(request)),
      block_(std::make_unique_for_overwrite<std::byte[]>(bytes_)),
      view_(request) {
  static_assert(alignof(NamedValue) == alignof(std::string_view));
  BlockWriter writer(block_.get(), block_.get() + ListBytes(request));
  for (const auto text : kTexts) view_.*text = writer.Text(request.*text);
  for (const auto list : kLists) {
    view_.*list = writer.List(request.*list, [&](const NamedValue& pair) {
      return NamedValue{.name = writer.Text(pair.name), .value = writer.Text(pair.value)};
    });
  }
  view_.rules =
      writer.List(request.rules, [&](std::string_view rule) { return writer.Text(rule); });
}

}  // namespace weir

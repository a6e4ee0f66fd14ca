#include "store/redis/fixed_servers.h"

#include "base/mix.h"
#include "store/redis/slots.h"

namespace weir::redis {
namespace {

// FNV-1a, mixed: the same in every process and version, because they must agree.
std::uint64_t HashOf(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return Mix(hash);
}

}  // namespace

std::vector<std::uint16_t> DivideSlots(std::span<const std::string> names) {
  std::vector<std::uint16_t> owners(kSlots, 0);
  if (names.size() < 2) return owners;
  std::vector<std::uint64_t> hashes;
  for (const std::string& name : names) hashes.push_back(HashOf(name));
  for (std::uint16_t slot = 0; slot < kSlots; ++slot) {
    std::uint64_t best = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::uint64_t score = Mix(hashes[i] ^ Mix(slot));
      if (score < best) continue;
      best = score;
      owners[slot] = static_cast<std::uint16_t>(i);
    }
  }
  return owners;
}

FixedServers::FixedServers(NodeMaker maker) : maker_(std::move(maker)) {
  std::vector<std::string> names;
  for (const Site& site : maker_.settings.sites) {
    names.push_back(site.endpoint.ToString());
    Node::Options options = maker_.Options();
    options.make_probe = [this] { return maker_.make_probe(std::nullopt); };
    nodes_.push_back(maker_.Make(site, std::move(options), *this));
  }
  owners_ = DivideSlots(names);
}

}  // namespace weir::redis

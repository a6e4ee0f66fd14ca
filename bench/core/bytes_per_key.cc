#include "bytes_per_key.h"

#include <array>
#include <cstdio>
#include <memory>

#include "harness/keys.h"
#include "harness/resident_memory.h"
#include "stores.h"

namespace weir::bench {
namespace {

void RequireNoneForgotten(Limiter& limiter) {
  Require(limiter.Stats().evicted_live == 0, "Weir has not forgotten a key");
}
template <typename By>
void RequireNoneForgotten(BoostStore<By>&) {}

template <typename MakeStore>
void Measure(const BytesPerKeyOptions& options, MakeStore&& make) {
  std::array<char, kKeyBytes> text;
  const std::string_view key(text.data(), text.size());
  const std::uint64_t before = ResidentBytes();
  const auto store = make(ParseLimit(kTightLimit));
  const char* separator = "[";
  std::uint64_t id = 0;
  for (std::uint64_t keys = options.first; keys <= options.last; keys += options.step) {
    for (; id < keys; ++id) {
      WriteKey(id, text.data());
      Require(store->Check(key).allowed, "the key is new");
    }
    const std::uint64_t taken = ResidentBytes() - before;
    Require(EntriesOf(*store) == keys, "the store holds as many keys as went in");
    RequireNoneForgotten(*store);
    for (std::uint64_t known = 0; known < keys; known += keys / 1000) {
      WriteKey(known, text.data());
      Require(PeekAt(*store, key).remaining == 0, "the key is alive");
    }
    std::printf("%s[%ju, %.3f]", separator, static_cast<std::uintmax_t>(keys),
                static_cast<double>(taken) / static_cast<double>(keys));
    separator = ", ";
  }
  std::printf("]\n");
}

}  // namespace

void PrintBytesPerKey(const BytesPerKeyOptions& options) {
  if (options.store == "weir") {
    Measure(options, [](const Limit& limit) {
      return std::make_unique<Limiter>(MakeWeir(limit, /*expected_keys=*/0));
    });
  } else if (options.store == "boost_fingerprint") {
    Measure(options, [](const Limit& limit) {
      return std::make_unique<BoostStore<ByFingerprint>>(limit, 0);
    });
  } else {
    Require(options.store == "boost_string", "the store is one that there is");
    Measure(options,
            [](const Limit& limit) { return std::make_unique<BoostStore<ByString>>(limit, 0); });
  }
}

}  // namespace weir::bench

// governor's keyed limiter (Rust), loaded from the shared library that ./bench.sh builds of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "harness/keys.h"

namespace weir::bench {

// What a key is to governor.
enum class GovernorKey : std::uint8_t {
  kString,  // The text, as its users have it.
  kNumber,  // A number, so that no text is hashed or compared.
};

// Ends the process if the library does not load. Must outlive what it makes.
class GovernorLibrary {
 public:
  explicit GovernorLibrary(const std::string& path);

  class Queries;
  class Limiter;

 private:
  template <typename Function>
  void Load(Function*& function, const char* name);

  void* handle_;
  void* (*make_)(std::uint32_t burst, bool reads_clock, bool texts);
  void (*free_)(void* limiter);
  void* (*queries_)(const char* texts, std::size_t bytes, std::size_t stride, std::size_t count);
  void (*free_queries_)(void* queries);
  std::size_t (*check_)(const void* limiter, const void* queries, std::size_t from,
                        std::size_t count);
  std::size_t (*len_)(const void* limiter);
};

// A key sequence as Rust strings and numbers.
class GovernorLibrary::Queries {
 public:
  Queries(const GovernorLibrary& library, const KeySequence& sequence);

 private:
  friend class GovernorLibrary::Limiter;
  std::unique_ptr<void, void (*)(void*)> queries_;
};

// Thread-safe.
class GovernorLibrary::Limiter {
 public:
  Limiter(const GovernorLibrary& library, std::uint32_t burst, bool reads_clock, GovernorKey key);

  // How many of `count` requests from number `from` on are allowed.
  std::size_t Check(const Queries& queries, std::size_t from, std::size_t count) const {
    return library_.check_(limiter_.get(), queries.queries_.get(), from, count);
  }
  std::size_t entries() const { return library_.len_(limiter_.get()); }

 private:
  const GovernorLibrary& library_;
  std::unique_ptr<void, void (*)(void*)> limiter_;
};

}  // namespace weir::bench

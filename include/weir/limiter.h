// A limiter in this process: one limit, or several layers, over any number of keys.
//
//   auto limiter = weir::Limiter::Make("100/min burst 50");
//   if (!limiter) { std::cerr << limiter.error().message; return; }
//   weir::Decision decision = limiter->Check("user:42");
//   if (!decision.allowed) Reply429(decision.retry_after);
//
// Keys are any bytes, empty and megabyte-long ones included; they are hashed, not kept. All
// methods may be called from any thread. Checks take no lock on a known bucket key and allocate
// nothing; only a lease or a reservation may, until there have been as many at once before.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/clock.h>
#include <weir/decision.h>
#include <weir/limit.h>
#include <weir/result.h>
#include <weir/time.h>

namespace weir {

// One of several limits that a request must pass together.
struct Layer {
  std::string name;  // Shows up as Decision::rule. No two layers of a limiter may share one.
  Limit limit;
  bool shadow = false;  // Counts and decides, but never stops a request.
};

struct LimiterOptions {
  Clock* clock = nullptr;  // The machine's clock if null. Must outlive the limiter.

  // The most bytes that the state of all keys may take. At the cap, keys that are not being denied
  // are forgotten first.
  std::size_t memory_cap = std::size_t{256} << 20;

  // Makes room for so many keys at once. Not needed: the table grows by itself.
  std::size_t expected_keys = 0;

  // How many reservations and leases, and how many waiters, there may be at a time. Beyond that a
  // request is denied with the reason `overload`.
  std::size_t max_reservations = 65'536;
  std::size_t max_waiters = 10'000;

  // Hashes keys with SipHash rather than XXH3: for keys that an attacker chooses and whose
  // timing they can measure.
  bool hostile_keys = false;
};

// The key of one layer; kSkip leaves that layer out of a request.
class Key {
 public:
  constexpr Key(std::string_view bytes) noexcept : bytes_(bytes) {}  // NOLINT: meant to convert
  constexpr Key(const char* text) noexcept : bytes_(text) {}         // NOLINT
  Key(const std::string& text) noexcept : bytes_(text) {}            // NOLINT
  constexpr Key(std::nullopt_t) noexcept {}                          // NOLINT

  constexpr const std::optional<std::string_view>& bytes() const noexcept { return bytes_; }

 private:
  std::optional<std::string_view> bytes_;
};
inline constexpr std::nullopt_t kSkip = std::nullopt;

// The keys of a request: one for each layer, in their order, or one for all of them. Made in
// passing, as an argument; refers to what it was made from.
//
//   limiter.Peek("user:42");
//   layers.Peek({client_address, logged_in ? Key(user) : kSkip});
class Keys {
 public:
  Keys(std::string_view key) noexcept : same_(key) {}    // NOLINT: meant to convert
  Keys(const char* key) noexcept : same_(key) {}         // NOLINT
  Keys(const std::string& key) noexcept : same_(key) {}  // NOLINT
  Keys(std::initializer_list<Key> keys) noexcept : each_(keys.begin(), keys.size()) {}
  Keys(std::span<const Key> keys) noexcept : each_(keys) {}  // NOLINT

  const std::optional<std::string_view>& same() const noexcept { return same_; }
  std::span<const Key> each() const noexcept { return each_; }

 private:
  std::optional<std::string_view> same_;
  std::span<const Key> each_;
};

// The details of a request; the defaults are those of an ordinary one.
struct Ask {
  std::int64_t cost = 1;     // 0 to kMaxCount. 0 asks whether 1 would pass, and takes nothing.
  std::optional<Now> now{};  // When it is; the limiter's clock is read if not set.
};

struct BatchItem {
  std::string_view key;
  std::int64_t cost = 1;
};

struct LimiterStats {
  std::size_t bytes = 0;             // Of memory_cap.
  std::size_t entries = 0;           // Keys held, those whose time has passed included.
  std::uint64_t evicted_live = 0;    // Keys forgotten before their time for want of room,
  std::uint64_t evicted_denied = 0;  // and others that even were being denied then.
  std::uint64_t growths = 0;         // How often the table has grown.
  std::size_t reservations = 0;      // Open, leases included.
  std::size_t waiters = 0;
  std::uint64_t shadow_denied = 0;  // What shadow layers would have denied.
};

class Limiter;

// What Reserve took, to be settled once the real cost is known. Dropping the handle leaves the
// charge as it is; so does not settling it within its time to live.
class [[nodiscard]] Reservation {
 public:
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;

  const Decision& decision() const noexcept { return decision_; }
  bool allowed() const noexcept { return decision_.allowed; }

  // Each reservation can be settled once; the second time is a kNotFound.
  // The real cost: less gives back, more goes into debt. In a concurrency layer the place is free
  // again, whatever the cost.
  Result<Decision> Commit(std::int64_t cost);
  Result<Decision> Cancel();

 private:
  friend class Limiter;
  Reservation(Limiter& limiter, const Decision& decision) noexcept
      : limiter_(&limiter), decision_(decision) {}

  Limiter* limiter_;
  Decision decision_;
};

// A place under a concurrency limit, given back when it goes out of scope. Should its holder die
// without that, it ends by itself after the limit's lease.
class [[nodiscard]] Lease {
 public:
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  const Decision& decision() const noexcept { return decision_; }
  bool allowed() const noexcept { return decision_.allowed; }
  void Release() noexcept;

 private:
  friend class Limiter;
  Lease(Limiter& limiter, const Decision& decision) noexcept
      : limiter_(&limiter), decision_(decision) {}

  Limiter* limiter_;
  Decision decision_;
};

// Names a wait begun by WaitThen.
enum class WaitId : std::uint64_t {};

// What became of the keys when a limit was changed.
enum class LimitChange : std::uint8_t {
  kNone,        // The limit was the same already.
  kGoesOn,      // They keep what they have used.
  kStartsAnew,  // They are fresh: what was counted means nothing under the new limit.
};

// Moving a limiter while others use it, or while reservations, leases or waits are open, is not
// allowed.
class Limiter {
 public:
  [[nodiscard]] static Result<Limiter> Make(std::string_view limit,
                                            const LimiterOptions& options = {});
  [[nodiscard]] static Result<Limiter> Make(const Limit& limit, const LimiterOptions& options = {});
  [[nodiscard]] static Result<Limiter> Make(std::vector<Layer> layers,
                                            const LimiterOptions& options = {});

  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;
  ~Limiter();

  // --- Check: take what the request costs if every layer has room for it, else nothing. ---

  // The same key in every layer, at a cost of 1. Cannot fail.
  Decision Check(std::string_view key) noexcept;
  // The same without reading the clock, for those who read it once for many requests. Takes a Now
  // and nothing else, so that Check(key, {}) is an Ask rather than the beginning of time.
  template <std::same_as<Now> Instant>
  Decision Check(std::string_view key, Instant now) noexcept {
    return CheckAt(key, now);
  }
  Result<Decision> Check(Keys keys, const Ask& ask);
  // Several keys. With a time, too: two texts in braces would else be taken for the beginning and
  // the end of one.
  Result<Decision> Check(std::initializer_list<Key> keys);
  template <std::same_as<Now> Instant>
  Result<Decision> Check(std::initializer_list<Key> keys, Instant now) {
    return Check(Keys(keys), Ask{.now = now});
  }
  // Many requests, each by itself; faster than one after the other, because the memory they need
  // is fetched in parallel. `decisions` holds at least as many as `items`.
  [[nodiscard]] Result<void> CheckBatch(std::span<const BatchItem> items,
                                        std::span<Decision> decisions);
  [[nodiscard]] Result<void> CheckBatch(std::span<const BatchItem> items,
                                        std::span<Decision> decisions, Now now);

  // --- The other verbs. ---

  // What Check would say; takes nothing.
  [[nodiscard]] Result<Decision> Peek(Keys keys, const Ask& ask = {});
  // Gives `cost` back, what is oldest first, never beyond fresh. To give back exactly what a
  // certain request took, Reserve it and Cancel.
  Result<Decision> Refund(Keys keys, const Ask& ask = {});
  // Takes `cost` whether it fits or not, up to twice the capacity.
  Result<Decision> Penalize(Keys keys, const Ask& ask = {});
  // Makes the key fresh.
  Result<Decision> Reset(Keys keys, const Ask& ask = {});

  // Takes an estimate now, to be settled when the real cost is known.
  [[nodiscard]] Result<Reservation> Reserve(Keys keys, const Ask& ask = {},
                                            Duration ttl = std::chrono::seconds(60));
  Result<Decision> Commit(ReservationId reservation, std::int64_t cost);
  Result<Decision> Cancel(ReservationId reservation);

  // Takes a place under a concurrency limit. Release gives it back by its id, for those who
  // cannot keep a Lease.
  [[nodiscard]] Result<Lease> Acquire(Keys keys, const Ask& ask = {});
  // The same, waiting for one as Wait does.
  [[nodiscard]] Result<Lease> AcquireWithin(Keys keys, Duration patience, const Ask& ask = {});
  Result<Decision> Release(ReservationId lease) { return Cancel(lease); }

  // --- Waiting. First come, first served, for each key; with layers, among those who ask with the
  // same keys. ---

  // Blocks until the request passes or `patience` is over; patience is at most the limit's
  // max_wait. A bucket books ahead, so that a refusal comes at once; so does a queue, and its delay
  // is waited for. Not from inside a callback of WaitThen: kInvalidArgument, because the thread
  // that runs it is the one that would end the wait.
  [[nodiscard]] Result<Decision> Wait(Keys keys, Duration patience, const Ask& ask = {});

  // The same without blocking: `done` is called once, from a thread of the limiter's or, if there
  // is nothing to wait for, from this one before WaitThen returns. It must neither block nor throw,
  // for all others wait behind it. It may use the limiter, but not end it.
  using WaitDone = std::function<void(const Decision&)>;
  [[nodiscard]] Result<WaitId> WaitThen(Keys keys, Duration patience, WaitDone done,
                                        const Ask& ask = {});
  // Stops waiting; `done` is not called any more. What was booked ahead goes back if nobody has
  // booked behind it. False if the wait is over already: `done` was called, or is running now.
  bool CancelWait(WaitId id);

  // --- Live change. ---

  // Replaces the limit of a layer while traffic flows; keys keep what they have used if the two
  // count alike (see Limit::Replacing), and the answer says whether they do. What was booked ahead
  // beyond the new burst may be forgotten, and requests that were under way may be counted under
  // the old limit. The name of a limiter's only layer is "" unless it was given one.
  // Each change keeps a copy of all layers, some 400 bytes for each, until the limiter ends.
  [[nodiscard]] Result<LimitChange> SetLimit(std::string_view name, const Limit& limit);

  LimiterStats Stats() const;

 private:
  friend class Reservation;
  friend class Lease;
  struct State;
  explicit Limiter(std::unique_ptr<State> state) noexcept;
  Decision CheckAt(std::string_view key, Now now) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace weir

#include "store/memory/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weir {
namespace {

constexpr std::size_t kSmallPage = 4096;
constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr std::size_t kManyPages = 2 * kLargePage;

constexpr std::size_t RoundUp(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

ByteBudget::ByteBudget(ByteBudget& whole, std::size_t assured) noexcept
    : whole_(&whole), assured_(whole.TryTake(assured) ? assured : 0) {}

bool ByteBudget::Assure(std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  const std::size_t used = used_.load(std::memory_order_relaxed);
  const std::size_t before = std::max(used, assured_.load(std::memory_order_relaxed));
  const std::size_t after = std::max(used, bytes);
  if (after > before && !whole_->TryTake(after - before)) return false;
  if (after < before) whole_->GiveBack(before - after);
  assured_.store(bytes, std::memory_order_relaxed);
  return true;
}

bool ByteBudget::TryTake(std::size_t bytes, std::size_t spare) noexcept {
  const std::size_t most = cap();
  if (whole_ != nullptr) {
    const std::scoped_lock lock(mutex_);
    const std::size_t used = used_.load(std::memory_order_relaxed);
    if (bytes > most || used > most - bytes) return false;
    const std::size_t beyond = Beyond(used + bytes) - Beyond(used);
    if (beyond > 0 && !whole_->TryTake(beyond, spare)) return false;
    used_.store(used + bytes, std::memory_order_relaxed);
    return true;
  }
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > most || spare > most - bytes || used > most - bytes - spare) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void ByteBudget::GiveBack(std::size_t bytes) noexcept {
  if (whole_ == nullptr) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  const std::scoped_lock lock(mutex_);
  const std::size_t used = used_.load(std::memory_order_relaxed);
  used_.store(used - bytes, std::memory_order_relaxed);
  whole_->GiveBack(Beyond(used) - Beyond(used - bytes));
}

std::size_t ByteBudget::left() const noexcept {
  const std::size_t taken = used();
  const std::size_t most = whole_ == nullptr ? cap() : assured_.load(std::memory_order_relaxed);
  const std::size_t own = taken < most ? most - taken : 0;
  return whole_ == nullptr ? own : own + whole_->left();
}

Pages::Pages(std::size_t bytes, PageSize size) noexcept {
  const bool large = size == PageSize::kLargeIfMany && bytes >= kManyPages;
  // A large page begins at a multiple of its size, so there must be some to spare.
  const std::size_t spare = large ? kLargePage : 0;
  void* mapped = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(mapped);
  size_ = bytes;
  page_bytes_ = kSmallPage;
  if (!large) return;

  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t before = RoundUp(address, kLargePage) - address;
  data_ += before;
  if (before > 0) munmap(mapped, before);
  const std::size_t end = RoundUp(bytes, kSmallPage);
  const std::size_t after = spare - before - (end - bytes) / kSmallPage * kSmallPage;
  if (after > 0) munmap(data_ + end, after);
  // Advice: where the system has none, small ones do.
  if (madvise(data_, bytes, MADV_HUGEPAGE) == 0) page_bytes_ = kLargePage;
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      page_bytes_(other.page_bytes_),
      discarded_(std::exchange(other.discarded_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(page_bytes_, other.page_bytes_);
  std::swap(discarded_, other.discarded_);
  return *this;
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, size_);
}

void Pages::DiscardBelow(std::size_t end) noexcept {
  const std::size_t to = end < size_ ? end / page_bytes_ * page_bytes_ : size_;
  if (to <= discarded_) return;
  Discard(discarded_, to);
  discarded_ = to;
}

void Pages::DiscardBetween(std::size_t begin, std::size_t end) noexcept {
  if (data_ == nullptr) return;
  const std::size_t from = RoundUp(begin, page_bytes_);
  const std::size_t to = end < size_ ? end / page_bytes_ * page_bytes_ : size_;
  if (from < to) Discard(from, to);
}

// The system refuses where a process has locked its memory. It must read as zero all the same.
void Pages::Discard(std::size_t begin, std::size_t end) noexcept {
  if (madvise(data_ + begin, end - begin, MADV_DONTNEED) == 0) return;
  std::fill(data_ + begin, data_ + end, std::byte{0});
}

}  // namespace weir

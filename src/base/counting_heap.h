// A C++ heap that counts, in place of the usual one: for tests that something allocates nothing.
// Included by one source of a program, because it replaces operator new.
//
// Sanitizers bring a heap of their own, which must not be replaced: there WEIR_SANITIZER_HEAP is
// defined, nothing is counted, and tests should be skipped.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SANITIZER_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define WEIR_SANITIZER_HEAP
#endif
#endif

namespace {

thread_local std::size_t allocations = 0;
[[maybe_unused]] thread_local std::size_t held_bytes =
    0;  // Wraps if this thread frees what another allocated.

#ifndef WEIR_SANITIZER_HEAP
void* Allocate(std::size_t size, std::size_t alignment) noexcept {
  ++allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  held_bytes += malloc_usable_size(memory);
  return memory;
}
void* AllocateOrEnd(std::size_t size, std::size_t alignment) noexcept {
  void* memory = Allocate(size, alignment);
  if (memory == nullptr) std::abort();
  return memory;
}
void Free(void* memory) noexcept {
  held_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
constexpr std::size_t kUsual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
#endif

}  // namespace

#ifndef WEIR_SANITIZER_HEAP
void* operator new(std::size_t size) { return AllocateOrEnd(size, kUsual); }
void* operator new[](std::size_t size) { return AllocateOrEnd(size, kUsual); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return AllocateOrEnd(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return AllocateOrEnd(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size, kUsual);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size, kUsual);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { Free(memory); }
#endif

namespace weir {

template <typename Action>
std::size_t AllocationsOf(Action&& action) {
  const std::size_t before = allocations;
  action();
  return allocations - before;
}

}  // namespace weir

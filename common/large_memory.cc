#include "common/large_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

namespace outrigger {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;
constexpr std::align_val_t kCacheLine{64};

/// Less is not worth a mapping of its own.
constexpr size_t kLarge = 2 * kHugePage;

constexpr size_t up_to(size_t unit, size_t bytes) { return (bytes + unit - 1) / unit * unit; }

/// Whole pages from a border of huge ones on.
std::byte* map(size_t bytes) {
  const size_t wanted = up_to(kPage, bytes);
  const size_t all = wanted + kHugePage;
  void* got = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(got);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const size_t before = up_to(kHugePage, address) - address;
  if (before > 0) munmap(begin, before);
  std::byte* const data = begin + before;
  if (all > before + wanted) munmap(data + wanted, all - before - wanted);
  madvise(data, wanted, MADV_HUGEPAGE);  // a system that has none goes on with small ones
  return data;
}

}  // namespace

LargeMemory::LargeMemory(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = bytes >= kLarge ? map(bytes) : static_cast<std::byte*>(::operator new(bytes, kCacheLine));
}

LargeMemory::LargeMemory(LargeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

LargeMemory& LargeMemory::operator=(LargeMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

LargeMemory::~LargeMemory() {
  if (data_ == nullptr) return;
  if (bytes_ >= kLarge) {
    munmap(data_, up_to(kPage, bytes_));
  } else {
    ::operator delete(data_, kCacheLine);
  }
}

}  // namespace outrigger

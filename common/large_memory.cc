#include "common/large_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace outrigger {
namespace {

constexpr std::align_val_t kCacheLine{64};

/// Less is not worth a mapping of its own.
constexpr size_t kLarge = size_t{1} << 20;

constexpr size_t kPage = 4096;

constexpr size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::byte* checked(void* mapped) {
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(mapped);
}

}  // namespace

LargeMemory::LargeMemory(size_t bytes) : bytes_(bytes) {
  if (bytes >= kLarge) {
    data_ = checked(mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  } else if (bytes > 0) {
    data_ = static_cast<std::byte*>(::operator new(bytes, kCacheLine));
  }
}

LargeMemory::LargeMemory(LargeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

LargeMemory& LargeMemory::operator=(LargeMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

LargeMemory::~LargeMemory() {
  if (bytes_ >= kLarge) {
    munmap(data_, whole_pages(bytes_));
  } else if (data_ != nullptr) {
    ::operator delete(data_, kCacheLine);
  }
}

void LargeMemory::use() {
  for (size_t i = 0; i < bytes_; i += kPage) *static_cast<volatile std::byte*>(data_ + i) = {};
}

void LargeMemory::resize(size_t bytes) {
  if (bytes == bytes_) return;
  if (bytes >= kLarge && bytes_ >= kLarge) {
    data_ = checked(mremap(data_, whole_pages(bytes_), whole_pages(bytes), MREMAP_MAYMOVE));
    bytes_ = bytes;
    return;
  }
  *this = LargeMemory();  // not both at once
  *this = LargeMemory(bytes);
}

}  // namespace outrigger

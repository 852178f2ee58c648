#include "nn/cuda/memory_book.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace outrigger::nn::cuda {
namespace {

std::string mebibytes(int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text.data();
}

}  // namespace

void MemoryBook::taken(const void* memory, size_t bytes, const std::string& what) {
  const std::scoped_lock lock(mutex_);
  pieces_[memory] = {bytes, what};
}

void MemoryBook::released(const void* memory) {
  const std::scoped_lock lock(mutex_);
  pieces_.erase(memory);
}

std::vector<MemoryUse> MemoryBook::uses() const {
  std::map<std::string, int64_t> by_what;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& piece : pieces_)
      by_what[piece.second.what] += static_cast<int64_t>(piece.second.bytes);
  }
  std::vector<MemoryUse> uses;
  for (const auto& [what, bytes] : by_what) uses.push_back({what, bytes});
  std::ranges::stable_sort(uses, std::ranges::greater(), &MemoryUse::bytes);
  return uses;
}

int64_t sum(const std::vector<MemoryUse>& uses) {
  int64_t all = 0;
  for (const MemoryUse& use : uses) all += use.bytes;
  return all;
}

std::string describe(const std::vector<MemoryUse>& uses, size_t most) {
  int64_t left = sum(uses);
  std::string text = mebibytes(left);
  const char* separator = ": ";
  for (size_t i = 0; i < std::min(most, uses.size()); ++i) {
    text += separator + mebibytes(uses[i].bytes) + " " + uses[i].what;
    left -= uses[i].bytes;
    separator = ", ";
  }
  if (uses.size() > most)
    text += separator + mebibytes(left) + " " + std::to_string(uses.size() - most) + " more";
  return text;
}

}  // namespace outrigger::nn::cuda

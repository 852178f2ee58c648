// Any bytes as a tar: either InvalidInput, or members that lie inside it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/error.h"
#include "data/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace outrigger;
  const auto read = [&](uint64_t offset, std::span<std::byte> to) {
    const size_t count =
        offset >= size ? 0 : std::min(to.size(), size - static_cast<size_t>(offset));
    if (count > 0) std::memcpy(to.data(), bytes + offset, count);
    return count;
  };
  try {
    data::TarWalker walker("fuzzed", size, read);
    while (const auto member = walker.next()) {
      ensure(member->offset <= size && member->size <= size - member->offset,
             "a member lies in its tar");
    }
  } catch (const InvalidInput&) {
  }
  return 0;
}

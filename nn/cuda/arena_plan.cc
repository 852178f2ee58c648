#include "nn/cuda/arena_plan.h"

#include <algorithm>
#include <numeric>

#include "common/error.h"

namespace outrigger::nn::cuda {
namespace {

struct Placed {
  size_t begin, end;
  const ArenaRequest* request;
};

bool at_one_time(const ArenaRequest& a, const ArenaRequest& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The lowest offset where `request` meets nothing that lives at its time. `placed` is sorted by
// begin.
size_t lowest_gap(const ArenaRequest& request, const std::vector<Placed>& placed) {
  size_t offset = 0;
  for (const Placed& other : placed) {
    if (!at_one_time(request, *other.request)) continue;
    if (offset + aligned(request.bytes) <= other.begin) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

}  // namespace

size_t aligned(size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

ArenaPlan plan_arena(std::span<const ArenaRequest> requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  ArenaPlan plan;
  plan.offsets.resize(requests.size());
  std::vector<Placed> placed;
  for (const size_t i : order) {
    const ArenaRequest& request = requests[i];
    ensure(request.first <= request.last, "memory is needed before it is free again");
    if (request.bytes == 0) continue;
    const size_t offset = lowest_gap(request, placed);
    const Placed mine{offset, offset + aligned(request.bytes), &request};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), mine,
                                   [](const auto& a, const auto& b) { return a.begin < b.begin; }),
                  mine);
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, mine.end);
  }
  return plan;
}

}  // namespace outrigger::nn::cuda

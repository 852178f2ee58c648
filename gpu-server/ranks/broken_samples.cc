#include "gpu-server/ranks/broken_samples.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "common/error.h"
#include "feed/coordinator_options.h"

namespace outrigger::gpu_server {
namespace {

// An id travels in two parts: a float holds every whole number up to 2^24, and not all beyond.
constexpr int kExactIdBits = 24;
constexpr uint32_t kLowIdBits = (uint32_t{1} << kExactIdBits) - 1;

}  // namespace

BrokenSamples::BrokenSamples(const data::Dataset& dataset, double max_bad_fraction,
                             const std::vector<uint32_t>& known)
    : dataset_(dataset),
      allowed_(feed::allowed_broken(max_bad_fraction, dataset.size())),
      known_(known.begin(), known.end()) {}

bool BrokenSamples::has_news(std::span<const uint32_t> own) const {
  return !std::ranges::includes(known_, own);
}

void BrokenSamples::share(Agreement& agreement, std::span<const uint32_t> own) {
  std::vector<float> news;
  for (const uint32_t id : own) {
    if (known_.contains(id)) continue;
    news.push_back(static_cast<float>(id >> kExactIdBits));
    news.push_back(static_cast<float>(id & kLowIdBits));
  }
  for (const std::vector<float>& theirs : agreement.gather(news)) {
    for (size_t i = 0; i + 1 < theirs.size(); i += 2)
      known_.insert((static_cast<uint32_t>(theirs[i]) << kExactIdBits) +
                    static_cast<uint32_t>(theirs[i + 1]));
  }
  check();
}

std::vector<uint32_t> BrokenSamples::with(std::span<const uint32_t> own) const {
  std::vector<uint32_t> all;
  std::ranges::set_union(known_, own, std::back_inserter(all));
  return all;
}

void BrokenSamples::check() const {
  if (known_.size() <= allowed_) return;
  std::string text = std::to_string(known_.size()) + " of " + std::to_string(dataset_.size()) +
                     " samples are broken, over all ranks; data.maxBadFraction allows " +
                     std::to_string(allowed_) + ":";
  for (const uint32_t id : known_) text += "\n  " + dataset_.at(id).path;
  throw InvalidInput(text);
}

}  // namespace outrigger::gpu_server

#include "gpu-server/planning/worker_book.h"

#include <algorithm>
#include <variant>

namespace outrigger::gpu_server {
namespace {

/// So many results make what a worker was like when it was new.
constexpr uint64_t kFirst = 8;

/// What takes many times as long once, as when a machine is stopped for a tenth of a second, counts
/// for four times: what lasts shows all the same.
double counted(double mean, double value) {
  constexpr double kMost = 4;
  return mean > 0 ? std::min(value, kMost * mean) : value;
}

/// The newest of the values weighs so much, unless with it they are others for good, by `enough` of
/// them; 0: that is too early to tell. Whether they are others, and smaller.
bool average(double& mean, Jump& jump, float value, double newest, double enough) {
  if (value <= 0) return false;
  const auto told = static_cast<double>(value);
  if (mean == 0) mean = told;
  const auto now = enough > 0 ? jump.note(mean, told, enough) : std::nullopt;
  const bool smaller = now && *now < mean;
  mean = now ? *now : mean + newest * (counted(mean, told) - mean);
  return smaller;
}

/// The results of a step weigh about as much as its time does among the device's: a while in which
/// machines are slow counts in everyone's rates for as long.
constexpr double kNewestStep = 0.25;

/// A worker's own mean of its link's rate has about so many pieces.
constexpr uint32_t kLate = 64;

/// Decoding takes less than a period of a CPU quota, in which a worker runs or not, so it takes
/// many for a mean.
constexpr double kNewestDecode = 0.1;

}  // namespace

void WorkerBook::Pace::note(uint64_t step) {
  constexpr size_t kSteps = 4;
  const auto known = std::ranges::find(newest_, step, &Count::step);
  if (known != newest_.end()) {
    ++known->results;
    return;
  }
  if (newest_.size() == kSteps) newest_.pop_front();
  newest_.push_back({step, 1});
}

double WorkerBook::Pace::per_step() const {
  uint32_t most = 1;
  for (const Count& count : newest_) most = std::max(most, count.results);
  return most;
}

double WorkerMeasures::work() const {
  constexpr double kLeast = 0.05;  // reading is a part of it, but measured by another clock
  return std::max(decode - read, kLeast * decode);
}

bool WorkerBook::note(const feed::WorkerMessage& message) {
  const feed::WorkTimes* times = nullptr;
  if (const auto* batch = std::get_if<feed::MicroBatch>(&message)) times = &batch->times;
  const auto* gradient = std::get_if<feed::StemGradient>(&message);
  if (gradient != nullptr) times = &gradient->times;
  if (times == nullptr) return false;
  if (times->bytes_per_second > 0) told_rate_ = times->bytes_per_second;
  if (told_late_ > 0) --told_late_;
  // Other photos, and another crop.
  if (gradient == nullptr && std::get<feed::MicroBatch>(message).key.step >= feed::kFirstEvaluation)
    return false;
  ++(gradient == nullptr ? measures_.micro_batches : measures_.stem_gradients);
  bool faster = false;
  if (gradient == nullptr) {
    pace_.note(std::get<feed::MicroBatch>(message).key.step);
    faster = note_decode(*times);
  }
  if (times->cut > 0 && note_stem(*times, gradient != nullptr)) faster = true;
  if (faster) told_late_ = kLate;
  follow(measures_.layers, times->layers);
  return faster;
}

// Two steps' are more than one step in which the machine was slow.
double WorkerBook::enough_for_jump(uint64_t results) const {
  constexpr double kFewest = 4;
  return results <= kFirst ? 0 : std::max(kFewest, 2 * pace_.per_step());
}

bool WorkerBook::note_decode(const feed::WorkTimes& times) {
  const double newest = std::max(std::min(kNewestDecode, kNewestStep / pace_.per_step()),
                                 1 / static_cast<double>(measures_.micro_batches));
  // What does not count of it was waiting for bytes, if it was that at all.
  const auto decode = static_cast<double>(times.decode);
  const double left_out = decode - counted(measures_.decode, decode);
  const double read = std::max(0.0, static_cast<double>(times.read) - left_out);
  const bool faster = average(measures_.decode, decode_jump_, times.decode, newest,
                              enough_for_jump(measures_.micro_batches));
  measures_.read = std::min(measures_.read + newest * (read - measures_.read), measures_.decode);
  if (measures_.micro_batches <= kFirst) {
    measures_.first_decode = measures_.decode;
    measures_.first_work = measures_.work();
  }
  return faster;
}

bool WorkerBook::note_stem(const feed::WorkTimes& times, bool gradient) {
  WorkerMeasures::Stem& stem = measures_.stems[times.cut];
  StemResults& results = stem_results_[times.cut];
  if (!gradient && times.cut != newest_cut_) {
    newest_cut_ = times.cut;
    results = {};  // what it was when it last ran may be long ago
  }
  if (!gradient) ++results.count;
  const double newest = std::max(kNewestStep / pace_.per_step(), 1.0 / std::max(1u, results.count));
  const double enough = enough_for_jump(results.count);
  bool faster = false;
  if (!gradient) faster = average(stem.forward, results.forward, times.forward, newest, enough);
  if (average(stem.backward, results.backward, times.backward, newest, enough)) faster = true;
  stem.decode = measures_.work();
  return faster;
}

WorkerMeasures WorkerBook::measures(const transport::LinkStats& link) const {
  WorkerMeasures measures = measures_;
  const auto newest = stem_results_.find(newest_cut_);
  const double known = newest == stem_results_.end() ? 0 : newest->second.count;
  for (auto& [cut, stem] : measures.stems)
    if (cut != newest_cut_) stem.weight = std::max(0.0, 1 - known / kFirst);
  const double here = link.rate();
  const bool both = told_rate_ > 0 && here > 0;
  measures.bytes_per_second = both ? std::min(here, told_rate_) : std::max(here, told_rate_);
  if (both && told_late_ > 0) measures.bytes_per_second = here;
  measures.latency = to_seconds(link.round_trip) / 2;
  return measures;
}

}  // namespace outrigger::gpu_server

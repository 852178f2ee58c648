#include "gpu-server/planning/rank_measures.h"

#include <array>

#include "common/error.h"

namespace outrigger::gpu_server {
namespace {

/// The numbers of a worker, in the order in which they travel.
constexpr std::array kNumbers{&WorkerMeasures::memory,           &WorkerMeasures::pass_seconds,
                              &WorkerMeasures::first_decode,     &WorkerMeasures::first_work,
                              &WorkerMeasures::decode,           &WorkerMeasures::read,
                              &WorkerMeasures::bytes_per_second, &WorkerMeasures::latency};

void pack(const WorkerMeasures& worker, std::vector<float>& to) {
  const auto add = [&](double value) { to.push_back(static_cast<float>(value)); };
  add(worker.cores);
  for (const auto number : kNumbers) add(worker.*number);
  add(static_cast<double>(worker.stems.size()));
  for (const auto& [cut, stem] : worker.stems) {
    for (const double value :
         {static_cast<double>(cut), stem.forward, stem.backward, stem.decode, stem.weight})
      add(value);
  }
}

/// Takes numbers from the front.
class Unpacker {
 public:
  explicit Unpacker(std::span<const float> numbers) : left_(numbers) {}

  double next() {
    if (left_.empty()) refuse();
    const double number = left_.front();
    left_ = left_.subspan(1);
    return number;
  }
  /// A number of things of which each takes a number or more.
  size_t next_count() {
    const double count = next();
    if (!(count >= 0) || count > static_cast<double>(left_.size())) refuse();
    return static_cast<size_t>(count);
  }
  void expect_end() const {
    if (!left_.empty()) refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    throw IoError(
        "another rank told of its workers what this one cannot read: are all of the same "
        "version?");
  }
  std::span<const float> left_;
};

WorkerMeasures unpack_worker(Unpacker& from) {
  WorkerMeasures worker;
  worker.cores = static_cast<uint32_t>(from.next());
  for (const auto number : kNumbers) worker.*number = from.next();
  for (size_t stems = from.next_count(); stems > 0; --stems) {
    auto& stem = worker.stems[static_cast<int32_t>(from.next())];
    stem.forward = from.next();
    stem.backward = from.next();
    stem.decode = from.next();
    stem.weight = from.next();
  }
  return worker;
}

}  // namespace

std::vector<float> pack(const RankMeasures& measures) {
  std::vector<float> numbers{static_cast<float>(measures.busy), static_cast<float>(measures.plan),
                             static_cast<float>(measures.memory),
                             static_cast<float>(measures.threads),
                             static_cast<float>(measures.workers.size())};
  pack(measures.local, numbers);
  for (const WorkerMeasures& worker : measures.workers) pack(worker, numbers);
  return numbers;
}

RankMeasures unpack_rank(std::span<const float> numbers) {
  Unpacker from(numbers);
  RankMeasures measures;
  measures.busy = from.next();
  measures.plan = static_cast<uint64_t>(from.next());
  measures.memory = from.next();
  measures.threads = static_cast<uint32_t>(from.next());
  const size_t workers = from.next_count();
  measures.local = unpack_worker(from);
  for (size_t i = 0; i < workers; ++i) measures.workers.push_back(unpack_worker(from));
  from.expect_end();
  return measures;
}

}  // namespace outrigger::gpu_server

#include "training/planner/batch_advice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/log.h"
#include "training/planner/model/memory.h"

namespace outrigger::training {
namespace {

/// With fewer, a step waits for the slowest of those that have a part in it.
constexpr uint32_t kLevels = 8;
/// What other sizes must bring to be worth a word.
constexpr double kGain = 1.05;

/// Sizes as the job has them.
struct Sizes {
  uint32_t batch = 0;
  uint32_t micro_batch = 0;
};

/// How many times as many of so many cores are at work with another size of micro-batches.
double more_at_work(const Profile& profile, uint32_t micro_batch, double cores) {
  if (cores == 0) return 1;
  return cores_at_work(profile.block_samples, micro_batch, cores) / cores_at_work(profile, cores);
}

/// What a machine does with micro-batches of another size, `times` as large; pixels of these.
WorkerRates scaled(WorkerRates rates, const Profile& profile, uint32_t micro_batch, double times) {
  rates.decode *= times;
  rates.stem_speed *= more_at_work(profile, micro_batch, rates.cores);
  if (rates.cores == 0) return rates;
  const double memory = feed::memory_with(rates.memory, rates.leases, profile.costs.pixels);
  rates.leases = feed::leases_in_hand(rates.cores, micro_batch);
  rates.memory = feed::memory_beside(memory, rates.leases, times * profile.costs.pixels);
  return rates;
}

/// Costs with micro-batches `times` as large, of which a step has `micro_batches`.
JobCosts scaled(JobCosts job, uint32_t micro_batches, double times) {
  job.micro_batches = micro_batches;
  job.pixels *= times;
  for (CutCosts& cut : job.cuts) {
    for (double* one : {&cut.stem_forward, &cut.stem_backward, &cut.head, &cut.activations,
                        &cut.gradients, &cut.stem_kept, &cut.head_kept, &cut.crossing})
      *one *= times;
    if (cut.device_stem) *cut.device_stem *= times;
  }
  return job;
}

/// Of a step: under the plan that the options fix, else under the best; nothing where none is
/// possible.
std::optional<double> seconds_of(const Situation& in, const Choice& fixed) {
  if (!in.options.fixes_plan()) {
    const auto found = search(in, {}, by_model());
    return found ? std::optional(found->prediction.seconds) : std::nullopt;
  }
  const double seconds = predict(in, fixed).seconds;
  return holds(in, fixed, seconds) ? std::optional(seconds) : std::nullopt;
}

/// Images a second, of all ranks, with other sizes by the model; nothing where no plan is possible.
/// `now`: the plan with the present sizes.
std::optional<double> rate(const Profile& profile, ServerRates server,
                           std::span<const WorkerRates> workers, const Sizes& sizes,
                           const Choice& now) {
  const double times = static_cast<double>(sizes.micro_batch) / profile.micro_batch;
  const uint32_t micro_batches = sizes.batch / (sizes.micro_batch * ranks_of(profile));
  JobCosts job = scaled(profile.costs, micro_batches, times);
  const auto as_many = [&](uint32_t away) {
    return away == 0 ? 0 : std::max(1u, away * micro_batches / profile.costs.micro_batches);
  };
  PlannerOptions options = profile.options;
  if (options.away) options.away = as_many(*options.away);
  server.decode *= times;
  if (server.shared) {
    const double more = more_at_work(profile, sizes.micro_batch, server.own_cores);
    server.cores *= more;
    job.optimizer *= more;  // takes as long however many cores wait
  }
  std::vector<WorkerRates> others;
  for (const WorkerRates& one : workers)
    others.push_back(scaled(one, profile, sizes.micro_batch, times));
  const auto seconds = seconds_of({job, options, server, others}, {now.cut, as_many(now.away)});
  if (!seconds) return std::nullopt;
  return sizes.batch / *seconds;
}

}  // namespace

uint32_t ranks_of(const Profile& profile) {
  const uint32_t of_one = profile.micro_batch * profile.costs.micro_batches;
  return of_one == 0 ? 1 : std::max(1u, profile.batch / of_one);
}

std::optional<std::string> levelling_advice(uint32_t micro_batches) {
  if (micro_batches >= kLevels) return std::nullopt;
  return fmt::format(
      "A trained cut with {} micro-batches a step: fast and slow workers are not levelled, and "
      "each "
      "step waits for the slowest; {} and more are good.",
      micro_batches, kLevels);
}

std::string what_would_fit(const JobCosts& job, uint32_t micro_batch, const ServerRates& server,
                           std::span<const WorkerRates> workers) {
  const uint32_t batch = job.micro_batches * micro_batch;
  for (uint32_t size = micro_batch - 1; size > 0 && micro_batch > 0; --size) {
    if (batch % size != 0) continue;
    const JobCosts smaller = scaled(job, batch / size, static_cast<double>(size) / micro_batch);
    if (misfit(smaller, server, workers, {}).empty())
      return fmt::format("; spec.training.microBatchSize: {} would fit", size);
  }
  return "; no microBatchSize fits: what does not depend on it is too large";
}

std::vector<std::string> batch_advice(const Profile& profile, const ServerRates& server,
                                      std::span<const WorkerRates> workers, const Candidate& best) {
  std::vector<std::string> advice;
  const Sizes now{profile.batch, profile.micro_batch};
  if (profile.batch == 0 || profile.micro_batch == 0) return advice;
  const CutCosts& cut = profile.costs.cuts[best.choice.cut];
  const auto few = levelling_advice(profile.costs.micro_batches);
  if (best.choice.away > 0 && cut.trains && few) advice.push_back(*few);
  const auto present = rate(profile, server, workers, now, best.choice);
  if (!present) return advice;
  const auto compare = [&](const Sizes& other, const std::string& what, const char* but) {
    const auto there = rate(profile, server, workers, other, best.choice);
    if (!there || *there < kGain * *present) return;
    advice.push_back(fmt::format("{} would give {:.2f}x the images a second, by the model; {}.",
                                 what, *there / *present, but));
  };
  if (now.micro_batch % 2 == 0)
    compare({now.batch, now.micro_batch / 2},
            fmt::format("microBatchSize: {}", now.micro_batch / 2),
            "batch norm then takes its statistics over so many samples");
  if (profile.costs.micro_batches % 2 == 0)
    compare({now.batch, 2 * now.micro_batch},
            fmt::format("microBatchSize: {}", 2 * now.micro_batch),
            "batch norm then takes its statistics over so many samples");
  compare({2 * now.batch, now.micro_batch}, fmt::format("batchSize: {}", 2 * now.batch),
          "the learning rate is to be chosen anew");
  return advice;
}

}  // namespace outrigger::training

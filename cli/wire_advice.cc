#include "cli/wire_advice.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "training/planner/reason.h"

namespace outrigger::cli {
namespace {

/// What another wire must bring to be worth a word, and what a narrower one must bring more than a
/// wider: it rounds more.
constexpr double kWireGain = 1.05;

/// Costs with other wires, and what links take with those.
training::JobCosts with_wires(training::JobCosts job, const Wires& present, const Wires& others,
                              const training::LinkWork& work) {
  const auto part = [](WireFormat now, WireFormat then) {
    return bytes_an_element(then) / bytes_an_element(now);
  };
  for (training::CutCosts& cut : job.cuts) {
    cut.activations *= part(present.activations, others.activations);
    cut.gradients *= part(present.gradients, others.gradients);
  }
  job.link_work = work;
  return job;
}

/// As a job names it.
const char* name_of(WireFormat format) { return format == WireFormat::kInt8 ? "Int8" : "BFloat16"; }

}  // namespace

std::optional<std::string> wire_advice(const training::Situation& in, const Wires& present,
                                       const NarrowedWork& work, double seconds,
                                       const training::Trial& trial) {
  std::optional<std::string> advice;
  double best = seconds;
  for (const WireFormat format : kNarrowWires) {
    const Wires others = narrowed(present, format);
    if (others == present) continue;
    const auto known = work.find(format);
    const training::JobCosts job =
        with_wires(in.job, present, others, known == work.end() ? in.job.link_work : known->second);
    const training::Situation there{job, in.options, in.server, in.workers};
    const auto promised = search(there, {}, training::by_model());  // takes no time
    if (!promised || best < kWireGain * promised->prediction.seconds) continue;
    const auto found = search(there, {}, trial);
    if (!found || found->choice.away == 0 || best < kWireGain * found->prediction.seconds) continue;
    best = found->prediction.seconds;
    advice = fmt::format(
        "With spec.split.wire: {{activations: {0}, gradients: {0}}} the best plan would be {1}: "
        "{2:.2f}x the images a second. Auto sends nothing narrower than spec.training.precision.",
        name_of(format), describe(job, found->choice), seconds / best);
  }
  return advice;
}

}  // namespace outrigger::cli

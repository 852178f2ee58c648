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

/// Costs with both wires narrowed to a format, where they are wider.
training::JobCosts narrowed(training::JobCosts job, const feed::Plan& present, WireFormat format) {
  const auto part = [format](WireFormat now) {
    return std::min(1.0, bytes_an_element(format) / bytes_an_element(now));
  };
  for (training::CutCosts& cut : job.cuts) {
    cut.activations *= part(present.activations);
    cut.gradients *= part(present.gradients);
  }
  return job;
}

}  // namespace

std::optional<std::string> wire_advice(const training::Situation& in, const feed::Plan& present,
                                       double seconds, const training::Trial& trial) {
  std::optional<std::string> advice;
  double best = seconds;
  for (const auto& [format, name] :
       {std::pair(WireFormat::kBFloat16, "BFloat16"), std::pair(WireFormat::kInt8, "Int8")}) {
    if (bytes_an_element(format) >=
        std::max(bytes_an_element(present.activations), bytes_an_element(present.gradients)))
      continue;
    const training::JobCosts job = narrowed(in.job, present, format);
    const training::Situation there{job, in.options, in.server, in.workers};
    const auto promised = search(there, {}, training::by_model());  // takes no time
    if (!promised || best < kWireGain * promised->prediction.seconds) continue;
    const auto found = search(there, {}, trial);
    if (!found || found->choice.away == 0 || best < kWireGain * found->prediction.seconds) continue;
    best = found->prediction.seconds;
    advice = fmt::format(
        "With spec.split.wire: {{activations: {0}, gradients: {0}}} the best plan would be {1}: "
        "{2:.2f}x the images a second. Auto sends nothing narrower than spec.training.precision.",
        name, describe(job, found->choice), seconds / best);
  }
  return advice;
}

}  // namespace outrigger::cli

#include "training/planner/reason.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/log.h"

namespace outrigger::training {
namespace {

/// The rate that changed the most of those that were looked at.
class LargestChange {
 public:
  /// More is faster. What is not known is 0, and no change.
  void look(const char* what, double before, double now) {
    if (before <= 0 || now <= 0) return;
    if (std::max(before, now) * (1 - kWavers) <= std::min(before, now)) return;
    const double times = std::max(before, now) / std::min(before, now);
    if (times <= times_) return;
    times_ = times;
    const double part = now / before;
    text_ = part < 10 ? fmt::format("{} at {:.2g} times its speed", what, part)
                      : fmt::format("{} at {:.0f} times its speed", what, part);
  }
  const std::string& text() const { return text_; }

 private:
  double times_ = 1;
  std::string text_;
};

/// Of a time.
double speed(double seconds) { return seconds > 0 ? 1 / seconds : 0; }

double link_speed(const WorkerRates& worker) {
  return worker.bytes_per_second == kUnknownLink ? 0 : worker.bytes_per_second;
}

/// In an order in which one that was replaced by its like stands where that stood.
std::vector<WorkerRates> by_speed(std::vector<WorkerRates> workers) {
  std::ranges::sort(workers, [](const WorkerRates& one, const WorkerRates& other) {
    return std::pair(one.stem_speed, -one.decode) < std::pair(other.stem_speed, -other.decode);
  });
  return workers;
}

}  // namespace

std::string describe(const JobCosts& job, const Choice& choice) {
  std::string text = "cut Input";
  if (choice.away > 0)
    text = fmt::format("cut {}, {} of {} stems away", job.cuts[choice.cut].name, choice.away,
                       job.micro_batches);
  if (choice.local > 0)
    text += fmt::format(", {} of {} inputs made by the server itself", choice.local,
                        job.micro_batches - choice.away);
  return text;
}

std::string count_of_workers(size_t count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

std::string describe_gain(const Gain& gain) {
  if (gain.is <= 0) return "";
  std::string saves = fmt::format("; that saves {:.1f} %", 100 * gain.is);
  if (gain.wanted > 0) saves += fmt::format(" where {:.1f} % is enough", 100 * gain.wanted);
  return saves;
}

std::string what_changed(const std::vector<RankRates>& before, const std::vector<RankRates>& now,
                         const Likeness& likeness) {
  if (before.empty()) return "";
  const size_t had = workers_of(before);
  const size_t has = workers_of(now);
  if (has > had) return count_of_workers(has - had) + " came";
  if (has < had) return count_of_workers(had - has) + " left";
  LargestChange largest;
  for (size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    largest.look("a device works", before[i].server.cores, now[i].server.cores);
    largest.look("a server decodes", speed(before[i].server.decode), speed(now[i].server.decode));
    const auto was = by_speed(before[i].workers);
    const auto is = by_speed(now[i].workers);
    for (size_t k = 0; k < std::min(was.size(), is.size()); ++k) {
      largest.look("a worker decodes", speed(was[k].decode), speed(is[k].decode));
      largest.look("a worker computes", was[k].stem_speed, is[k].stem_speed);
      if (links_differ(was[k], is[k], likeness))
        largest.look("a link works", link_speed(was[k]), link_speed(is[k]));
    }
  }
  return largest.text();
}

}  // namespace outrigger::training

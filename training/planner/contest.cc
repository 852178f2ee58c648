#include "training/planner/contest.h"

#include <algorithm>
#include <cmath>

namespace outrigger::training {
namespace {

/// What takes so many times as long as the shortest step is not worth to know how long exactly, nor
/// to look around.
constexpr double kHopeless = 1.2;

/// All stems on the server, and of the pixels everyone makes what he can: that plan levels itself.
/// Any other holds server and workers to what was measured of them, which wavers.
constexpr Choice kPlain;

/// With so many more stems away and inputs local; nothing where there are no such. No stem away is
/// another cut.
std::optional<Choice> moved(const Choice& from, int away, int local) {
  const int64_t stems = int64_t{from.away} + away;
  const int64_t inputs = int64_t{from.local} + local;
  const bool same = (stems > 0) == (from.away > 0);
  if (!same || stems < 0 || inputs < 0) return std::nullopt;
  return Choice{from.cut, static_cast<uint32_t>(stems), static_cast<uint32_t>(inputs)};
}

std::vector<WorkerRates> slowed(std::span<const WorkerRates> workers) {
  constexpr double kSlower = 1.1;
  std::vector<WorkerRates> slow(workers.begin(), workers.end());
  for (WorkerRates& worker : slow) {
    worker.stem_speed /= kSlower;
    worker.decode *= kSlower;
    worker.bytes_per_second /= kSlower;
  }
  return slow;
}

}  // namespace

// What workers are measured to do wavers by a tenth or more within seconds, what the server does
// less.
double exposure(const Situation& in, const Choice& choice) {
  const double now = predict(in, choice).seconds;
  if (!std::isfinite(now) || now <= 0) return 1;
  const std::vector<WorkerRates> workers = slowed(in.workers);
  std::vector<RankRates> others(in.others.begin(), in.others.end());
  for (RankRates& rank : others) rank.workers = slowed(rank.workers);
  const Situation disturbed{in.job, in.options, in.server, workers, others};
  return (1 + predict(disturbed, choice).seconds / now) / 2;
}

double Contest::tried(const Choice& choice) const {
  return trial_.within ? trial_.within(in_, choice, kHopeless * least_)
                       : trial_.seconds(in_, choice);
}

void Contest::enter(const Choice& choice) {
  if (left_ == 0 || tried_.contains(choice) || !allowed(in_, choice)) return;
  const double seconds = tried_[choice] = tried(choice);
  const bool ended = trial_.within && seconds > kHopeless * least_;
  left_ -= std::min<size_t>(left_, ended ? 1 : 2);
  if (!holds(in_, choice, seconds)) return;
  entered_.push_back(choice);
  least_ = std::min(least_, seconds);
  const auto of_cut = std::ranges::find(best_, choice.cut, &Choice::cut);
  if (of_cut == best_.end()) {
    best_.push_back(choice);
  } else if (seconds < tried_.at(*of_cut)) {
    *of_cut = choice;
  }
}

void Contest::enter_keeping_its_own(const Choice& choice) {
  const Prediction told = predict(in_, choice);
  if (!std::isfinite(told.seconds)) return;
  const auto own = static_cast<uint32_t>(told.local_input * (in_.job.micro_batches - choice.away));
  for (const uint32_t local : {own, own + 1}) {
    if (local > choice.local) enter({choice.cut, choice.away, local});
  }
}

void Contest::enter_all_local() {
  if (entered_.empty()) return;
  const Choice best = ranked().front();
  enter({best.cut, best.away, in_.job.micro_batches - best.away});
}

void Contest::climb() {
  std::vector<Choice> starts = best_;
  std::ranges::stable_sort(starts, {}, [this](const Choice& one) { return tried_.at(one); });
  constexpr size_t kClimbs = 2;
  if (starts.size() > kClimbs) starts.resize(kClimbs);
  std::erase_if(starts, [&](const Choice& one) { return tried_.at(one) > kHopeless * least_; });
  for (const Choice& start : starts) climb_from(start);
}

std::optional<Candidate> Contest::winner() const {
  if (best_.empty()) return std::nullopt;
  const auto [choice, seconds] = winning();
  return told(choice, seconds);
}

std::vector<Candidate> Contest::best(size_t count) const {
  std::vector<Candidate> all;
  for (const Choice& choice : ranked()) {
    if (all.size() < count) all.push_back(told(choice, tried_.at(choice)));
  }
  return all;
}

Candidate Contest::told(const Choice& choice, double seconds) const {
  Prediction told = predict(in_, choice);
  told.seconds = seconds;
  return {choice, told};
}

std::vector<Choice> Contest::ranked() const {
  std::vector<Choice> all = entered_;
  std::ranges::stable_sort(all, {}, [this](const Choice& one) { return tried_.at(one); });
  return all;
}

Contest::Result Contest::winning() const {
  constexpr double kClose = 1.05;
  std::vector<Choice> close = ranked();
  const double least = tried_.at(close[0]);
  const double far = std::max(kClose, worth_a_plan()) * least;
  std::erase_if(close, [&](const Choice& one) { return tried_.at(one) > far; });
  const bool plain = plain_may_win(least);
  auto others = close.begin();
  if (plain)
    others =
        std::stable_partition(others, close.end(), [](const Choice& one) { return one == kPlain; });
  if (!trial_.longer || close.size() < 2) return {close[0], tried_.at(close[0])};
  std::map<Choice, double> exposed;
  for (const Choice& one : close) exposed[one] = exposure(in_, one);
  std::ranges::stable_sort(others, close.end(), {},
                           [&](const Choice& one) { return tried_.at(one) * exposed.at(one); });
  const double first = trial_.longer(in_, close[0]);
  const double second = trial_.longer(in_, close[1]);
  const bool better = plain ? worth_a_plan() * second < first
                            : second * exposed.at(close[1]) < first * exposed.at(close[0]);
  const Choice& choice = close[better ? 1 : 0];
  // Stems away are believed no better than that says: what they cost comes late.
  const double least_believed = choice.away > 0 ? std::min(first, second) : 0;
  return {choice, std::max(tried_.at(choice), least_believed)};
}

// Under another plan it wins only where that would be left for it: else it would hide a better one
// for which that would be.
bool Contest::plain_may_win(double least) const {
  if (in_.options.cut) return false;  // who names a cut wants it
  if (!is_entered(kPlain) || tried_.at(kPlain) > worth_a_plan() * least) return false;
  return present_ == kPlain || !is_entered(present_) ||
         tried_.at(kPlain) < to_plain_ * tried_.at(present_);
}

// Each way is gone for as long as it gets better.
void Contest::climb_from(Choice at) {
  struct Way {
    int away;
    int local;
  };
  // The last ones but one let as many cross no link.
  constexpr Way kWays[] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-1, 1}, {1, -1}, {-2, 2}};
  for (std::optional<Choice> from; from != at && left_ > 0;) {
    from = at;
    for (const Way& way : kWays) {
      double before = tried_.at(at);
      for (auto next = moved(at, way.away, way.local); next;) {
        enter(*next);
        const auto tried = tried_.find(*next);
        if (tried == tried_.end() || tried->second >= before) break;
        before = tried->second;
        next = moved(*next, way.away, way.local);
      }
    }
    at = *std::ranges::find(best_, at.cut, &Choice::cut);
  }
}

}  // namespace outrigger::training

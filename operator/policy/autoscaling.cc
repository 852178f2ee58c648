#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "api/names.h"
#include "operator/policy/conditions.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/queue.h"

namespace outrigger::controller {
namespace {

using std::chrono::seconds;

// A server that has been silent for longer says nothing about now.
constexpr seconds kFresh{60};
// Two writes by others within this time: somebody else scales, too.
constexpr seconds kContest{300};
// How long a contested job is left alone after the last such write.
constexpr seconds kPause{3600};

struct Target {
  int replicas = 0;
  std::string reason;
};

std::string workers(int count) {
  return std::to_string(count) + (count == 1 ? " worker" : " workers");
}

bool is_within_bounds(const Pass& pass, int replicas) {
  const auto& spec = pass.spec.workers;
  return replicas >= spec.min_replicas && replicas <= spec.max_replicas.value_or(replicas);
}

void note_foreign_write(Pass& pass, api::ScalingStatus& scaling) {
  const bool again = scaling.foreign_time && pass.now - *scaling.foreign_time < kContest;
  scaling.replicas = pass.spec.workers.replicas;
  scaling.former.reset();
  scaling.changed_time = scaling.foreign_time = pass.now;
  scaling.reason = "somebody else set " + workers(scaling.replicas);
  if (!again || is_true(pass.plan.status, api::kConditionScalingContested)) return;
  const std::string text = "others set spec.workers.replicas twice within " +
                           std::to_string(kContest.count()) +
                           " s; the autoscaler leaves it alone until " +
                           std::to_string(kPause.count() / 60) + " min have passed without that";
  set_condition(pass, api::kConditionScalingContested, true, {"OthersScale", text});
  pass.event("ScalingContested", text, true);
}

// What is in the spec against what we last knew of it: written by us, not written yet, or by
// somebody else.
void follow_spec(Pass& pass, api::ScalingStatus& scaling) {
  const int is = pass.spec.workers.replicas;
  if (is == scaling.replicas) {
    scaling.former.reset();
  } else if (scaling.former != is) {
    note_foreign_write(pass, scaling);
  } else if (is_within_bounds(pass, scaling.replicas)) {
    pass.plan.actions.push_back(Scale{scaling.replicas});
  } else {  // the bounds moved meanwhile
    scaling.replicas = is;
    scaling.former.reset();
  }
}

bool is_paused(Pass& pass, const api::ScalingStatus& scaling) {
  if (!is_true(pass.plan.status, api::kConditionScalingContested)) return false;
  const api::Time until = scaling.foreign_time.value_or(pass.now) + kPause;
  if (pass.now < until) {
    pass.again_at(until);
    return true;
  }
  set_condition(pass, api::kConditionScalingContested, false,
                {"NobodyElseScales", "nobody else scaled for a while"});
  return false;
}

// Never more than its queue admitted, where the job waits in one.
int most(const Pass& pass) {
  const auto& spec = pass.spec.workers;
  const int bound =
      std::min(*spec.max_replicas, admitted_workers(pass).value_or(*spec.max_replicas));
  return std::max(bound, spec.min_replicas);
}

// The number that one report speaks for. Without a worker nobody can say how many are of use; the
// first one is there to find that out.
int wanted_by(const Pass& pass, const WorkerDemand& demand) {
  const auto& spec = pass.spec.workers;
  int wanted = spec.replicas;
  if (demand.desired) {
    wanted = *demand.desired;
  } else if (spec.replicas == 0 && demand.stall_percent &&
             *demand.stall_percent > spec.autoscaling->target_stall_percent) {
    wanted = 1;
  }
  return std::clamp(wanted, spec.min_replicas, most(pass));
}

/// The least and the most that was wanted over a window; nothing where it was not watched so long.
struct Span {
  int least = 0;
  int most = 0;
};

std::optional<Span> wanted_over(const Pass& pass, const api::ScalingStatus& scaling,
                                seconds window) {
  std::optional<Span> span;
  bool long_enough = false;
  for (const WorkerDemand& demand : pass.seen.demand) {
    if (scaling.changed_time && demand.at <= *scaling.changed_time) continue;
    if (demand.at <= pass.now - window) long_enough = true;
    const bool newest = &demand == &pass.seen.demand.back();
    if (demand.at < pass.now - window && !newest) continue;
    const int wanted = wanted_by(pass, demand);
    span = span ? Span{std::min(span->least, wanted), std::max(span->most, wanted)}
                : Span{wanted, wanted};
  }
  return long_enough ? span : std::nullopt;
}

std::string describe(const Pass& pass, const WorkerDemand& demand) {
  const auto& spec = pass.spec.workers;
  std::string text = demand.desired ? "the server can use " + std::to_string(*demand.desired)
                                    : "no worker has joined to measure by";
  if (demand.stall_percent) {
    text += ", its device waits for " + std::to_string(*demand.stall_percent) +
            " % of the time (target " + std::to_string(spec.autoscaling->target_stall_percent) +
            ")";
  }
  if (demand.desired.value_or(0) > *spec.max_replicas)
    text += ", maxReplicas is " + std::to_string(*spec.max_replicas);
  if (demand.desired && *demand.desired < spec.min_replicas)
    text += ", minReplicas is " + std::to_string(spec.min_replicas);
  return text;
}

std::optional<Target> choose(const Pass& pass, const api::ScalingStatus& scaling) {
  if (pass.seen.demand.empty() || pass.now - pass.seen.demand.back().at > kFresh)
    return std::nullopt;
  const auto& spec = pass.spec.workers;
  const auto up = wanted_over(pass, scaling, spec.autoscaling->up_window);
  const auto down = wanted_over(pass, scaling, spec.autoscaling->down_window);
  int target = spec.replicas;
  if (up && up->least > target) {
    target = up->least;
  } else if (down && down->most < target) {
    target = down->most;
  } else {
    return std::nullopt;
  }
  return Target{target, describe(pass, pass.seen.demand.back())};
}

void stop_scaling(Pass& pass) {
  pass.status().scaling.reset();
  if (is_true(pass.plan.status, api::kConditionScalingContested))
    set_condition(pass, api::kConditionScalingContested, false,
                  {"NotAutoscaled", "spec.workers.autoscaling is absent"});
}

}  // namespace

bool autoscale(Pass& pass) {
  const auto& spec = pass.spec.workers;
  auto& scaling = pass.status().scaling;
  if (!spec.autoscaling || !spec.max_replicas) {
    stop_scaling(pass);
    return false;
  }
  if (!scaling) {
    scaling = api::ScalingStatus{.replicas = spec.replicas, .changed_time = pass.now};
    scaling->reason = workers(spec.replicas) + " as the job was given";
  }
  follow_spec(pass, *scaling);
  const bool runs = is_true(pass.plan.status, api::kConditionRunning);
  if (!runs || scaling->former || is_paused(pass, *scaling)) return false;
  const auto target = choose(pass, *scaling);
  if (!target) return false;
  pass.plan.actions.clear();
  scaling->former = spec.replicas;
  scaling->replicas = target->replicas;
  scaling->desired = pass.seen.demand.back().desired;
  scaling->changed_time = pass.now;
  scaling->reason = target->reason;
  pass.event(target->replicas > spec.replicas ? "ScalingUp" : "ScalingDown",
             "from " + workers(spec.replicas) + " to " + std::to_string(target->replicas) + ": " +
                 target->reason);
  pass.again_at(pass.now);
  return true;
}

}  // namespace outrigger::controller

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "operator/objects/pod.h"
#include "operator/objects/workload.h"
#include "operator/policy/images.h"
#include "operator/policy/pods.h"
#include "operator/policy/queue.h"
#include "operator/policy/roles.h"

namespace outrigger::controller {
namespace {

using std::chrono::seconds;

constexpr seconds kFirstBackOff{1};
constexpr seconds kLongestBackOff{300};
// A worker that lived so long did its work; its failure begins a new count.
constexpr seconds kGoodLife{600};

seconds back_off(int failures) {
  seconds wait = kFirstBackOff;
  for (int i = 1; i < failures && wait < kLongestBackOff; ++i) wait *= 2;
  return std::min(wait, kLongestBackOff);
}

/// What the last pod of an index leaves to its successor.
struct Inheritance {
  int failures = 0;
  std::optional<api::Time> not_before;
};

Inheritance inherit(const Pod& last, api::Time now) {
  if (is_disrupted(last) || last.deleting) return {last.failures, std::nullopt};
  const api::Time ended = std::min(ended_at(last, now), now);
  const bool lived_well = last.started && ended - *last.started >= kGoodLife;
  const int failures = lived_well ? 1 : last.failures + 1;
  return {failures, ended + back_off(failures)};
}

/// The pods of one index, by number.
struct Index {
  std::vector<const Pod*> living;
  std::vector<const Pod*> over;
};

std::map<int, Index> by_index(const Pass& pass) {
  std::map<int, Index> all;
  for (const Pod* pod : own_pods(pass, api::Role::kWorker)) {
    if (is_over(*pod)) {
      all[pod->index].over.push_back(pod);
    } else if (is_living(*pod)) {
      all[pod->index].living.push_back(pod);
    }
  }
  return all;
}

void scale_down(Pass& pass) {
  const int allowed = allowed_workers(pass);
  auto workers = own_pods(pass, api::Role::kWorker);
  std::reverse(workers.begin(), workers.end());
  for (const Pod* pod : workers) {
    if (pod->index >= allowed)
      pass.remove(*pod, "there are to be " + std::to_string(allowed) + " workers");
  }
}

void clean(Pass& pass, const Index& pods) {
  for (size_t i = 1; i < pods.living.size(); ++i)
    pass.remove(*pods.living[i], "another worker has its index");
  const bool replaced = !pods.living.empty();
  for (size_t i = 0; i < pods.over.size(); ++i) {
    const Pod& pod = *pods.over[i];
    const bool newest = i + 1 == pods.over.size();
    if (!newest) {
      pass.remove(pod, "a newer pod has its index");
    } else if (replaced && (is_done(pod) || is_disrupted(pod))) {
      pass.remove(pod, "it is replaced");
    }
  }
}

void make(Pass& pass, int index, const Index& pods) {
  Inheritance from;
  if (!pods.over.empty()) from = inherit(*pods.over.back(), pass.now);
  if (from.not_before && *from.not_before > pass.now) return pass.again_at(*from.not_before);
  PodOrder order;
  order.place = {api::Role::kWorker, index, next_number(pass, api::Role::kWorker, index)};
  order.attempt = pass.plan.status.execution_attempts;
  order.failures = from.failures;
  order.image = image_for(pass, api::Role::kWorker);
  Json pod = build_pod(pass.seen.job, order, pass.options);
  place_pod(pod, placement_of(pass, api::Role::kWorker));
  pass.create(ObjectKind::kPod, std::move(pod));
}

}  // namespace

void keep_workers(Pass& pass) {
  scale_down(pass);
  const auto refused = refused_until(pass, api::Role::kWorker);
  const auto all = by_index(pass);
  const Index none;
  for (int index = 0; index < allowed_workers(pass); ++index) {
    const auto at = all.find(index);
    const Index& pods = at == all.end() ? none : at->second;
    clean(pass, pods);
    if (!pods.living.empty()) continue;
    if (refused) {
      pass.again_at(*refused);
    } else {
      make(pass, index, pods);
    }
  }
}

}  // namespace outrigger::controller

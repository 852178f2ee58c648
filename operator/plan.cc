#include "operator/plan.h"

#include "api/names.h"
#include "kube/object/json.h"
#include "operator/policy/conditions.h"
#include "operator/policy/ends.h"
#include "operator/policy/images.h"
#include "operator/policy/lifecycle.h"
#include "operator/policy/pass.h"
#include "operator/policy/progress.h"
#include "operator/policy/queue.h"
#include "operator/policy/restarts.h"
#include "operator/policy/roles.h"
#include "operator/policy/summary.h"

namespace outrigger::controller {
namespace {

// The first that has something to say ends the pass: its word goes into the status before anything
// is done.
bool decide(Pass& pass) {
  if (refuse(pass)) return true;
  if (hold_of(pass)) return false;
  begin_first(pass);
  return resume(pass) || fail_by_deadline(pass) || restart(pass) || autoscale(pass);
}

void keep(Pass& pass) {
  if (const auto why = hold_of(pass)) {
    suspend(pass, *why);
    keep_place(pass);
    if (!hold_of(pass)) pass.plan.unfinished = true;  // it was resumed before its last pod was gone
    return;
  }
  stop_suspending(pass);
  keep_children(pass);
  keep_servers(pass);
  keep_workers(pass);
  keep_secret(pass);
  pin_images(pass);
  pass.all_is_planned = true;
  tell_pods(pass);
  keep_place(pass);
}

void go_on(Pass& pass) {
  if (has_begun_untold(pass)) begin_first(pass);
  const bool told = take_last_words(pass);
  if (complete(pass)) {  // a job that is done needs no place any more
    pass.plan.unfinished = true;
    return;
  }
  if (is_place_unknown(pass)) return pass.again_at(pass.now + std::chrono::seconds(5));
  if (!told) take_report(pass);
  if (decide(pass)) {
    pass.plan.unfinished = true;
  } else {
    keep(pass);
    remove_from_dead_nodes(pass);
  }
}

// What an object is known by.
Json head_of(Json& object) {
  Json head{{"kind", object.value("kind", "")}, {"metadata", Json::object()}};
  for (const char* part : {"name", "namespace", "labels"}) {
    const auto found = object["metadata"].find(part);
    if (found != object["metadata"].end()) head["metadata"][part] = std::move(*found);
  }
  const auto spec = object.find("spec");
  if (spec == object.end()) return head;
  if (const auto node = spec->find("nodeName"); node != spec->end())
    head["spec"]["nodeName"] = std::move(*node);
  return head;
}

}  // namespace

Create::Create(ObjectKind what, Json object) : kind(what), text(kube::to_text(object)) {
  head = head_of(object);
}

Plan plan(const Observed& seen, const Options& options, api::Time now) {
  Pass pass(seen, options, now);
  if (seen.job.spec.managed_by != api::kManagedByOperator) return std::move(pass.plan);
  if (seen.job.metadata.deletion_time) return std::move(pass.plan);  // the collector's turn
  if (is_finished(pass.status())) {
    give_up_place(pass);
    after_the_end(pass);
    remove_from_dead_nodes(pass);
  } else {
    go_on(pass);
  }
  tell_numbers(pass);
  return std::move(pass.plan);
}

}  // namespace outrigger::controller

#include "kube/control/lease.h"

#include "kube/json_fields.h"

namespace outrigger::kube {

const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};

namespace {

int number_at(const Json& object, const char* name) {
  const Json& value = at(object, name);
  return value.is_number_integer() ? value.get<int>() : 0;
}

}  // namespace

LeaseRecord read_lease(const Json& lease) {
  LeaseRecord record;
  const Json& spec = at(lease, "spec");
  record.holder = text_at(spec, "holderIdentity");
  record.duration = std::chrono::seconds(number_at(spec, "leaseDurationSeconds"));
  record.acquire_time = text_at(spec, "acquireTime");
  record.renew_time = text_at(spec, "renewTime");
  record.transitions = number_at(spec, "leaseTransitions");
  return record;
}

void write_lease(Json& lease, const ObjectKey& key, const LeaseRecord& record) {
  lease["apiVersion"] = kLeases.api_version();
  lease["kind"] = kLeases.kind;
  lease["metadata"]["namespace"] = key.ns;
  lease["metadata"]["name"] = key.name;
  Json& spec = lease["spec"];
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] = record.duration.count();
  spec["acquireTime"] = record.acquire_time;
  spec["renewTime"] = record.renew_time;
  spec["leaseTransitions"] = record.transitions;
}

LeaseRecord claimed(const LeaseRecord& former, const Claim& claim) {
  LeaseRecord record = former;
  record.duration = claim.duration;
  record.renew_time = format_micro_time(claim.now);
  if (former.holder != claim.identity) {
    record.holder = claim.identity;
    record.acquire_time = record.renew_time;
    // As client-go counts: from the second holder on.
    if (!former.renew_time.empty()) ++record.transitions;
  }
  return record;
}

LeaseRecord released(const LeaseRecord& former, Timestamp now) {
  LeaseRecord record = former;
  record.holder.clear();
  record.duration = std::chrono::seconds(1);  // 0 is not valid
  record.renew_time = record.acquire_time = format_micro_time(now);
  return record;
}

}  // namespace outrigger::kube

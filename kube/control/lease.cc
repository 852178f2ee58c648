#include "kube/control/lease.h"

namespace outrigger::kube {

const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};

namespace {

std::string text_at(const Json& map, const char* name) {
  const auto found = map.find(name);
  return found != map.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int number_at(const Json& map, const char* name) {
  const auto found = map.find(name);
  return found != map.end() && found->is_number_integer() ? found->get<int>() : 0;
}

}  // namespace

LeaseRecord read_lease(const Json& lease) {
  LeaseRecord record;
  const auto spec = lease.is_object() ? lease.find("spec") : lease.end();
  if (!lease.is_object() || spec == lease.end() || !spec->is_object()) return record;
  record.holder = text_at(*spec, "holderIdentity");
  record.duration = std::chrono::seconds(number_at(*spec, "leaseDurationSeconds"));
  record.acquire_time = text_at(*spec, "acquireTime");
  record.renew_time = text_at(*spec, "renewTime");
  record.transitions = number_at(*spec, "leaseTransitions");
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

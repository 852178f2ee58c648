#pragma once

#include <chrono>
#include <string>

#include "kube/object/json.h"
#include "kube/object/resource.h"
#include "kube/object/timestamp.h"

namespace outrigger::kube {

/// coordination.k8s.io/v1 Lease.
extern const Resource kLeases;

/// What a Lease says about who leads.
struct LeaseRecord {
  std::string holder;  // empty: nobody
  std::chrono::seconds duration{0};
  std::string acquire_time;  // as written; for people
  std::string renew_time;
  int transitions = 0;

  bool operator==(const LeaseRecord&) const = default;
};

/// What is absent or malformed reads as nothing.
LeaseRecord read_lease(const Json& lease);
/// Writes the record into an object of that name, leaving what else it has.
void write_lease(Json& lease, const ObjectKey& key, const LeaseRecord& record);

/// The record after `identity` took or renewed the lease.
struct Claim {
  std::string identity;
  std::chrono::seconds duration;
  Timestamp now;
};
LeaseRecord claimed(const LeaseRecord& former, const Claim& claim);
/// The record after its holder gave it back: anyone may take it at once.
LeaseRecord released(const LeaseRecord& former, Timestamp now);

}  // namespace outrigger::kube

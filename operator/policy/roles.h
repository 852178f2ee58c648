#pragma once

#include "operator/policy/pass.h"

namespace outrigger::controller {

/// Service, ConfigMap, Secret and NetworkPolicy: made where they are missing, before any pod. Jobs'
/// files of former attempts go once none of their pods is left.
void keep_children(Pass& pass);

/// After all that makes pods: those that are made long after the Secret of their attempt may find
/// it deleted, which nobody sees, and would wait for it for ever. So it is made again before them;
/// where it is there yet, that changes nothing.
void keep_secret(Pass& pass);

/// Servers: those of former attempts are deleted, but for the one that failed last, which holds
/// nothing but its logs; once they have ended, or their node is dead, one of the current attempt is
/// made for each index.
void keep_servers(Pass& pass);

/// Workers: one for each index below spec.workers.replicas. The others are deleted, the highest
/// index first; one that failed is replaced after a back-off of its index, from 1 s to 5 min, and
/// kept to look at until its successor has failed too.
void keep_workers(Pass& pass);

/// Pods that should long be gone are taken out of the API: a server where its node does not exist,
/// or is tainted out-of-service, since nobody else can say that it no longer writes to a volume; a
/// worker, which writes nothing, anywhere.
void remove_from_dead_nodes(Pass& pass);

/// When a pod of that role may be made again after the API server refused it; nothing: now.
std::optional<api::Time> refused_until(const Pass& pass, api::Role role);

}  // namespace outrigger::controller

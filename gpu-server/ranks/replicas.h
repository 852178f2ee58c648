#pragma once

#include <memory>
#include <stop_token>

#include "api/launch.h"
#include "api/training_job.h"
#include "training/trainer/trainer.h"
#include "transport/endpoint.h"

namespace outrigger::gpu_server {

/// Meets the other replicas of the job: rank 0 at its own port, the others by dialling it. Null
/// where there is one. Waits for all of them for as long as the job may take to start; Cancelled on
/// a stop. A rank that is lost makes the sums fail with Failure(kPeerLost). `listener` must outlive
/// what is returned.
std::unique_ptr<training::Reducer> meet_replicas(const api::Launch& launch,
                                                 const api::TrainingJob& job,
                                                 transport::Listener& listener,
                                                 const std::stop_token& stop);

}  // namespace outrigger::gpu_server

#pragma once

#include <memory>
#include <string>

#include "api/launch.h"
#include "api/training_job.h"
#include "common/memory_source.h"
#include "transport/endpoint.h"

namespace outrigger::gpu_server {

/// The file in a run's folder in which a rank writes down its ports.
std::string endpoints_name(int rank);

/// Opens the port at which workers and other ranks join, and writes it down for people and scripts:
/// server.json (server-RANK.json) in the run's folder, which is made. Throws IoError where the port
/// is taken. Links receive into `memory`; null: ordinary memory.
std::unique_ptr<transport::Listener> open_listener(const api::Launch& launch,
                                                   const api::TrainingJob& job,
                                                   std::shared_ptr<MemorySource> memory);

/// Writes the ports down again, now with that of the status pages.
void write_endpoints(const api::Launch& launch, const api::TrainingJob& job, int port,
                     int status_port);

}  // namespace outrigger::gpu_server

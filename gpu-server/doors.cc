#include "gpu-server/doors.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "common/file.h"
#include "gpu-server/links/tokens.h"
#include "worker/work/emulation.h"

namespace outrigger::gpu_server {

std::string endpoints_name(int rank) {
  return rank == 0 ? "server.json" : "server-" + std::to_string(rank) + ".json";
}

namespace {

void write(const api::Launch& launch, const api::TrainingJob& job, nlohmann::json endpoints) {
  endpoints["rank"] = launch.rank;
  write_file_atomically(api::run_directory(job, launch) / endpoints_name(launch.rank),
                        endpoints.dump() + "\n");
}

}  // namespace

std::unique_ptr<transport::Listener> open_listener(const api::Launch& launch,
                                                   const api::TrainingJob& job,
                                                   std::shared_ptr<MemorySource> memory) {
  const auto directory = api::run_directory(job, launch);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError("making the folder " + directory.string() + ": " + error.message());
  const int port = launch.port.value_or(job.spec.network.port);
  transport::ListenerOptions options{.link = worker::link_options(launch)};
  options.link.memory = std::move(memory);
  auto listener = std::make_unique<transport::Listener>(
      transport::Address{launch.listen, static_cast<uint16_t>(port)}, join_token(launch, directory),
      options);
  // Other ranks meet here before this rank has status pages.
  if (launch.replicas > 1) write(launch, job, {{"port", listener->port()}});
  return listener;
}

void write_endpoints(const api::Launch& launch, const api::TrainingJob& job, int port,
                     int status_port) {
  write(launch, job, {{"port", port}, {"statusPort", status_port}});
}

}  // namespace outrigger::gpu_server

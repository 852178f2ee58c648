#include "gpu-server/server.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/last_words.h"
#include "api/parse.h"
#include "gpu-server/device/device.h"
#include "gpu-server/doors.h"
#include "gpu-server/ranks/replicas.h"
#include "gpu-server/run.h"
#include "gpu-server/run_lock.h"

namespace outrigger::gpu_server {

namespace {

/// Runs and remembers how far it got, for the last words.
api::ExitCode train(const api::Launch& launch, const std::stop_token& stop, std::string& progress) {
  api::TrainingJob job = api::load_training_job(launch.job_file);
  const RunLock alone(job, launch);  // before anything is written
  auto device = open_device(launch, job);
  auto listener = open_listener(launch, job, device.backend->input_memory());
  const auto reducer = meet_replicas(launch, job, *listener, stop);
  Run run(launch, std::move(job), stop, std::move(listener), reducer.get(), std::move(device));
  try {
    const api::ExitCode code = run.train();
    progress = run.progress();
    return code;
  } catch (...) {
    progress = run.progress();
    throw;
  }
}

}  // namespace

api::ExitCode run_server(const api::Launch& launch, const std::stop_token& stop) {
  api::LastWords words;
  std::string progress;
  const auto say = [&] {
    if (!progress.empty()) words.progress = nlohmann::json::parse(progress);
    if (launch.termination_file) api::write_last_words(*launch.termination_file, words);
  };
  try {
    words.code = translate_device_errors([&] { return train(launch, stop, progress); });
    words.message = api::info(words.code).text;
    say();
    return words.code;
  } catch (const std::exception& error) {
    words.code = api::exit_code_of(error);
    words.message = error.what();
    say();
    throw;
  }
}

}  // namespace outrigger::gpu_server

#include "operator/policy/progress.h"

#include <algorithm>

#include "api/last_words.h"
#include "api/names.h"
#include "operator/objects/pod.h"
#include "operator/policy/conditions.h"
#include "operator/policy/pods.h"
#include "operator/read_report.h"

namespace outrigger::controller {
namespace {

constexpr std::chrono::seconds kBetweenWrites{30};
constexpr int kStarvedPercent = 20;
constexpr int kFedPercent = 10;

std::string run_folder(const Pass& pass, const std::string& path) {
  return path + (path.ends_with('/') ? "" : "/") + pass.job_name();
}

std::string checkpoint_path(const Pass& pass, int64_t step) {
  return run_folder(pass, checkpoint_folder(pass)) + "/" + std::string(api::kCheckpointPrefix) +
         std::to_string(step);
}

void put_progress(Pass& pass, api::ProgressStatus progress) {
  progress.updated_time = pass.now;
  pass.status().progress = std::move(progress);
}

void put_checkpoint(Pass& pass, std::optional<int64_t> step) {
  auto& checkpoint = pass.status().checkpoint;
  if (!step || (checkpoint && checkpoint->step == *step)) return;
  checkpoint = api::CheckpointStatus{*step, checkpoint_path(pass, *step), pass.now};
}

bool shows(const api::TrainingJobStatus& status, api::ProgressStatus progress) {
  if (!status.progress) return false;
  progress.updated_time = status.progress->updated_time;
  return progress == *status.progress;
}

bool is_news(const Pass& pass, const ServerReport& report) {
  const auto& status = pass.plan.status;
  if (!status.progress || !status.progress->updated_time) return true;
  if (status.split && report.split && status.split->plan != report.split->plan) return true;
  const auto& before = *status.progress;
  if (before.step == 0 && report.progress.step > 0) return true;
  if (before.percent != report.progress.percent || before.epoch != report.progress.epoch)
    return true;
  return before.step != report.progress.step && pass.now - *before.updated_time >= kBetweenWrites;
}

// Set at one bound and cleared at another, so that it does not flap between them.
void tell_starvation(Pass& pass, const api::SplitStatus& split) {
  const bool was = is_true(pass.plan.status, api::kConditionInputStarved);
  const bool is = split.stall_percent >= (was ? kFedPercent : kStarvedPercent);
  if (!is && find_condition(pass.plan.status, api::kConditionInputStarved) == nullptr) return;
  if (is == was) return;
  set_condition(
      pass, api::kConditionInputStarved, is,
      {is ? "DeviceWaits" : "DeviceIsFed",
       "the server's device waits for " + std::to_string(split.stall_percent) + " % of its time"});
}

}  // namespace

void tell_output(Pass& pass) {
  auto& status = pass.status();
  if (status.output == std::nullopt && status.start_time)
    status.output = api::OutputStatus{run_folder(pass, pass.spec.output.path)};
}

const std::string& checkpoint_folder(const Pass& pass) {
  const auto& folder = pass.spec.checkpoint.path;
  return folder ? *folder : pass.spec.output.path;
}

void forget_lost_checkpoint(Pass& pass) {
  auto& checkpoint = pass.status().checkpoint;
  if (checkpoint && !outlives_server_pod(pass.seen.job, checkpoint_folder(pass)))
    checkpoint.reset();
}

void take_report(Pass& pass) {
  auto& status = pass.status();
  // Once that server is gone its last words were later than its page.
  const Pod* server = running_first_server(pass.seen.pods, pass.job_uid());
  if (!pass.seen.report || server == nullptr || server->attempt != status.execution_attempts)
    return;
  const ServerReport& report = *pass.seen.report;
  put_checkpoint(pass, report.checkpoint_step);
  if (!is_news(pass, report)) return;
  put_progress(pass, report.progress);
  if (status.scaling && !pass.seen.demand.empty())
    status.scaling->desired = pass.seen.demand.back().desired;
  if (!report.split) return;
  status.split = report.split;
  tell_starvation(pass, *report.split);
}

bool take_last_words(Pass& pass) {
  bool told = false;
  for (const Pod* pod : current_servers(pass)) {
    if (pod->index != 0 || !pod->ended) continue;
    const auto words = api::parse_last_words(pod->ended->message);
    auto last = words ? read_last_progress(words->progress) : std::nullopt;
    if (!last) continue;
    told = true;
    put_checkpoint(pass, last->checkpoint_step);
    if (!shows(pass.plan.status, last->progress)) put_progress(pass, std::move(last->progress));
  }
  return told;
}

}  // namespace outrigger::controller

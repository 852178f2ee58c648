#include "operator/read_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "api/enums.h"
#include "kube/json_fields.h"

namespace outrigger::controller {
namespace {

constexpr double kMost = 9e15;
constexpr int64_t kMostWorkers = 1'000'000;
constexpr size_t kLongestRefusal = 900;  // with what is told besides within an event

std::optional<int64_t> number(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  const double value = at->get<double>();
  if (!std::isfinite(value)) return std::nullopt;
  return static_cast<int64_t>(std::clamp(value, 0.0, kMost));
}

int percent(const Json& object, const char* name) {
  return static_cast<int>(std::min<int64_t>(100, number(object, name).value_or(0)));
}

std::string text(const Json& object, const char* name, size_t longest) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>().substr(0, longest)
                                               : std::string();
}

void add_metric(const Json& object, const char* from, const char* name,
                api::ProgressStatus& progress) {
  const auto at = object.find(from);
  if (at == object.end() || !at->is_number()) return;
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.4g", at->get<double>());
  progress.metrics.push_back({name, digits.data()});
}

std::optional<api::SplitStatus> read_split(const Json& page) {
  const auto at = page.find("split");
  if (at == page.end() || !at->is_object()) return std::nullopt;
  api::SplitStatus split;
  split.plan = number(*at, "plan").value_or(0);
  split.cut = text(*at, "cut", 128);
  split.share_percent = percent(*at, "sharePercent");
  if (at->contains("localInputPercent"))
    split.local_input_percent = percent(*at, "localInputPercent");
  if (at->contains("serverPercent")) split.server_percent = percent(*at, "serverPercent");
  split.stall_percent = percent(*at, "stallPercent");
  const std::string cause = text(*at, "stallCause", 64);
  bool known = cause.empty();
  for (const auto& row : api::EnumNames<api::StallCause>::kAll) {
    if (row.name != cause) continue;
    split.stall_cause = row.value;
    known = true;
  }
  split.reason = known ? text(*at, "reason", 1024) : "the device waits for: " + cause;
  return split;
}

std::optional<api::ProgressStatus> read_progress(const Json& progress) {
  if (!progress.is_object() || !number(progress, "step")) return std::nullopt;
  api::ProgressStatus read;
  read.step = *number(progress, "step");
  read.percent = percent(progress, "percent");
  read.epoch = number(progress, "epoch");
  read.total_steps = number(progress, "totalSteps");
  read.samples_per_second = number(progress, "samplesPerSecond");
  read.remaining_seconds = number(progress, "remainingSeconds");
  add_metric(progress, "loss", "loss", read);
  add_metric(progress, "accuracy", "accuracy", read);
  return read;
}

// Progress, and beside it or in it what evaluations and checkpoints told.
std::optional<ServerReport> read_results(const Json& progress, const Json& beside) {
  auto read = read_progress(progress);
  if (!read) return std::nullopt;
  ServerReport report;
  report.progress = *std::move(read);
  const Json& evaluation = kube::at(beside, "evaluation");
  add_metric(evaluation, "accuracy", "validationAccuracy", report.progress);
  add_metric(evaluation, "verification", "verification", report.progress);
  add_metric(evaluation, "identification", "identification", report.progress);
  report.checkpoint_step = number(kube::at(beside, "checkpoint"), "step");
  return report;
}

}  // namespace

std::optional<ServerReport> read_last_progress(const Json& progress) {
  return read_results(progress, progress);
}

std::optional<ServerReport> read_report(const std::string& page_text) {
  const Json page = Json::parse(page_text, nullptr, false);
  if (!page.is_object() || !page.contains("progress")) return std::nullopt;
  auto report = read_results(page["progress"], page);
  if (!report) return std::nullopt;
  report->split = read_split(page);
  const auto desired = number(kube::at(page, "workers"), "desired");
  if (desired) report->desired_workers = static_cast<int>(std::min(*desired, kMostWorkers));
  const Json& edits = kube::at(page, "edits");
  report->told_generation = number(edits, "generation");
  report->edit_refused = text(edits, "refused", kLongestRefusal);
  return report;
}

}  // namespace outrigger::controller

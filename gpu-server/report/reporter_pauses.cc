#include <algorithm>
#include <utility>

#include "common/log.h"
#include "gpu-server/report/instruments.h"
#include "gpu-server/report/report_json.h"
#include "gpu-server/report/reporter.h"

// What a run tells of evaluations and checkpoints, for which training may stand still.
namespace outrigger::gpu_server {
namespace {

using nlohmann::json;

std::string result_text(const training::EvaluationResult& result) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (result.accuracy) add(fmt::format("accuracy {:.2f} %", 100 * *result.accuracy));
  if (result.loss) add(fmt::format("loss {:.4f}", *result.loss));
  if (result.verification) add(fmt::format("verification {:.2f} %", 100 * *result.verification));
  if (result.identification)
    add(fmt::format("identification {:.2f} %", 100 * *result.identification));
  return text.empty() ? "images: nothing could be measured" : text;
}

}  // namespace

Duration Reporter::stood_still(Duration took) {
  const TimePoint now = clock_.now();
  return std::min(took, now - std::exchange(stands_since_, now));
}

void Reporter::show_time_left() {
  progress_.time_left = time_left_.now();
  const std::scoped_lock lock(mutex_);
  shown_.time_left = progress_.time_left;
}

void Reporter::evaluation(uint64_t step, const training::EvaluationResult& result, Duration took,
                          const char* by) {
  json line = to_json(result);
  line.update({{"type", "evaluation"},
               {"step", step},
               {"samples", result.samples},
               {"broken", result.broken},
               {"notFinite", result.not_finite},
               {"seconds", to_seconds(took)},
               {"by", by}});
  metrics_file_.append(text_of(line));
  log::info("step {}: held-out {} ({} images, by the {})", step, result_text(result),
            result.samples, by);
  if (result.not_finite > 0)
    log::warning(
        "step {}: the network makes no numbers of {} of {} held-out images; they count as not "
        "recognised, and what is computed of all images is left out",
        step, result.not_finite, result.samples);
  instruments_->evaluation(result);
  time_left_.evaluated(step, stood_still(took));
  show_time_left();
  const std::scoped_lock lock(mutex_);
  evaluated_ = result;
}

void Reporter::checkpoint(uint64_t step, const std::filesystem::path& path, Duration took) {
  metrics_file_.append(text_of({{"type", "checkpoint"},
                                {"step", step},
                                {"path", path.string()},
                                {"seconds", to_seconds(took)}}));
  time_left_.saved(step, stood_still(took));
  show_time_left();
  const std::scoped_lock lock(mutex_);
  checkpointed_ = step;
}

}  // namespace outrigger::gpu_server

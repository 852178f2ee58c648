#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "common/layer_seconds.h"
#include "feed/plan.h"
#include "feed/stall.h"
#include "gpu-server/planning/worker_book.h"
#include "training/evaluation/evaluation.h"
#include "training/planner/model/costs.h"

/// What a run tells, as it stands in /status and metrics.jsonl.
namespace outrigger::gpu_server {

/// One line. Paths and names of workers may be any bytes: what is not UTF-8 is replaced, rather
/// than refused.
std::string text_of(const nlohmann::json& told);
/// A text of somebody else's, likewise.
std::string readable(const std::string& text);

nlohmann::json to_json(const feed::Plan& plan, uint32_t micro_batches);
nlohmann::json to_json(const feed::StallTimes& times);
nlohmann::json to_json(const WorkerMeasures& worker);
nlohmann::json to_json(const training::LayerCosts& layer);
/// A list of [forward, backward].
nlohmann::json to_json(std::span<const LayerSeconds> layers);
/// What was measured, without of how many images; the rest is left out.
nlohmann::json to_json(const training::EvaluationResult& result);

}  // namespace outrigger::gpu_server

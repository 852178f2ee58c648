#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "feed/plan.h"
#include "feed/stall.h"
#include "gpu-server/planning/worker_book.h"
#include "training/evaluation/evaluation.h"
#include "training/planner/model/costs.h"

/// What a run tells, as it stands in /status and metrics.jsonl.
namespace outrigger::gpu_server {

nlohmann::json to_json(const feed::Plan& plan, uint32_t micro_batches);
nlohmann::json to_json(const feed::StallTimes& times);
nlohmann::json to_json(const WorkerMeasures& worker);
nlohmann::json to_json(const training::LayerCosts& layer);
/// What was measured, without how many images.
nlohmann::json to_json(const training::EvaluationResult& result);

}  // namespace outrigger::gpu_server

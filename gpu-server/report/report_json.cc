#include "gpu-server/report/report_json.h"

#include <cmath>

namespace outrigger::gpu_server {

using nlohmann::json;

std::string text_of(const json& told) {
  return told.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string readable(const std::string& text) {
  return json::parse(text_of(text)).get<std::string>();
}

json to_json(const feed::Plan& plan, uint32_t micro_batches) {
  return {{"plan", plan.number},
          {"cut", plan.cut_name},
          {"stemsAway", plan.stems_away},
          {"microBatches", micro_batches},
          {"sharePercent", 100 * plan.stems_away / micro_batches},
          {"localInputPercent", plan.local_percent(micro_batches)},
          {"serverPercent", plan.server_percent(micro_batches)},
          {"activations", to_string(plan.activations)},
          {"gradients", to_string(plan.gradients)}};
}

json to_json(const feed::StallTimes& times) {
  json told = json::object();
  for (size_t i = 0; i < feed::kStallCauses; ++i)
    told[feed::to_string(static_cast<feed::StallCause>(i))] = times[i];
  return told;
}

json to_json(const WorkerMeasures& worker) {
  json stems = json::array();
  for (const auto& [cut, stem] : worker.stems)
    stems.push_back(
        {{"layers", cut}, {"forwardSeconds", stem.forward}, {"backwardSeconds", stem.backward}});
  return {{"name", worker.name},
          {"cores", worker.cores},
          {"microBatches", worker.micro_batches},
          {"stemGradients", worker.stem_gradients},
          {"passSeconds", worker.pass_seconds},
          {"firstDecodeSeconds", worker.first_decode},
          {"decodeSeconds", worker.decode},
          {"readSeconds", worker.read},
          {"stems", stems},
          {"bytesPerSecond", worker.bytes_per_second},
          {"latencySeconds", worker.latency}};
}

json to_json(const training::LayerCosts& layer) {
  return {{"name", layer.name},
          {"forwardSeconds", layer.forward},
          {"backwardSeconds", layer.backward},
          {"keptBytes", layer.kept},
          {"weightBytes", layer.weights}};
}

json to_json(std::span<const LayerSeconds> layers) {
  json list = json::array();
  const auto told = [](float seconds) { return std::round(1e8 * seconds) / 1e8; };
  for (const LayerSeconds& layer : layers)
    list.push_back({told(layer.forward), told(layer.backward)});
  return list;
}

json to_json(const training::EvaluationResult& result) {
  json told = json::object();
  if (result.accuracy) told["accuracy"] = *result.accuracy;
  if (result.loss) told["loss"] = *result.loss;
  if (result.verification) told["verification"] = *result.verification;
  if (result.identification) told["identification"] = *result.identification;
  return told;
}

}  // namespace outrigger::gpu_server

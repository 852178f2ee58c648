#include <nlohmann/json.hpp>

#include "cli/sweep/sweep.h"
#include "common/error.h"

namespace outrigger::cli {

using nlohmann::json;

std::string to_json(const Sweep& sweep) {
  json points = json::array();
  for (const SweepPoint& one : sweep.points) {
    json point{{"sharePercent", one.share_percent},
               {"stemsAway", one.away},
               {"predictedImagesPerSecond", one.predicted},
               {"amdahlImagesPerSecond", one.bound}};
    if (one.left_out.empty()) {
      point["measuredImagesPerSecond"] = one.measured;
      point["stallPercent"] = one.stall_percent;
    } else {
      point["leftOut"] = one.left_out;
    }
    points.push_back(point);
  }
  return json{{"cut", sweep.cut},
              {"workers", sweep.workers},
              {"stemPercent", 100 * sweep.stem_part},
              {"points", points}}
      .dump();
}

Sweep read_sweep(const std::string& text, const std::string& name) {
  try {
    const json told = json::parse(text);
    Sweep sweep{.cut = told.at("cut").get<std::string>(),
                .stem_part = told.at("stemPercent").get<double>() / 100,
                .workers = told.at("workers").get<int>()};
    for (const json& one : told.at("points")) {
      sweep.points.push_back({.share_percent = one.at("sharePercent").get<int>(),
                              .away = one.at("stemsAway").get<uint32_t>(),
                              .measured = one.value("measuredImagesPerSecond", 0.0),
                              .predicted = one.at("predictedImagesPerSecond").get<double>(),
                              .bound = one.at("amdahlImagesPerSecond").get<double>(),
                              .stall_percent = one.value("stallPercent", 0.0),
                              .left_out = one.value("leftOut", "")});
    }
    return sweep;
  } catch (const json::exception& error) {
    throw InvalidInput(name + ": is no sweep: " + error.what());
  }
}

}  // namespace outrigger::cli

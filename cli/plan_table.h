#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "training/planner/profile.h"

namespace outrigger::cli {

/// What an hour of each machine costs, in whatever currency.
struct Prices {
  double server = 0;
  double worker = 0;  // of one
};

/// A job as this machine has measured it, and the machines that it is planned for.
struct PlannedJob {
  training::Profile profile;
  training::ServerRates server;
  std::vector<training::WorkerRates> workers;
  std::optional<Prices> prices;
};

/// The best share of every cut with rate, bytes, memory and, with prices, costs; what does not fit;
/// the choice; advice. Throws InvalidInput where no plan fits into the memory.
nlohmann::json plan_table(const PlannedJob& job);
/// The same for people, to standard output; with `layers` what each layer takes as well.
void print_plan_table(const nlohmann::json& told, bool layers);

/// "An epoch of 60000 images takes 5.2 min": as seconds, minutes or hours.
std::string duration_text(double seconds);

}  // namespace outrigger::cli

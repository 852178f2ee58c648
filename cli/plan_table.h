#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/wires.h"
#include "training/planner/model/profile.h"

namespace outrigger::cli {

/// What an hour of each machine costs, in whatever currency.
struct Prices {
  double server = 0;
  double worker = 0;  // of one
};

/// A job as this machine has measured it, and the machines that it is planned for. Ranks share the
/// workers out evenly: what is told of a rank is told of the one that has the fewest, for which the
/// others wait.
struct PlannedJob {
  training::Profile profile;
  training::ServerRates server;                // of a rank
  std::vector<training::WorkerRates> workers;  // of all ranks, alike
  int servers = 1;                             // that have a price: pods, of one rank or several
  Wires wires = {};
  NarrowedWork narrowed_work = {};   // none: as with these
  std::vector<std::string> remarks;  // on the job's split, for people
  std::optional<Prices> prices;
};

/// Whether `head`, `device_stem` and `optimizer` are seconds of a GPU, not of cores.
bool is_of_gpu(const training::JobCosts& costs);

/// Throws InvalidInput that names `field` where some ranks would have a worker and others none.
void check_workers(const char* field, size_t workers, uint32_t ranks);

/// The best share of every cut with rate, bytes, memory and, with prices, costs; which cuts have
/// none and why; the choice, which is the plan that the job fixes where it can be; advice. Throws
/// InvalidInput where no plan fits into the memory.
nlohmann::json plan_table(const PlannedJob& job);
/// The same for people, to standard output; with `layers` what each layer takes as well.
void print_plan_table(const nlohmann::json& told, bool layers);

/// "An epoch of 60000 images takes 5.2 min": as seconds, minutes or hours.
std::string duration_text(double seconds);

}  // namespace outrigger::cli

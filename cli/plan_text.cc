#include <algorithm>
#include <iostream>

#include "cli/plan_table.h"
#include "common/log.h"
#include "training/planner/search.h"

/// The table of `outrigger plan` for people.
namespace outrigger::cli {
namespace {

using nlohmann::json;

constexpr size_t kCutWidth = 20;
constexpr size_t kLayerWidth = 28;

/// Characters of a column of names, of which some are long.
size_t width_of(const json& rows, const char* field, size_t least) {
  size_t width = least;
  for (const json& row : rows)
    width = std::max(width, row[field].get_ref<const std::string&>().size());
  return width;
}

void print_row(const json& row, size_t width, bool chosen, bool prices) {
  std::cout << fmt::format(
      "{} {:<{}} {:>4}% {:>5.0f}% {:>4.0f}% {:>9.1f} {:>9.1f} {:>10.2f} {:>10.2f} {:>9.0f} "
      "{:>9.0f} {:>9.1f} "
      "{:>6.2f}x",
      chosen ? '>' : ' ', row["cut"].get<std::string>(), width, row["sharePercent"].get<int>(),
      row["serverPercent"].get<double>(), row["madeByServerPercent"].get<double>(),
      row["stemCoreMilliseconds"].get<double>(), row["headCoreMilliseconds"].get<double>(),
      row["bytesToServer"].get<double>() / 1e6, row["bytesToWorkers"].get<double>() / 1e6,
      row["serverMemory"]["total"].get<double>() / 1e6,
      row["workerMemory"]["total"].get<double>() / 1e6, row["imagesPerSecond"].get<double>(),
      row["timesUnsplit"].get<double>());
  if (prices) std::cout << fmt::format(" {:>10.4g}", row["epoch"]["cost"].get<double>());
  std::cout << "  " << row["bound"].get<std::string>() << "\n";
}

/// Who is planned for: "4 workers".
std::string workers_text(const json& told) {
  const auto workers = told["workers"].get<size_t>();
  const auto ranks = told["ranks"].get<size_t>();
  if (ranks == 1) return fmt::format("{} workers", workers);
  return fmt::format("{} workers for {} ranks (times, bytes and memory: of a rank that has {})",
                     workers, ranks, workers / ranks);
}

void print_cuts(const json& told, bool prices) {
  const size_t width = width_of(told["leftOut"], "cut", width_of(told["cuts"], "cut", kCutWidth));
  std::cout << fmt::format(
      "{} alone: {:.1f} images/s, bound by {}; decoding takes {:.1f} core-ms a "
      "micro-batch.\nWith {}, the best share of every cut:\n\n"
      "  {:<{}} {:>5} {:>6} {:>5} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9} {:>9} {:>7}{}  bound by\n",
      told["ranks"] == 1 ? "The server" : "The servers", told["imagesPerSecondAlone"].get<double>(),
      told["boundAlone"].get<std::string>(), told["decodeCoreMilliseconds"].get<double>(),
      workers_text(told), "cut", width, "share", "server", "local", "stem ms", "head ms", "MB up",
      "MB down", "server MB", "worker MB", "images/s", "times", prices ? " cost/epoch" : "");
  size_t index = 0;
  for (const json& row : told["cuts"])
    print_row(row, width, index++ == told["choice"].get<size_t>(), prices);
  for (const json& one : told["leftOut"])
    std::cout << fmt::format("  {:<{}} does not fit: {}\n", one["cut"].get<std::string>(), width,
                             one["why"].get<std::string>());
}

std::string parts_text(const json& memory) {
  std::string text;
  for (const auto& [name, bytes] : memory.items()) {
    if (name != "total")
      text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", name, bytes.get<double>() / 1e6);
  }
  return text;
}

/// Whether the job leaves a part of its split, as its profile calls it, to those who plan.
bool is_open(const json& told, const char* part) { return !told["profile"].contains(part); }

/// `next`: the rate of the next best to that of the choice.
const char* why_chosen(const json& told, const json& best, double next) {
  if (told["choiceIsFixed"].get<bool>()) return "the job fixes it; its step is";
  if (next <= 1) return "its step is the shortest,";
  const bool plain = best["stemsAway"] == 0 && best["localInputs"] == 0;
  return plain && next < 1 + training::PlannerOptions().margin
             ? "no other's step is shorter by 3 %; it is"
             : "its step is nearly the shortest, and slower workers disturb it less,";
}

/// What is chosen, why, and what it would cost to choose the next best.
void print_choice(const json& told) {
  const json& cuts = told["cuts"];
  const auto choice = told["choice"].get<size_t>();
  const json& best = cuts[choice];
  const json* next = nullptr;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (i == choice) continue;
    if (next == nullptr || cuts[i]["imagesPerSecond"] > (*next)["imagesPerSecond"]) next = &cuts[i];
  }
  const double of_next = next == nullptr ? 0
                                         : (*next)["imagesPerSecond"].get<double>() /
                                               best["imagesPerSecond"].get<double>();
  std::cout << fmt::format("\nThe choice is {}: {} bound by {}", best["plan"].get<std::string>(),
                           why_chosen(told, best, of_next), best["bound"].get<std::string>());
  if (next != nullptr)
    std::cout << fmt::format("; the next, {}, has {:.2f}x its rate, bound by {}",
                             (*next)["plan"].get<std::string>(), of_next,
                             (*next)["bound"].get<std::string>());
  std::cout << ".\nIts MB on the server: " << parts_text(best["serverMemory"]) << ".\n";
  if (told["workers"] > 0)
    std::cout << "And on a worker: " << parts_text(best["workerMemory"]) << ".\n";
}

void print_workers(const json& rows) {
  const size_t width = width_of(rows, "cut", kCutWidth);
  std::cout << fmt::format(
      "\nThe plan by the number of workers:\n\n  {:>7} {:<{}} {:>9} {:>12} {:>10}\n", "workers",
      "cut", width, "images/s", "epoch", "cost");
  for (const json& row : rows)
    std::cout << fmt::format(
        "  {:>7} {:<{}} {:>9.1f} {:>12} {:>10.4g}\n", row["workers"].get<size_t>(),
        row["cut"].get<std::string>(), width, row["imagesPerSecond"].get<double>(),
        duration_text(row["epoch"]["seconds"].get<double>()), row["epoch"]["cost"].get<double>());
}

/// What limits the job without workers, and `with` them.
std::string both_limits(const json& told, const std::string& with) {
  const auto alone = told["boundAlone"].get<std::string>();
  if (alone == with) return "with and without them the limit is " + with;
  return fmt::format("{} alone {} limited by {}, with workers by {}",
                     told["ranks"] == 1 ? "the server" : "the servers",
                     told["ranks"] == 1 ? "is" : "are", alone, with);
}

/// Whether workers pay, where that is a question.
void print_gain(const json& told, const json& best) {
  if (told["workers"] == 0) {
    std::cout << "\nThis is reckoned without workers: --workers N tells what N of them would bring "
                 "(--worker-cores, --link: what they are like).\n";
  } else if (best["timesUnsplit"].get<double>() < 1.02) {
    const bool open = is_open(told, "fixedCut") && is_open(told, "fixedAway");
    std::cout << "\nWorkers would not pay " << (open ? "here: " : "with the job's split: ")
              << both_limits(told, best["bound"].get<std::string>()) << ".\n";
  }
}

const char* what_run_does(const json& told) {
  if (told["fixed"].get<bool>()) return "`run` keeps to the plan that the job fixes.";
  return is_open(told, "fixedCut") ? "`run` goes on measuring and moves the cut."
                                   : "`run` goes on measuring and moves the share.";
}

/// Of a GPU's job only the layers of stems were timed.
void print_layers(const json& layers, bool of_stems) {
  const char* all = of_stems ? "all layers of stems" : "all";
  const size_t width = width_of(layers, "name", kLayerWidth);
  std::cout << fmt::format("\n  {:<{}} {:>11} {:>12} {:>12} {:>12}\n", "layer", width, "forward ms",
                           "backward ms", "kept MB", "weights MB");
  json sum{{"name", all}, {"forward", 0.0}, {"backward", 0.0}, {"kept", 0.0}, {"weights", 0.0}};
  const auto print = [width](const json& layer) {
    std::cout << fmt::format(
        "  {:<{}} {:>11.2f} {:>12.2f} {:>12.3f} {:>12.3f}\n", layer["name"].get<std::string>(),
        width, 1e3 * layer["forward"].get<double>(), 1e3 * layer["backward"].get<double>(),
        layer["kept"].get<double>() / 1e6, layer["weights"].get<double>() / 1e6);
  };
  for (const json& layer : layers) {
    print(layer);
    for (const char* field : {"forward", "backward", "kept", "weights"})
      sum[field] = sum[field].get<double>() + layer[field].get<double>();
  }
  print(sum);
  std::cout
      << "\nLayers that run as one (convolution, batch norm, activation) count for their parts, "
         "mostly as the first.\nkept: of one micro-batch from forward to backward, where "
         "nothing is recomputed.\n"
      << (of_stems ? "Times are of one core; layers behind the deepest cut run on the GPU alone "
                     "and are not listed.\n"
                   : "Times are of one core.\n");
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

void print_plan_table(const json& told, bool layers) {
  const bool prices = told.contains("byWorkers");
  print_cuts(told, prices);
  print_choice(told);
  if (prices) print_workers(told["byWorkers"]);
  const json& best = told["cuts"][told["choice"].get<size_t>()];
  print_gain(told, best);
  for (const json& one : told["advice"]) std::cout << "\n" << one.get<std::string>() << "\n";
  std::cout << fmt::format(
      "\n{} for a micro-batch, bytes are of a step; server: of the network's multiply-adds, done "
      "by "
      "the server; local: of the pixels that a step needs, made by it. An epoch takes {} by the "
      "{} plan.\n{}\n",
      told["device"] == "GPU" ? "stem ms are of one core, head ms of the GPU,"
                              : "milliseconds are of one core",
      duration_text(best["epoch"]["seconds"].get<double>()),
      told["choiceIsFixed"].get<bool>() ? "job's" : "best", what_run_does(told));
  if (layers) print_layers(told["profile"]["layers"], told["device"] == "GPU");
}

}  // namespace outrigger::cli

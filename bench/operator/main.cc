// What the operator costs, against whom.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>

#include "bench/operator/process.h"
#include "bench/operator/rivals.h"
#include "bench/operator/scale.h"
#include "bench/operator/stage.h"
#include "bench/operator/table.h"
#include "common/log.h"

namespace outrigger::bench {
namespace {

constexpr const char* kUsage =
    "usage: operator_bench [--short] [--jobs N] [--rounds N] [--part NAME | --against PROGRAM]\n"
    "  --short     one small round of everything, without Kubeflow's training operator\n"
    "  --jobs N    instead of 1,000\n"
    "  --rounds N  instead of 5\n"
    "  --part NAME rivals, latency or scale alone\n"
    "  --against PROGRAM  another outrigger-operator instead, in turns with this one\n";

struct Effort {
  int jobs = 1000;
  int rounds = 5;
  int steady_jobs = 300;
  int other_pods = 20'000;
  int seconds = 30;
  bool kubeflow = true;
  std::string_view part = {};     // empty: all
  std::string_view against = {};  // empty: nobody

  bool wants(std::string_view name) const { return part.empty() || part == name; }
};

constexpr std::array<std::string_view, 3> kParts{"rivals", "latency", "scale"};
constexpr Effort kShort{
    .jobs = 20, .rounds = 1, .steady_jobs = 20, .other_pods = 100, .seconds = 5, .kubeflow = false};

bool read_number(const char* text, int& number) {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end && number > 0;
}

bool read_arguments(std::span<char*> arguments, Effort& effort) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (std::strcmp(arguments[i], "--short") == 0) {
      effort = kShort;
    } else if (std::strcmp(arguments[i], "--jobs") == 0 && has_value) {
      if (!read_number(arguments[++i], effort.jobs)) return false;
    } else if (std::strcmp(arguments[i], "--rounds") == 0 && has_value) {
      if (!read_number(arguments[++i], effort.rounds)) return false;
    } else if (std::strcmp(arguments[i], "--part") == 0 && has_value) {
      effort.part = arguments[++i];
      if (!std::ranges::count(kParts, effort.part)) return false;
    } else if (std::strcmp(arguments[i], "--against") == 0 && has_value) {
      effort.against = arguments[++i];
    } else {
      return false;
    }
  }
  return true;
}

int run(const Effort& effort) {
  const std::string missing = Stage::missing();
  if (!missing.empty()) {
    std::printf("left out: %s\n", missing.c_str());
    return 0;
  }
  Table table;
  if (!effort.against.empty()) {
    Stage stage;
    stage.start_kubelets();
    compare_versions(stage, table, {.jobs = effort.jobs, .rounds = effort.rounds}, effort.against);
    return table.status();
  }
  if (effort.wants("rivals") || effort.wants("latency")) {
    Stage stage;
    stage.start_kubelets();
    if (effort.wants("rivals")) {
      compare_rivals(stage, table,
                     {.jobs = effort.jobs, .rounds = effort.rounds, .kubeflow = effort.kubeflow});
    }
    if (effort.wants("latency")) measure_latency(stage, table, effort.steady_jobs);
  }
  if (!effort.wants("scale")) return table.status();
  Stage stage;
  measure_scale(stage, table,
                {.jobs = effort.jobs, .other_pods = effort.other_pods, .seconds = effort.seconds});
  return table.status();
}

}  // namespace
}  // namespace outrigger::bench

int main(int argc, char** argv) {
  outrigger::bench::Effort effort;
  if (!outrigger::bench::read_arguments({argv + 1, static_cast<size_t>(argc - 1)}, effort)) {
    std::fputs(outrigger::bench::kUsage, stderr);
    return 2;
  }
  try {
    outrigger::log::set_level(outrigger::log::parse_level("warning"));
    outrigger::bench::use_environment_of_image();
    return outrigger::bench::run(effort);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operator_bench: %s\n", error.what());
    return 1;
  }
}

#include "cli/report/history.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/report/history_lines.h"
#include "common/error.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;

/// What is wrong with a line; empty: it has been added.
std::string try_line(const std::string& line, size_t most_steps, RunHistory& history) {
  if (line.empty()) return {};  // two attempts once wrote beside each other
  const json parsed = json::parse(line, nullptr, false);
  if (!parsed.is_object()) return "is no line of a run's metrics";
  try {
    add_line(parsed, most_steps, history);
    return {};
  } catch (const json::exception& error) {
    const std::string text = error.what();  // behind the library's own name of the fault
    const size_t begin = text.find("] ");
    return begin == text.npos ? text : text.substr(begin + 2);
  }
}

RunHistory read_rank(const std::filesystem::path& path, size_t most_steps) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_errno("opening " + path.string(), errno);
  RunHistory history;
  uint64_t number = 0;
  uint64_t broken = 0;
  std::string first;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string fault = try_line(line, most_steps, history);
    if (fault.empty()) continue;
    if (++broken == 1) first = path.string() + ":" + std::to_string(number) + ": " + fault;
  }
  if (file.bad()) throw_errno("reading " + path.string(), errno);
  if (broken > 0 && broken == number) throw InvalidInput(first + ", nor is any other");
  if (broken == 1) log::warning("one line is broken and left out: {}", first);
  if (broken > 1) log::warning("{} lines are broken and left out, the first: {}", broken, first);
  return history;
}

}  // namespace

std::string RunHistory::Plan::name() const {
  std::string text = "cut Input";
  const std::string share = share_percent > 0 ? std::to_string(share_percent) : "<1";
  if (splits()) text = cut + " " + share + " %";
  if (local_percent > 0) text += ", " + std::to_string(local_percent) + " % of the input local";
  return text;
}

uint64_t step_count(std::span<const RunHistory::Step> steps) {
  uint64_t sum = 0;
  for (const RunHistory::Step& step : steps) sum += step.count;
  return sum;
}

std::vector<RunHistory::Step> RunHistory::settled() const {
  const size_t left_out = std::min<size_t>(3, steps.size() / 4);
  return {steps.begin() + static_cast<ptrdiff_t>(left_out), steps.end()};
}

RunHistory::Stops RunHistory::stops() const {
  const auto sum = [this](const auto& list) {
    double seconds = 0;
    for (const auto& one : list) {
      if (!steps.empty() && one.step <= steps.back().last_step) seconds += one.stood_still;
    }
    return seconds;
  };
  const double evaluating = sum(evaluations);
  const double saving = sum(checkpoints);
  double all = std::max(evaluating + saving, 1e-9);
  for (const Step& step : steps) all += step.seconds;
  return {.evaluation_percent = 100 * evaluating / all, .checkpoint_percent = 100 * saving / all};
}

RunHistory read_history(const std::filesystem::path& folder, size_t most_steps) {
  const auto path = folder / "metrics.jsonl";
  RunHistory history = read_rank(path, most_steps);
  if (history.steps.empty())
    throw InvalidInput(path.string() + ": no step is in it; the run " +
                       (history.end ? "ended as " + history.end->state +
                                          " before its first: " + history.end->message
                                    : "has not begun to train"));
  for (size_t rank = 1;; ++rank) {
    const auto of_rank = folder / ("metrics-" + std::to_string(rank) + ".jsonl");
    if (!std::filesystem::exists(of_rank)) return history;
    RunHistory its = read_rank(of_rank, most_steps);
    // A run that is resumed with fewer ranks leaves the files of the others.
    if (its.steps.empty() || its.incarnation != history.incarnation) return history;
    history.further_ranks.push_back(std::move(its));
  }
}

}  // namespace outrigger::cli

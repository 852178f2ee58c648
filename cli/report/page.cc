#include "cli/report/page.h"

#include <algorithm>
#include <array>

#include "cli/report/chart.h"
#include "cli/report/work.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

using Step = RunHistory::Step;

constexpr size_t kMostPoints = 400;
constexpr std::array<const char*, feed::kStallCauses> kCauseColors = {
    "#7c6fd0", "#e08a3c", "#3f8f5f", "#c9485b", "#b89b2c", "#8a94a3", "#4a5568"};
constexpr const char* kBlue = "#2f6fb5";
constexpr const char* kOrange = "#e08a3c";
constexpr const char* kGreen = "#3f8f5f";
constexpr const char* kPurple = "#7c6fd0";

constexpr const char* kStyle = R"(<style>
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #f4f6f8; margin: 0; }
main { max-width: 920px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 0 0 8px; }
section { background: #fff; border: 1px solid #dde3ea; border-radius: 8px; padding: 16px 20px; margin-top: 16px; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; margin-top: 16px; }
.tile { background: #fff; border: 1px solid #dde3ea; border-radius: 8px; padding: 10px 16px; flex: 1 1 120px; }
.tile b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; } .tile span, .soft { color: #5b6876; }
.limit { border-left: 4px solid #2f6fb5; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 12px; fill: #5b6876; }
svg text.on { fill: #fff; } .grid { stroke: #e6ebf0; }
.legend { margin: 4px 0 0; display: flex; flex-wrap: wrap; gap: 4px 16px; color: #5b6876; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 4px 8px; border-bottom: 1px solid #e6ebf0; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } th { color: #5b6876; font-weight: 500; }
.bar { background: #2f6fb5; height: 9px; border-radius: 2px; }
</style>
)";

template <typename Value>
Series series_of(const std::string& name, const char* color, const std::vector<Step>& steps,
                 const Value& value) {
  Series series{.name = name, .color = color};
  for (const Step& step : steps) {
    const std::optional<double> y = value(step);
    if (!y) continue;
    series.x.push_back(static_cast<double>(step.step));
    series.y.push_back(*y);
  }
  return thinned(series, kMostPoints);
}

std::string tile(const std::string& what, const std::string& figure) {
  return "<div class=\"tile\"><b>" + escaped(figure) + "</b><span>" + escaped(what) +
         "</span></div>\n";
}

/// Sums over the settled steps.
struct Sums {
  double seconds = 0;
  double waited = 0;
  double images = 0;
  double steps = 0;
  feed::StallTimes stalls{};
};

Sums sums_of(const std::vector<Step>& steps) {
  Sums sums;
  for (const Step& step : steps) {
    sums.seconds += step.seconds;
    sums.waited += step.waited;
    sums.images += step.images_per_second * step.seconds;
    for (size_t i = 0; i < feed::kStallCauses; ++i) sums.stalls[i] += step.stalls[i];
  }
  sums.seconds = std::max(sums.seconds, 1e-9);
  sums.steps = static_cast<double>(step_count(steps));
  return sums;
}

std::string percent_tile(const std::string& what, const std::optional<double>& part) {
  return part ? tile(what, fmt::format("{:.2f} %", 100 * *part)) : "";
}

/// Of the last evaluation, where there was one.
std::string evaluation_tiles(const RunHistory& history) {
  if (history.evaluations.empty()) return "";
  const auto& last = history.evaluations.back();
  return percent_tile("held-out accuracy", last.accuracy) +
         percent_tile("held-out verification", last.verification) +
         percent_tile("held-out identification", last.identification);
}

std::string stop_tiles(const RunHistory::Stops& stops) {
  std::string text;
  if (stops.evaluation_percent > 0)
    text += tile("stands still to evaluate", fmt::format("{:.1f} %", stops.evaluation_percent));
  if (stops.checkpoint_percent > 0)
    text += tile("and for checkpoints", fmt::format("{:.1f} %", stops.checkpoint_percent));
  return text;
}

/// How many steps are done; of how many, where that is known and they are fewer.
std::string steps_text(const RunHistory& history, const SplitNotes& split) {
  const bool told = history.end || !split.steps;  // else perhaps by a former life with another job
  const auto total = told ? history.total_steps : split.steps;
  const uint64_t done = history.steps.back().last_step + 1;
  return total && done < *total ? fmt::format("{} of {}", done, *total)
                                : std::to_string(step_count(history.steps));
}

/// A sentence on a run that failed; empty: it did not, as far as it says.
std::string failure_text(const RunHistory& history, const SplitNotes& split) {
  if (!history.end || !history.end->failed()) return "";
  const std::string& why = history.end->message;
  return fmt::format("The run failed after {} steps: {}{}{}", steps_text(history, split),
                     history.end->state, why.empty() ? "" : ", " + why,
                     why.ends_with('.') ? "" : ".");
}

std::string tiles(const RunHistory& history, const Sums& sums, const SplitNotes& split) {
  const Step& last = history.steps.back();
  std::string text = "<div class=\"tiles\">\n";
  text += tile("steps", steps_text(history, split));
  if (history.end) text += tile("how it ended", history.end->state);
  text += tile("images a second", fmt::format("{:.0f}", sums.images / sums.seconds));
  text += tile("a step", fmt::format("{:.1f} ms", 1e3 * sums.seconds / sums.steps));
  text += tile("the device waits", fmt::format("{:.1f} %", 100 * sums.waited / sums.seconds));
  text += stop_tiles(history.stops());
  text += tile("loss at the end", last.loss ? fmt::format("{:.4f}", *last.loss) : "not a number");
  return text + evaluation_tiles(history) + "</div>\n";
}

std::string limits(const RunHistory& history, const Sums& sums, const SplitNotes& split) {
  const auto inputs = std::span(sums.stalls).first(feed::kInputCauses);
  const auto worst = std::ranges::max_element(inputs) - inputs.begin();
  uint64_t workers = history.steps.back().workers;
  for (const RunHistory& rank : history.further_ranks) workers += rank.steps.back().workers;
  const RunHistory::Stops stops = history.stops();
  const auto percent = [&sums](feed::StallCause cause) {
    return 100 * feed::of(sums.stalls, cause) / sums.seconds;
  };
  const Limits told{.stall_percent = 100 * sums.waited / sums.seconds,
                    .stall_cause = feed::to_string(static_cast<feed::StallCause>(worst)),
                    .optimizer_percent = percent(feed::StallCause::kOptimizer),
                    .ranks_percent = percent(feed::StallCause::kRanks),
                    .workers = workers,
                    .desired_workers = history.desired_workers,
                    .evaluation_percent = stops.evaluation_percent,
                    .checkpoint_percent = stops.checkpoint_percent,
                    .split = split,
                    .failure = failure_text(history, split)};
  return "<section class=\"limit\"><h2>What limits this run</h2>\n<p>" + escaped(advice(told)) +
         "</p></section>\n";
}

/// Of the evaluations that have the figure, which is multiplied by `times`.
Series held_out(Series series, const RunHistory& history,
                std::optional<double> RunHistory::Evaluation::*figure, double times) {
  series.points = true;
  for (const auto& one : history.evaluations) {
    const std::optional<double>& value = one.*figure;
    if (!value) continue;
    series.x.push_back(static_cast<double>(one.step));
    series.y.push_back(times * *value);
  }
  return thinned(series, kMostPoints);
}

std::string loss_section(const RunHistory& history) {
  using Held = RunHistory::Evaluation;
  const std::vector<Series> series{
      series_of("loss", kBlue, history.steps, [](const Step& step) { return step.loss; }),
      held_out({.name = "held-out loss", .color = kOrange}, history, &Held::loss, 1)};
  const std::vector<Series> right{
      series_of("training accuracy", kBlue, history.steps,
                [](const Step& step) -> std::optional<double> {
                  if (!step.accuracy) return std::nullopt;
                  return 100 * *step.accuracy;
                }),
      held_out({.name = "held-out accuracy", .color = kOrange}, history, &Held::accuracy, 100),
      held_out({.name = "held-out verification", .color = kGreen}, history, &Held::verification,
               100),
      held_out({.name = "held-out identification", .color = kPurple}, history,
               &Held::identification, 100)};
  return page_section("Loss", line_chart({.label = "Loss by step", .x_label = "step"}, series)) +
         page_section(
             "Accuracy",
             line_chart({.label = "Accuracy by step, percent", .x_label = "step", .unit = " %"},
                        right));
}

std::string rate_section(const RunHistory& history) {
  const std::vector<Series> series{
      series_of("images a second", kBlue, history.steps,
                [](const Step& step) { return step.images_per_second; })};
  return page_section("Images a second",
                      line_chart({.label = "Images a second by step", .x_label = "step"}, series));
}

std::string stall_section(const RunHistory& history, const Sums& sums) {
  std::vector<Series> series;
  for (size_t i = 0; i < feed::kStallCauses; ++i) {
    const auto cause = static_cast<feed::StallCause>(i);
    series.push_back(series_of(
        fmt::format("{} {:.1f} %", feed::to_string(cause), 100 * sums.stalls[i] / sums.seconds),
        kCauseColors[i], history.settled(),
        [i](const Step& step) { return 100 * step.stalls[i] / std::max(step.seconds, 1e-9); }));
  }
  return page_section(
      "What the device waits for",
      stacked_chart({.label = "Percent of the time in which the device waits, by cause",
                     .x_label = "step",
                     .unit = " %"},
                    series));
}

std::string plan_section(const RunHistory& history) {
  constexpr std::array<const char*, 4> kColors = {"#2f6fb5", "#3f8f5f", "#7c6fd0", "#a8642a"};
  std::vector<Stretch> stretches;
  std::string table =
      "<table><tr><th>step</th><th class=\"text\">plan</th><th>server</th><th "
      "class=\"text\">why</th></tr>\n";
  for (size_t i = 0; i < history.plans.size(); ++i) {
    const auto& plan = history.plans[i];
    const double to = static_cast<double>(
        i + 1 < history.plans.size() ? history.plans[i + 1].step : history.steps.back().step + 1);
    const std::string name = plan.name();
    stretches.push_back({static_cast<double>(plan.step), to, name, kColors[i % kColors.size()]});
    table += fmt::format(
        "<tr><td>{}</td><td class=\"text\">{}</td><td>{}</td><td "
        "class=\"text\">{}</td></tr>\n",
        plan.step, escaped(name),
        plan.server_percent ? fmt::format("{:.0f} %", *plan.server_percent) : "",
        escaped(plan.reason));
  }
  if (stretches.empty()) return "";
  return page_section("Plans",
                      timeline({.label = "Which plan was in force", .x_label = "step"}, stretches) +
                          table +
                          "</table>\n<p class=\"soft\">server: of the network's multiply-adds, "
                          "what the server does by the plan.</p>");
}

}  // namespace

std::string page_section(const std::string& title, const std::string& content) {
  return "<section><h2>" + escaped(title) + "</h2>\n" + content + "</section>\n";
}

std::string page(const std::string& title, const std::string& text, const std::string& content) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
         "name=\"viewport\" content=\"width=device-width\">\n<title>" +
         escaped(title) + " · Outrigger</title>\n" + kStyle + "</head><body><main>\n<h1>" +
         escaped(title) + "</h1>\n<p class=\"soft\">" + escaped(text) + "</p>\n" + content +
         "</main></body></html>\n";
}

std::string report_page(const std::string& name, const RunHistory& history, const SplitNotes& split,
                        const std::optional<Sweep>& swept) {
  const Sums sums = sums_of(history.settled());
  std::string text =
      "What an Outrigger run did, from its metrics.jsonl. Rates leave out the first steps, which "
      "compile and warm up.";
  if (history.emulated)
    text +=
        " Its machines were emulated: they computed nothing, so that loss and accuracy are those "
        "of weights as they were made.";
  if (history.steps_in_one > 1)
    text += fmt::format(" There are very many steps: {} after each other are shown as one.",
                        history.steps_in_one);
  return page(name, text,
              tiles(history, sums, split) + limits(history, sums, split) + loss_section(history) +
                  rate_section(history) + stall_section(history, sums) + plan_section(history) +
                  work_sections(history) + (swept ? sweep_sections(*swept) : ""));
}

}  // namespace outrigger::cli

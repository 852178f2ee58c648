#include <algorithm>

#include "cli/report/chart.h"
#include "cli/report/page.h"
#include "cli/sweep/sweep.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

std::string table_of(const Sweep& sweep) {
  std::string table =
      "<table><tr><th>share</th><th>stems away</th><th>measured</th><th>predicted</th>"
      "<th>of measured</th><th>Amdahl's bound</th><th>the device waits</th></tr>\n";
  for (const SweepPoint& one : sweep.points) {
    table += fmt::format("<tr><td>{} %</td><td>{}</td>", one.share_percent, one.away);
    if (!one.left_out.empty()) {
      table +=
          "<td class=\"text\" colspan=\"5\">left out: " + escaped(one.left_out) + "</td></tr>\n";
      continue;
    }
    table += fmt::format(
        "<td>{:.1f}</td><td>{:.1f}</td><td>{:.0f} %</td><td>{:.1f}</td><td>{:.1f} %</td></tr>\n",
        one.measured, one.predicted, 100 * one.predicted / std::max(one.measured, 1e-9), one.bound,
        one.stall_percent);
  }
  return table + "</table>";
}

}  // namespace

std::string sweep_sections(const Sweep& told) {
  Sweep sweep = told;
  std::ranges::sort(sweep.points, {}, &SweepPoint::share_percent);
  Series measured{.name = "measured", .color = "#2f6fb5"};
  Series predicted{.name = "predicted", .color = "#e08a3c"};
  Series bound{.name = "Amdahl's bound", .color = "#8a94a3"};
  for (const SweepPoint& one : sweep.points) {
    bound.x.push_back(one.share_percent);
    bound.y.push_back(one.bound);
    predicted.x.push_back(one.share_percent);
    predicted.y.push_back(one.predicted);
    if (!one.left_out.empty()) continue;
    measured.x.push_back(one.share_percent);
    measured.y.push_back(one.measured);
  }
  const std::vector<Series> series{measured, predicted, bound};
  const std::string chart = line_chart({.label = "Images a second by share of the stems away",
                                        .x_label = "percent of the stems on workers"},
                                       series);
  const std::string text = fmt::format(
      "<p class=\"soft\">Cut {}, {} workers, once for every share of the stems. The stem is {:.0f} "
      "% of the device's work; Amdahl's bound is what the device could do if everything else took "
      "no time.</p>\n",
      escaped(sweep.cut), sweep.workers, 100 * sweep.stem_part);
  return page_section("Sweep: images a second by share of the stems away", text + chart) +
         page_section("Sweep: figures, images a second", table_of(sweep));
}

std::string sweep_page(const std::string& name, const Sweep& sweep) {
  return page(name + ": sweep", "The job once for every share of its stems on workers.",
              sweep_sections(sweep));
}

}  // namespace outrigger::cli

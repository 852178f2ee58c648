#include "cli/report/work.h"

#include <algorithm>

#include "cli/report/chart.h"
#include "cli/report/page.h"
#include "common/log.h"

namespace outrigger::cli {
namespace {

/// The first rank, then the others.
std::vector<const RunHistory*> ranks_of(const RunHistory& history) {
  std::vector<const RunHistory*> ranks{&history};
  for (const RunHistory& rank : history.further_ranks) ranks.push_back(&rank);
  return ranks;
}

std::string bar(double part) {
  return fmt::format("<td><div class=\"bar\" style=\"width:{:.1f}%\"></div></td>", 100 * part);
}

std::string rank_row(size_t number, const RunHistory& rank) {
  double seconds = 1e-9;
  double waited = 0;
  double for_ranks = 0;
  for (const RunHistory::Step& step : rank.settled()) {
    seconds += step.seconds;
    waited += step.waited;
    for_ranks += feed::of(step.stalls, feed::StallCause::kRanks);
  }
  return fmt::format("<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td></tr>\n", number,
                     rank.steps.back().workers, 100 * waited / seconds, 100 * for_ranks / seconds);
}

std::string rank_section(const RunHistory& history) {
  if (history.further_ranks.empty()) return "";
  std::string table =
      "<table><tr><th>rank</th><th>workers at the end</th><th>its device waits for workers</th>"
      "<th>it waits for other ranks</th></tr>\n";
  size_t number = 0;
  for (const RunHistory* rank : ranks_of(history)) table += rank_row(number++, *rank);
  return page_section("Ranks", table +
                                   "</table>\n<p class=\"soft\">The one that hardly waits for "
                                   "others is the one that they wait for.</p>");
}

/// `name` is text, `link` HTML.
std::string worker_row(const std::string& name, const RunHistory::Worker& worker, uint64_t most,
                       const std::string& link) {
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td><td>{:.1f} ms</td>{}</tr>\n",
      escaped(name), worker.cores, worker.micro_batches,
      bar(static_cast<double>(worker.micro_batches) / static_cast<double>(most)),
      worker.stem_gradients, 1e3 * worker.decode, link);
}

/// Rate and delay; what is not measured yet is 0.
std::string link_cells(const RunHistory::Worker& worker) {
  const auto cell = [](double value, const std::string& text) {
    return "<td>" + (value > 0 ? text : std::string("–")) + "</td>";
  };
  return cell(worker.bytes_per_second, fmt::format("{:.1f} MB/s", worker.bytes_per_second / 1e6)) +
         cell(worker.latency, fmt::format("{:.2f} ms", 1e3 * worker.latency));
}

uint64_t most_micro_batches(const RunHistory& history) {
  uint64_t most = 1;
  for (const RunHistory* rank : ranks_of(history)) {
    if (rank->local) most = std::max(most, rank->local->micro_batches);
    for (const auto& entry : rank->workers) most = std::max(most, entry.second.micro_batches);
  }
  return most;
}

std::string worker_section(const RunHistory& history) {
  const auto ranks = ranks_of(history);
  if (std::ranges::all_of(ranks, [](const RunHistory* rank) { return rank->workers.empty(); }))
    return page_section("Workers",
                        "<p class=\"soft\">No remote worker: the server did it all.</p>");
  const uint64_t most = most_micro_batches(history);
  std::string table =
      "<table><tr><th>worker</th><th>cores</th><th>micro-batches</th><th class=\"text\" "
      "style=\"width:24%\"></th><th>stem gradients</th><th>decoding</th><th>link</th>"
      "<th>delay</th></tr>\n";
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string whose =
        ranks.size() > 1 ? "rank " + std::to_string(rank) + ": " : std::string();
    if (ranks[rank]->local)
      table +=
          worker_row(whose + "the server's own", *ranks[rank]->local, most, "<td></td><td></td>");
    for (const auto& [name, worker] : ranks[rank]->workers)
      table += worker_row(whose + name, worker, most, link_cells(worker));
  }
  return page_section("Workers", table + "</table>");
}

/// Of what was perhaps not timed.
std::string timed(double seconds) {
  return seconds == 0 ? "" : fmt::format("{:.2f} ms", 1e3 * seconds);
}

/// What its bar shows.
double part_of(const RunHistory::Layer& layer) {
  const double at_start = layer.forward + layer.backward;
  return at_start > 0 ? at_start : layer.on_server;
}

/// Of layers that were measured when the job began: those of a job whose plan is to be found.
std::string measured_layers(const RunHistory& history, double most) {
  double kept = 0;
  double weights = 0;
  std::string table =
      "<table><tr><th>layer</th><th>forward</th><th>backward</th><th class=\"text\" "
      "style=\"width:24%\"></th><th>training, here</th><th>on workers</th><th>keeps</th>"
      "<th>weights</th></tr>\n";
  for (const RunHistory::Layer& layer : history.layers) {
    kept += layer.kept;
    weights += layer.weights;
    table += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td><td>{}</td>"
        "<td>{:.2f} MB</td><td>{:.2f} MB</td></tr>\n",
        escaped(layer.name), timed(layer.forward), timed(layer.backward),
        bar(part_of(layer) / most), timed(layer.on_server), timed(layer.on_workers),
        layer.kept / 1e6, layer.weights / 1e6);
  }
  return fmt::format(
             "<p class=\"soft\">Of a micro-batch, on one core, as measured at the start: all "
             "layers, or where the device is a GPU those of stems; and forward and backward "
             "together while the job trained, here and on the workers. From forward to backward "
             "these keep {:.1f} MB; their weights are {:.1f} MB, held more than once "
             "(outrigger plan tells what each process needs).</p>\n"
             "<details><summary>{} layers</summary>\n",
             kept / 1e6, weights / 1e6, history.layers.size()) +
         table + "</table></details>";
}

std::string trained_layers(const RunHistory& history, double most) {
  std::string table =
      "<table><tr><th>layer</th><th class=\"text\" style=\"width:24%\"></th>"
      "<th>here</th><th>on workers</th></tr>\n";
  for (const RunHistory::Layer& layer : history.layers)
    table +=
        fmt::format("<tr><td>{}</td>{}<td>{}</td><td>{}</td></tr>\n", escaped(layer.name),
                    bar(part_of(layer) / most), timed(layer.on_server), timed(layer.on_workers));
  return fmt::format(
             "<p class=\"soft\">Forward and backward of a micro-batch together, on one core, while "
             "the job trained. The plan was not to be found, so nothing was measured at the start; "
             "outrigger plan does, and tells what layers keep and each process needs.</p>\n"
             "<details><summary>{} layers</summary>\n",
             history.layers.size()) +
         table + "</table></details>";
}

std::string layer_section(const RunHistory& history) {
  if (history.layers.empty()) return "";
  double most = 1e-12;
  for (const RunHistory::Layer& layer : history.layers) most = std::max(most, part_of(layer));
  const bool measured = std::ranges::any_of(
      history.layers, [](const auto& layer) { return layer.forward + layer.backward > 0; });
  return page_section("Layers",
                      measured ? measured_layers(history, most) : trained_layers(history, most));
}

}  // namespace

std::string work_sections(const RunHistory& history) {
  return rank_section(history) + worker_section(history) + layer_section(history);
}

}  // namespace outrigger::cli

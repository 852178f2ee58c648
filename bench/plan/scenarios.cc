#include "bench/plan/scenarios.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/plan/drawn.h"
#include "bench/plan/figures.h"
#include "common/log.h"
#include "training/planner/model/step_model.h"

namespace outrigger::training {

namespace {

std::string name(const Choice& choice) {
  return fmt::format("{}/{}/{}", choice.cut, choice.away, choice.local);
}

struct Scenario {
  JobCosts job;
  SimulatedCluster cluster;
};

Scenario draw_scenario(int number) {
  Draw draw(1000 + static_cast<uint64_t>(number));
  Scenario scenario;
  scenario.job = draw_job(draw);
  scenario.cluster = draw_cluster(draw, scenario.job);
  return scenario;
}

struct Score {
  BestPlan best;         // of all plans held fixed
  double automatic = 0;  // where the planner has settled
  uint64_t settled = 0;  // the last step within 30 at which it moved; later ones count too
  Choice choice;
};

Score score(const JobCosts& job, const SimulatedCluster& cluster, const BestPlan& best) {
  Score score{.best = best};
  const auto result = simulate(job, cluster, {.steps = 60, .jitter = 0.02});
  if (!result.moves.empty()) score.settled = result.moves.back().step;
  score.choice = result.steps.back().choice;
  score.automatic = seconds_fixed(job, cluster, score.choice);
  return score;
}

void tell(int number, const Score& one) {
  std::printf("  scenario %d: %s at %.4f s, best %s at %.4f s, cut Input at %.4f s\n", number,
              name(one.choice).c_str(), one.automatic, name(one.best.choice).c_str(),
              one.best.seconds, one.best.unsplit);
}

}  // namespace

void run_scenarios(int first, int count, BestPlans& best_plans) {
  int within5 = 0;
  int within10 = 0;
  int settled = 0;
  int cuts_pay = 0;
  double worst_auto = 1e300;
  double worst = 0;
  double regret = 0;
  double regret_unsplit = 0;
  for (int i = first; i < first + count; ++i) {
    const auto [job, cluster] = draw_scenario(i);
    const Score one = score(job, cluster, best_plans.of(i, job, cluster));
    const BestPlan& best = one.best;
    const double loss = one.automatic / best.seconds - 1;
    within5 += loss <= 0.05 ? 1 : 0;
    within10 += loss <= 0.10 ? 1 : 0;
    settled += one.settled <= 30 ? 1 : 0;
    cuts_pay += best.choice.cut > 0 && best.choice.away < job.micro_batches ? 1 : 0;
    worst = std::max(worst, loss);
    regret += loss / count;
    regret_unsplit += (best.unsplit / best.seconds - 1) / count;
    worst_auto = std::min(worst_auto, best.unsplit / one.automatic);
    if (loss > 0.05 || one.automatic > 1.01 * best.unsplit) tell(i, one);
  }
  const double n = count;
  std::printf("%d drawn jobs and clusters, every plan held fixed beside the planner's\n", count);
  judge("  planned within 5 % of the exhaustive optimum", percent(within5 / n), "least 95 %",
        within5 >= 0.95 * n);
  judge("  planned within 10 %", percent(within10 / n), "least 100 %", within10 == count);
  show("    worst loss", percent(worst));
  judge("  settled within 30 steps", percent(settled / n), "least 95 %", settled >= 0.95 * n);
  judge("  best plan has a cut above 0 and a share between 0 and 1", percent(cuts_pay / n),
        "least 30 %", cuts_pay >= 0.3 * n);
  judge("  planned against cut Input fixed, worst", fmt::format("{:.3f}x", worst_auto),
        "least 0.99x", worst_auto >= 0.99);
  show("    mean regret of the planner", percent(regret));
  show("    mean regret of always choosing cut Input", percent(regret_unsplit));
}

void show_scenario(int number) {
  const auto [job, cluster] = draw_scenario(number);
  const ServerRates& server = cluster.server;
  std::printf("M %u, staleness %d, pixels %.3g; server %.2f cores%s, decode %.4f s\n",
              job.micro_batches, static_cast<int>(job.staleness), job.pixels, server.cores,
              server.shared ? ", shared" : "", server.decode);
  std::vector<WorkerRates> rates;
  for (const SimulatedWorker& worker : cluster.workers) {
    rates.push_back(worker.rates);
    std::printf("  worker: stems %.2f, decode %.4f s, %.3g bytes/s, %.5f s\n",
                worker.rates.stem_speed, worker.rates.decode, worker.rates.bytes_per_second,
                worker.rates.latency);
  }
  for (const CutCosts& cut : job.cuts)
    std::printf("  %s: stem %.4f + %.4f, head %.4f, %.3g bytes, weights %.3g\n", cut.name.c_str(),
                cut.stem_forward, cut.stem_backward, cut.head, cut.activations, cut.weights);
  for (const Choice& choice : all_choices(job)) {
    const Prediction told = predict(job, server, rates, choice);
    std::printf("  %s: predicted %.4f s, bound by %s, local %.0f %%; simulated %.4f s\n",
                name(choice).c_str(), told.seconds, to_string(told.bound), 100 * told.local_input,
                seconds_fixed(job, cluster, choice));
  }
  const auto result = simulate(job, cluster, {.steps = 60, .jitter = 0.02});
  std::printf("  the planner's steps, in ms:");
  for (const SimulatedStep& step : result.steps) std::printf(" %.1f", 1e3 * step.seconds);
  std::printf("\n");
  for (const SimulatedMove& move : result.moves)
    std::printf("  step %d: %s\n", static_cast<int>(move.step), move.reason.c_str());
  tell(number, score(job, cluster, best_of_all(job, cluster)));
}

}  // namespace outrigger::training

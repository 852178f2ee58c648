#include "bench/operator/rivals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <thread>

#include "bench/operator/load.h"
#include "bench/operator/process.h"
#include "common/error.h"

namespace outrigger::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kLeastToBare = 0.6;
constexpr double kLeastToJobs = 0.9;
constexpr double kMostCpu = 3;  // seconds for so many pods:
constexpr double kCpuPods = 5000;

double seconds_since(Steady::time_point begin, Steady::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// One side of a round: pods a second, and what the operator took where it is the operator's.
struct Taken {
  double rate = 0;
  double cpu = 0;
  double passes = 0;
  double requests = 0;
  double status_writes = 0;
};

Taken bare_client(Stage& stage, const std::string& ns, int jobs) {
  PodCount count(stage.client(), ns);
  const auto cpu = cpu_time(getpid());
  const auto begin = Steady::now();
  post_all(jobs, [&](int number) {
    for (const Posting& one : objects_of_a_job(ns, number)) post(stage.client(), one);
  });
  const double took = seconds_since(begin, count.until(jobs * kPodsOfAJob));
  return {jobs * kPodsOfAJob / took, (cpu_time(getpid()) - cpu).count()};
}

Taken job_controller(Stage& stage, const std::string& ns, int jobs) {
  PodCount count(stage.client(), ns);
  const auto begin = Steady::now();
  post_all(jobs, [&](int number) { post(stage.client(), builtin_job(ns, number)); });
  return {jobs * kPodsOfAJob / seconds_since(begin, count.until(jobs * kPodsOfAJob))};
}

void start_operator(Stage& stage, const std::string& ns) {
  stage.start_operator(ns);
  wait_until("the operator answers", milliseconds(50), [&] { return !stage.metrics().empty(); });
}

Taken our_operator(Stage& stage, const std::string& ns, int jobs) {
  start_operator(stage, ns);
  PodCount count(stage.client(), ns);
  const auto cpu = cpu_time(stage.operator_id());
  const auto begin = Steady::now();
  post_all(jobs, [&](int number) { post(stage.client(), training_job(ns, number)); });
  const double took = seconds_since(begin, count.until(jobs * kPodsOfAJob));
  wait_until("all jobs run", seconds(1),
             [&] { return metric(stage.metrics(), "outrigger_jobs", "\"Running\"") >= jobs; });
  const Taken taken{jobs * kPodsOfAJob / took, (cpu_time(stage.operator_id()) - cpu).count(),
                    metric(stage.metrics(), "controller_runtime_reconcile_total"),
                    metric(stage.metrics(), "rest_client_requests_total"),
                    metric(stage.metrics(), "rest_client_requests_total", "\"PUT\"")};
  stage.stop_operator();
  return taken;
}

using Rates = std::array<std::vector<double>, 3>;  // ours, the bare client's, the Job controller's

struct Costs {
  std::vector<double> cpu;       // seconds for kCpuPods
  std::vector<double> bare_cpu;  // the same of the bare client
  std::vector<double> passes;    // of a job
  std::vector<double> requests;
  std::vector<double> status_writes;
};

void tell(Table& table, int jobs, const Rates& rates, const Costs& costs) {
  const std::string load =
      std::to_string(jobs) + " jobs of " + std::to_string(kPodsOfAJob) + " pods: ";
  table.figure(load + "a bare client, the same objects", number(median(rates[1]), 0, " pods/s"));
  table.figure(load + "the Job controller at 1,000 requests/s",
               number(median(rates[2]), 0, " pods/s"));
  table.figure(load + "the operator", number(median(rates[0]), 0, " pods/s"));
  const double to_bare = median_ratio(rates[0], rates[1]);
  const double to_jobs = median_ratio(rates[0], rates[2]);
  table.judge("operator to bare client", number(to_bare, 2, "x"), "least 0.6x",
              to_bare >= kLeastToBare);
  table.judge("operator to Job controller", number(to_jobs, 2, "x"), "least 0.9x",
              to_jobs >= kLeastToJobs);
  table.judge("CPU of the operator for 5,000 pods, until all jobs run",
              number(median(costs.cpu), 2, " s"), "most 3 s", median(costs.cpu) <= kMostCpu);
  table.figure("CPU of the bare client, which only posts and counts",
               number(median(costs.bare_cpu), 2, " s"));
  table.figure("passes of the operator over a job, until it runs",
               number(median(costs.passes), 1, ""));
  table.figure("its requests for a job", number(median(costs.requests), 1, ""));
  table.figure("those of them that write its status", number(median(costs.status_writes), 1, ""));
}

}  // namespace

void compare_rivals(Stage& stage, Table& table, int jobs, int rounds) {
  using Side = Taken (*)(Stage&, const std::string&, int);
  constexpr std::array<Side, 3> kSides{our_operator, bare_client, job_controller};
  Rates rates;
  Costs costs;
  for (int round = 0; round < rounds; ++round) {
    for (size_t turn = 0; turn < kSides.size(); ++turn) {
      const size_t side = (turn + static_cast<size_t>(round)) % kSides.size();
      const std::string ns = "round-" + std::to_string(round) + "-" + std::to_string(side);
      stage.make_namespace(ns);
      const Taken taken = kSides[side](stage, ns, jobs);
      rates[side].push_back(taken.rate);
      const double cpu = taken.cpu * kCpuPods / (jobs * kPodsOfAJob);
      if (side == 1) costs.bare_cpu.push_back(cpu);
      if (side != 0) continue;
      costs.cpu.push_back(cpu);
      costs.passes.push_back(taken.passes / jobs);
      costs.requests.push_back(taken.requests / jobs);
      costs.status_writes.push_back(taken.status_writes / jobs);
    }
  }
  tell(table, jobs, rates, costs);
}

void measure_latency(Stage& stage, Table& table, int jobs) {
  constexpr milliseconds kBetween{100};
  const std::string ns = "steady";
  stage.make_namespace(ns);
  start_operator(stage, ns);
  PodCount count(stage.client(), ns);
  std::vector<Steady::time_point> made;
  auto next = Steady::now();
  for (int number = 0; number < jobs; ++number, next += kBetween) {
    std::this_thread::sleep_until(next);
    made.push_back(Steady::now());
    post(stage.client(), training_job(ns, number));
  }
  count.until(jobs * kPodsOfAJob);
  std::vector<double> waits;
  for (int number = 0; number < jobs; ++number) {
    const auto last = count.complete_at(kube::name_of(training_job(ns, number).object));
    waits.push_back(seconds_since(made[static_cast<size_t>(number)], last));
  }
  stage.stop_operator();
  std::sort(waits.begin(), waits.end());
  const double slow = waits[waits.size() * 99 / 100];
  table.figure("a job's creation to its last pod's at 10 jobs/s, median",
               number(median(waits) * 1e3, 0, " ms"));
  table.judge("the same, 99th percentile of " + std::to_string(jobs), number(slow * 1e3, 0, " ms"),
              "most 1 s", slow < 1);
}

}  // namespace outrigger::bench

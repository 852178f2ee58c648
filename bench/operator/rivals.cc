#include "bench/operator/rivals.h"

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
};

Taken bare_client(Stage& stage, const std::string& ns, int jobs) {
  PodCount count(stage.client(), ns);
  const auto begin = Steady::now();
  post_all(jobs, [&](int number) {
    for (const Posting& one : objects_of_a_job(ns, number)) post(stage.client(), one);
  });
  return {jobs * kPodsOfAJob / seconds_since(begin, count.until(jobs * kPodsOfAJob))};
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
  const Taken taken{jobs * kPodsOfAJob / took, (cpu_time(stage.operator_id()) - cpu).count()};
  stage.stop_operator();
  return taken;
}

using Rates = std::array<std::vector<double>, 3>;  // ours, the bare client's, the Job controller's

void tell(Table& table, int jobs, const Rates& rates, const std::vector<double>& cpu) {
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
              number(median(cpu), 2, " s"), "most 3 s", median(cpu) <= kMostCpu);
}

}  // namespace

void compare_rivals(Stage& stage, Table& table, int jobs, int rounds) {
  using Side = Taken (*)(Stage&, const std::string&, int);
  constexpr std::array<Side, 3> kSides{our_operator, bare_client, job_controller};
  Rates rates;
  std::vector<double> cpu;
  for (int round = 0; round < rounds; ++round) {
    for (size_t turn = 0; turn < kSides.size(); ++turn) {
      const size_t side = (turn + static_cast<size_t>(round)) % kSides.size();
      const std::string ns = "round-" + std::to_string(round) + "-" + std::to_string(side);
      stage.make_namespace(ns);
      const Taken taken = kSides[side](stage, ns, jobs);
      rates[side].push_back(taken.rate);
      if (side == 0) cpu.push_back(taken.cpu * kCpuPods / (jobs * kPodsOfAJob));
    }
  }
  tell(table, jobs, rates, cpu);
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

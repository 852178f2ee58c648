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

/// One side of a round: pods a second, what API server and etcd took until the last pod, and what
/// the side itself took where it is the operator or the bare client.
struct Taken {
  double rate = 0;
  double cluster_cpu = 0;
  double cpu = 0;
  double passes = 0;
  double requests = 0;
  double status_writes = 0;
};

Taken until_all_pods(Stage& stage, PodCount& count, int jobs,
                     const std::function<void(int)>& post_one) {
  const auto cpu = stage.cluster_cpu();
  const auto begin = Steady::now();
  post_all(jobs, post_one);
  Taken taken;
  taken.rate = jobs * kPodsOfAJob / seconds_since(begin, count.until(jobs * kPodsOfAJob));
  taken.cluster_cpu = (stage.cluster_cpu() - cpu).count();
  return taken;
}

Taken bare_client(Stage& stage, const std::string& ns, int jobs) {
  PodCount count(stage.client(), ns);
  const auto cpu = cpu_time(getpid());
  Taken taken = until_all_pods(stage, count, jobs, [&](int number) {
    for (const Posting& one : objects_of_a_job(ns, number)) post(stage.client(), one);
  });
  taken.cpu = (cpu_time(getpid()) - cpu).count();
  return taken;
}

Taken job_controller(Stage& stage, const std::string& ns, int jobs) {
  PodCount count(stage.client(), ns);
  return until_all_pods(stage, count, jobs,
                        [&](int number) { post(stage.client(), builtin_job(ns, number)); });
}

void start_operator(Stage& stage, const std::string& ns) {
  stage.start_operator(ns);
  wait_until("the operator answers", milliseconds(50), [&] { return !stage.metrics().empty(); });
}

Taken our_operator(Stage& stage, const std::string& ns, int jobs) {
  start_operator(stage, ns);
  PodCount count(stage.client(), ns);
  const auto cpu = cpu_time(stage.operator_id());
  Taken taken = until_all_pods(stage, count, jobs,
                               [&](int number) { post(stage.client(), training_job(ns, number)); });
  wait_until("all jobs run", seconds(1),
             [&] { return metric(stage.metrics(), "outrigger_jobs", "\"Running\"") >= jobs; });
  taken.cpu = (cpu_time(stage.operator_id()) - cpu).count();
  const std::string page = stage.metrics();
  taken.passes = metric(page, "controller_runtime_reconcile_total");
  taken.requests = metric(page, "rest_client_requests_total");
  taken.status_writes = metric(page, "rest_client_requests_total", "\"PUT\"");
  stage.stop_operator();
  return taken;
}

constexpr std::array<const char*, 3> kNames{"the operator", "a bare client, the same objects",
                                            "the Job controller at 1,000 requests/s"};
using Rounds = std::array<std::vector<Taken>, kNames.size()>;

std::vector<double> column(const std::vector<Taken>& rounds, double Taken::*what, double per = 1) {
  std::vector<double> values;
  for (const Taken& taken : rounds) values.push_back(taken.*what / per);
  return values;
}

void tell(Table& table, int jobs, const Rounds& rounds) {
  const std::string load =
      std::to_string(jobs) + " jobs of " + std::to_string(kPodsOfAJob) + " pods: ";
  const double in_cpu_pods = jobs * kPodsOfAJob / kCpuPods;
  const auto& ours = rounds[0];
  for (size_t side = 0; side < kNames.size(); ++side) {
    table.figure(load + kNames[side],
                 number(median(column(rounds[side], &Taken::rate)), 0, " pods/s"));
    table.figure("CPU of API server and etcd meanwhile, for 5,000 pods",
                 number(median(column(rounds[side], &Taken::cluster_cpu, in_cpu_pods)), 1, " s"));
  }
  const auto rate = [&](size_t side) { return column(rounds[side], &Taken::rate); };
  const double to_bare = median_ratio(rate(0), rate(1));
  const double to_jobs = median_ratio(rate(0), rate(2));
  table.judge("operator to bare client", number(to_bare, 2, "x"), "least 0.6x",
              to_bare >= kLeastToBare);
  table.judge("operator to Job controller", number(to_jobs, 2, "x"), "least 0.9x",
              to_jobs >= kLeastToJobs);
  const double cpu = median(column(ours, &Taken::cpu, in_cpu_pods));
  table.judge("CPU of the operator for 5,000 pods, until all jobs run", number(cpu, 2, " s"),
              "most 3 s", cpu <= kMostCpu);
  table.figure("CPU of the bare client, which only posts and counts",
               number(median(column(rounds[1], &Taken::cpu, in_cpu_pods)), 2, " s"));
  const auto of_a_job = [&](const char* what, double Taken::*figure) {
    table.figure(what, number(median(column(ours, figure, jobs)), 1, ""));
  };
  of_a_job("passes of the operator over a job, until it runs", &Taken::passes);
  of_a_job("its requests for a job", &Taken::requests);
  of_a_job("those of them that write its status", &Taken::status_writes);
}

}  // namespace

void compare_rivals(Stage& stage, Table& table, int jobs, int count) {
  using Side = Taken (*)(Stage&, const std::string&, int);
  constexpr std::array<Side, kNames.size()> kSides{our_operator, bare_client, job_controller};
  Rounds rounds;
  for (int round = 0; round < count; ++round) {
    for (size_t turn = 0; turn < kSides.size(); ++turn) {
      const size_t side = (turn + static_cast<size_t>(round)) % kSides.size();
      const std::string ns = "round-" + std::to_string(round) + "-" + std::to_string(side);
      stage.make_namespace(ns);
      rounds[side].push_back(kSides[side](stage, ns, jobs));
    }
  }
  tell(table, jobs, rounds);
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

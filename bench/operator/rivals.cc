#include "bench/operator/rivals.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>

#include "bench/operator/kubeflow.h"
#include "bench/operator/load.h"
#include "bench/operator/process.h"
#include "common/error.h"

namespace outrigger::bench {
namespace {

using integration::OperatorProcess;
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
/// the side itself took where it is a process of its own.
struct Taken {
  double rate = 0;
  double cluster_cpu = 0;
  double cpu = 0;
  double passes = 0;
  double requests = 0;
  double status_writes = 0;
  double resident = 0;  // MiB of the side at its end
  std::string made;
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

void start_operator(Stage& stage, const std::string& ns, const std::filesystem::path& program) {
  stage.start_operator(ns, program);
  wait_until("the operator answers", milliseconds(50), [&] { return !stage.metrics().empty(); });
}

Taken our_operator(Stage& stage, const std::string& ns, int jobs,
                   const std::filesystem::path& program = OperatorProcess::built_program()) {
  start_operator(stage, ns, program);
  PodCount count(stage.client(), ns);
  const auto cpu = cpu_time(stage.operator_id());
  Taken taken = until_all_pods(stage, count, jobs,
                               [&](int number) { post(stage.client(), training_job(ns, number)); });
  // Its page costs the operator itself, and what is counted there changes every five seconds.
  wait_until("all jobs run", seconds(3),
             [&] { return metric(stage.metrics(), "outrigger_jobs", "\"Running\"") >= jobs; });
  taken.cpu = (cpu_time(stage.operator_id()) - cpu).count();
  taken.resident = resident_mebibytes(stage.operator_id());
  taken.made = made_of_a_job(stage.client(), ns, jobs);
  const std::string page = stage.metrics();
  taken.passes = metric(page, "controller_runtime_reconcile_total");
  taken.requests = metric(page, "rest_client_requests_total");
  taken.status_writes = metric(page, "rest_client_requests_total", "\"PUT\"");
  stage.stop_operator();
  return taken;
}

Taken kubeflow(Stage& stage, TrainingOperator& rival, const std::string& ns, int jobs) {
  rival.start(ns);
  PodCount count(stage.client(), ns);
  const auto cpu = cpu_time(rival.id());
  Taken taken = until_all_pods(stage, count, jobs,
                               [&](int number) { post(stage.client(), pytorch_job(ns, number)); });
  wait_until("all PyTorchJobs run", seconds(1),
             [&] { return running_pytorch_jobs(stage.client(), ns) >= jobs; });
  taken.cpu = (cpu_time(rival.id()) - cpu).count();
  taken.resident = resident_mebibytes(rival.id());
  taken.made = made_of_a_job(stage.client(), ns, jobs);
  rival.stop();
  return taken;
}

/// Whoever makes pods, and what came of it, a round each.
struct Side {
  std::string name;
  std::function<Taken(const std::string& ns, int jobs)> run;
  std::vector<Taken> rounds = {};
};
// The first three; Kubeflow's may follow.
enum SideIndex : size_t { kOurSide, kBareSide, kJobsSide, kKubeflowsSide };

std::vector<double> column(const std::vector<Taken>& rounds, double Taken::*what, double per = 1) {
  std::vector<double> values;
  for (const Taken& taken : rounds) values.push_back(taken.*what / per);
  return values;
}

void tell_rates(Table& table, int jobs, const std::vector<Side>& sides) {
  const std::string load =
      std::to_string(jobs) + " jobs of " + std::to_string(kPodsOfAJob) + " pods: ";
  const double in_cpu_pods = jobs * kPodsOfAJob / kCpuPods;
  const auto rate = [&](size_t side) { return column(sides[side].rounds, &Taken::rate); };
  for (const Side& side : sides) {
    table.figure(load + side.name, number(median(column(side.rounds, &Taken::rate)), 0, " pods/s"));
    table.figure("CPU of API server and etcd meanwhile, for 5,000 pods",
                 number(median(column(side.rounds, &Taken::cluster_cpu, in_cpu_pods)), 1, " s"));
    if (const std::string& made = side.rounds.back().made; !made.empty())
      table.figure("of a job there are then: " + made, "");
  }
  const double to_bare = median_ratio(rate(kOurSide), rate(kBareSide));
  const double to_jobs = median_ratio(rate(kOurSide), rate(kJobsSide));
  table.judge("operator to bare client", number(to_bare, 2, "x"), "least 0.6x",
              to_bare >= kLeastToBare);
  table.judge("operator to Job controller", number(to_jobs, 2, "x"), "least 0.9x",
              to_jobs >= kLeastToJobs);
  if (sides.size() > kKubeflowsSide)
    table.figure("operator to Kubeflow's",
                 number(median_ratio(rate(kOurSide), rate(kKubeflowsSide)), 2, "x"));
}

void tell_costs(Table& table, int jobs, const std::vector<Side>& sides) {
  const double in_cpu_pods = jobs * kPodsOfAJob / kCpuPods;
  const auto cpu_of = [&](size_t side) {
    return median(column(sides[side].rounds, &Taken::cpu, in_cpu_pods));
  };
  const auto resident_of = [&](size_t side) {
    return number(median(column(sides[side].rounds, &Taken::resident)), 1, " MiB");
  };
  table.judge("CPU of the operator for 5,000 pods, until all jobs run",
              number(cpu_of(kOurSide), 2, " s"), "most 3 s", cpu_of(kOurSide) <= kMostCpu);
  table.figure("CPU of the bare client, which only posts and counts",
               number(cpu_of(kBareSide), 2, " s"));
  table.figure("resident memory of the operator then", resident_of(kOurSide));
  if (sides.size() > kKubeflowsSide) {
    table.figure("CPU of Kubeflow's for 5,000 pods, until all jobs run",
                 number(cpu_of(kKubeflowsSide), 2, " s"));
    table.figure("resident memory of Kubeflow's then", resident_of(kKubeflowsSide));
  }
  const auto of_a_job = [&](const char* what, double Taken::*figure) {
    table.figure(what, number(median(column(sides[kOurSide].rounds, figure, jobs)), 1, ""));
  };
  of_a_job("passes of the operator over a job, until it runs", &Taken::passes);
  of_a_job("its requests for a job", &Taken::requests);
  of_a_job("those of them that write its status", &Taken::status_writes);
}

void take_turns(Stage& stage, std::vector<Side>& sides, const RivalsSize& size) {
  for (int round = 0; round < size.rounds; ++round) {
    for (size_t turn = 0; turn < sides.size(); ++turn) {
      const size_t side = (turn + static_cast<size_t>(round)) % sides.size();
      const std::string ns = "round-" + std::to_string(round) + "-" + std::to_string(side);
      stage.make_namespace(ns);
      stage.settle();  // what the side before left to others is not this one's load
      sides[side].rounds.push_back(sides[side].run(ns, size.jobs));
    }
  }
}

}  // namespace

void compare_rivals(Stage& stage, Table& table, const RivalsSize& size) {
  std::vector<Side> sides{
      {"the operator", [&](const auto& ns, int jobs) { return our_operator(stage, ns, jobs); }},
      {"a bare client, the same objects",
       [&](const auto& ns, int jobs) { return bare_client(stage, ns, jobs); }},
      {"the Job controller at 1,000 requests/s",
       [&](const auto& ns, int jobs) { return job_controller(stage, ns, jobs); }}};
  std::optional<TrainingOperator> rival;
  if (const std::string missing = TrainingOperator::missing(); size.kubeflow && missing.empty()) {
    rival.emplace(stage);
    sides.push_back({"Kubeflow's " + TrainingOperator::limits(),
                     [&](const auto& ns, int jobs) { return kubeflow(stage, *rival, ns, jobs); }});
  } else if (size.kubeflow) {
    table.figure("Kubeflow's training operator is left out: " + missing, "");
  }
  take_turns(stage, sides, size);
  tell_rates(table, size.jobs, sides);
  tell_costs(table, size.jobs, sides);
}

void compare_versions(Stage& stage, Table& table, const RivalsSize& size,
                      const std::filesystem::path& other) {
  std::vector<Side> sides{
      {"this", [&](const auto& ns, int jobs) { return our_operator(stage, ns, jobs); }},
      {"other", [&](const auto& ns, int jobs) { return our_operator(stage, ns, jobs, other); }}};
  take_turns(stage, sides, size);
  const auto tell = [&](const std::string& what, double Taken::*figure, int digits, double per) {
    const auto ours = column(sides[0].rounds, figure, per);
    const auto theirs = column(sides[1].rounds, figure, per);
    table.figure(what + ": this / other",
                 number(median(ours), digits, " / ") + number(median(theirs), digits, ""));
    table.figure("median of the rounds' ratios", number(median_ratio(ours, theirs), 2, "x"));
  };
  tell("pods/s", &Taken::rate, 0, 1);
  tell("CPU for 5,000 pods, s", &Taken::cpu, 2, size.jobs * kPodsOfAJob / kCpuPods);
  tell("resident, MiB", &Taken::resident, 1, 1);
  tell("passes over a job", &Taken::passes, 1, size.jobs);
  tell("requests for a job", &Taken::requests, 1, size.jobs);
  tell("writes of its status", &Taken::status_writes, 1, size.jobs);
}

void measure_latency(Stage& stage, Table& table, int jobs) {
  constexpr milliseconds kBetween{100};
  const std::string ns = "steady";
  stage.make_namespace(ns);
  start_operator(stage, ns, OperatorProcess::built_program());
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

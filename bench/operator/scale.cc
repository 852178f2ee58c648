#include "bench/operator/scale.h"

#include <functional>
#include <thread>

#include "api/names.h"
#include "bench/operator/load.h"
#include "bench/operator/process.h"
#include "common/error.h"
#include "http/server.h"

namespace outrigger::bench {
namespace {

using std::chrono::seconds;

constexpr seconds kRound{10};  // of questions to servers
constexpr seconds kSettle = 2 * kRound;
constexpr const char* kNamespace = "scale";

// In percent of one core.
double cpu_share(const Stage& stage, int time) {
  std::this_thread::sleep_for(kSettle);
  const auto before = cpu_time(stage.operator_id());
  std::this_thread::sleep_for(seconds(time));
  return (cpu_time(stage.operator_id()) - before).count() / time * 100;
}

/// Every server's status page: kwok's pods have addresses of the loopback.
class Pages {
 public:
  Pages() : server_(options()) {
    server_.route("GET", std::string(api::kStatusPath), [](const http::Request&) {
      return http::Response{
          200,
          R"({"role": "server", "state": "Training", "progress": {"epoch": 2, "step": 120, )"
          R"("totalSteps": 300, "percent": 40, "samplesPerSecond": 512, "loss": 0.12}, )"
          R"("split": {"plan": 3, "cut": "relu1", "sharePercent": 75, "stallPercent": 1}})",
          "application/json"};
    });
    server_.start();
  }

 private:
  static http::ServerOptions options() {
    http::ServerOptions options;
    options.port = api::kStatusPort;
    return options;
  }
  http::Server server_;
};

// Of an operator that asks nobody the CPU says nothing: nine of ten of what falls into whole
// rounds, as servers that started together are asked in the same part of a round.
void judge_questions(Table& table, const ScaleSize& size, double answered) {
  const seconds time = kSettle + seconds(size.seconds);
  const auto rounds = time / kRound;
  const double least = 0.9 * size.jobs * static_cast<double>(rounds);
  const auto a_second = [&](double questions) {
    return number(questions / static_cast<double>(time.count()), 1, "");
  };
  table.judge(std::to_string(size.jobs) + " jobs that run: questions to servers answered a second",
              a_second(answered), "least " + a_second(least), answered >= least);
}

// From exec until every job has been looked at and nothing is left to do.
double seconds_to_reconcile(Stage& stage, int jobs) {
  const auto begin = Steady::now();
  stage.start_operator(kNamespace);
  wait_until("every job is reconciled", std::chrono::milliseconds(50), [&] {
    const std::string page = stage.metrics();
    return metric(page, "controller_runtime_reconcile_total") >= jobs &&
           metric(page, "workqueue_depth", "\"trainingjob\"") == 0;
  });
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

}  // namespace

void measure_scale(Stage& stage, Table& table, const ScaleSize& size) {
  const std::string jobs = std::to_string(size.jobs) + " jobs";
  stage.make_namespace(kNamespace);
  stage.start_operator(kNamespace);
  PodCount count(stage.client(), kNamespace);
  post_all(size.jobs, [&](int number) { post(stage.client(), training_job(kNamespace, number)); });
  count.until(size.jobs * kPodsOfAJob);
  const double idle = cpu_share(stage, size.seconds);
  table.judge(jobs + " that wait: CPU", number(idle, 2, " %"), "most 1 %", idle < 1);

  const Pages pages;
  stage.start_kubelets();
  wait_until("all jobs run", seconds(1),
             [&] { return metric(stage.metrics(), "outrigger_jobs", "\"Running\"") >= size.jobs; });
  const double answered = metric(stage.metrics(), "outrigger_status_polls_total", "answered");
  const double polled = cpu_share(stage, size.seconds);
  const double asked =
      metric(stage.metrics(), "outrigger_status_polls_total", "answered") - answered;
  judge_questions(table, size, asked);
  table.judge(jobs + " that run, their servers polled: CPU", number(polled, 2, " %"), "most 5 %",
              polled < 5);
  const double resident = resident_mebibytes(stage.operator_id());
  table.judge("resident memory with " + std::to_string(size.jobs * kPodsOfAJob) + " own pods",
              number(resident, 1, " MiB"), "most 32 MiB", resident <= 32);
  stage.stop_operator();

  const double took = seconds_to_reconcile(stage, size.jobs);
  table.judge("from exec to the last of " + jobs + " reconciled", number(took, 2, " s"), "most 5 s",
              took < 5);
  std::this_thread::sleep_for(kSettle);
  const double before = resident_mebibytes(stage.operator_id());
  stage.stop_operator();
  post_all(size.other_pods,
           [&](int number) { post(stage.client(), other_pod(kNamespace, number)); });
  seconds_to_reconcile(stage, size.jobs);
  std::this_thread::sleep_for(kSettle);
  const double more = resident_mebibytes(stage.operator_id()) - before;
  table.judge("more memory with " + std::to_string(size.other_pods) + " pods of others",
              number(more, 1, " MiB"), "most 5 MiB", more < 5);
  stage.stop_operator();
}

}  // namespace outrigger::bench

#include "operator/controller/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/names.h"

namespace outrigger::controller {
namespace {

using api::Time;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<kube::Cached<JobRecord>> job(const std::string& name, const std::string& state) {
  auto record = std::make_shared<kube::Cached<JobRecord>>();
  record->key = {"team", name};
  record->value.job.metadata.name = name;
  record->value.job.metadata.namespace_name = "team";
  record->value.job.status.emplace();
  record->value.job.status->state = state;
  return record;
}

std::shared_ptr<kube::Cached<JobRecord>> running(const std::string& name, int percent) {
  auto record = job(name, "Running");
  auto& status = *record->value.job.status;
  status.start_time = Time(seconds(1000));
  status.restarts = 2;
  status.progress.emplace().percent = percent;
  status.split.emplace().stall_percent = 7;
  status.roles = {{.name = "worker", .desired = 4, .ready = 3}};
  return record;
}

std::string series(const std::string& metric, const std::string& name) {
  return "outrigger_job_" + metric + "{job_name=\"" + name + "\",job_namespace=\"team\"}";
}

class ControllerMetricsTest : public ::testing::Test {
 protected:
  std::string page() { return page_.exposition(); }

 private:
  telemetry::Metrics page_;

 protected:
  ControllerMetrics metrics_{page_};
};

TEST_F(ControllerMetricsTest, OnlyActiveJobsHaveSeriesOfTheirOwn) {
  const auto active = running("faces", 40);
  const auto waiting = job("later", "Queued");
  metrics_.count({active, waiting});
  EXPECT_THAT(page(), HasSubstr(series("progress_ratio", "faces") + " 0.4"));
  EXPECT_THAT(page(), HasSubstr(series("stall_ratio", "faces") + " 0.07"));
  EXPECT_THAT(page(), HasSubstr(series("restarts", "faces") + " 2"));
  EXPECT_THAT(page(), Not(HasSubstr("later")));

  const auto done = running("faces", 100);
  done->value.job.status->state = "Complete";
  done->value.job.status->completion_time = Time(seconds(2000));
  const auto next = running("later", 1);
  metrics_.count({done, next});
  EXPECT_THAT(page(), Not(HasSubstr("faces")));
  EXPECT_THAT(page(), HasSubstr(series("progress_ratio", "later") + " 0.01"));

  metrics_.count({});  // deleted
  EXPECT_THAT(page(), Not(HasSubstr("later")));
}

TEST_F(ControllerMetricsTest, CountsJobsByStateAndTheirWorkers) {
  metrics_.count({running("a", 1), running("b", 2), job("c", "Queued"), job("d", "")});
  EXPECT_THAT(page(), HasSubstr("outrigger_jobs{state=\"Running\"} 2"));
  EXPECT_THAT(page(), HasSubstr("outrigger_jobs{state=\"Queued\"} 1"));
  EXPECT_THAT(page(), HasSubstr("outrigger_jobs{state=\"Pending\"} 1"));
  EXPECT_THAT(page(), HasSubstr("outrigger_jobs{state=\"Failed\"} 0"));
  EXPECT_THAT(page(), HasSubstr("outrigger_workers{state=\"desired\"} 8"));
  EXPECT_THAT(page(), HasSubstr("outrigger_workers{state=\"ready\"} 6"));
}

TEST_F(ControllerMetricsTest, CountsNoWorkersOfJobsThatHaveEndedOrAreSuspended) {
  const auto done = running("done", 100);
  done->value.job.status->completion_time = Time(seconds(2000));
  const auto suspended = running("suspended", 1);
  suspended->value.job.status->start_time.reset();
  metrics_.count({running("a", 1), done, suspended});
  EXPECT_THAT(page(), HasSubstr("outrigger_workers{state=\"desired\"} 4"));
  EXPECT_THAT(page(), HasSubstr("outrigger_workers{state=\"ready\"} 3"));
}

TEST_F(ControllerMetricsTest, TellsRestartsByRoleAndCauseAndTheTimeToTheFirstStepOnce) {
  const auto before = job("faces", "Starting");
  Plan plan;
  plan.restart = RestartNote{.role = api::Role::kServer, .cause = "OOMKilled", .counted = true};
  plan.status.start_time = Time(seconds(1000));
  plan.status.progress.emplace().step = 1;
  plan.status.progress->updated_time = Time(seconds(1042));
  metrics_.told(before->value.job, plan);
  EXPECT_THAT(page(), HasSubstr("outrigger_job_restarts_total{cause=\"OOMKilled\",counted=\"true\","
                                "role=\"server\"} 1"));
  EXPECT_THAT(page(), HasSubstr("outrigger_job_first_step_seconds_sum 42"));
  api::TrainingJob later = before->value.job;
  later.status = plan.status;
  metrics_.told(later, plan);
  EXPECT_THAT(page(), HasSubstr("outrigger_job_first_step_seconds_count 1"));
}

TEST_F(ControllerMetricsTest, RestartsOfUsualCausesAreToldBeforeTheFirst) {
  for (const char* labels :
       {R"(cause="OOMKilled",counted="true")", R"(cause="Hung",counted="true")",
        R"(cause="Stopped",counted="false")", R"(cause="Disrupted",counted="false")",
        R"(cause="ExitCode139",counted="true")"})
    EXPECT_THAT(page(), HasSubstr("outrigger_job_restarts_total{" + std::string(labels) +
                                  ",role=\"server\"} 0\n"));
  EXPECT_THAT(page(), Not(HasSubstr("NumericalError"))) << "it ends a job";
}

TEST_F(ControllerMetricsTest, ShowsTheWorkOfEachQueueUnderTheNamesOfGo) {
  metrics_.queue_works("jobs", {.unfinished = seconds(8), .longest = seconds(5)});
  metrics_.queue_works("status", {});
  EXPECT_THAT(page(), HasSubstr("workqueue_unfinished_work_seconds{name=\"jobs\"} 8\n"));
  EXPECT_THAT(page(), HasSubstr("workqueue_longest_running_processor_seconds{name=\"jobs\"} 5\n"));
  EXPECT_THAT(page(),
              HasSubstr("workqueue_longest_running_processor_seconds{name=\"status\"} 0\n"));
}

TEST_F(ControllerMetricsTest, CountsEachJobThatEndsOnce) {
  EXPECT_THAT(page(), HasSubstr("outrigger_jobs_finished_total{result=\"Complete\"} 0"));
  const auto before = running("faces", 99);
  Plan plan;
  plan.status = *before->value.job.status;
  metrics_.told(before->value.job, plan);
  plan.status.completion_time = Time(seconds(2000));
  metrics_.told(before->value.job, plan);
  api::TrainingJob later = before->value.job;
  later.status = plan.status;
  metrics_.told(later, plan);
  EXPECT_THAT(page(), HasSubstr("outrigger_jobs_finished_total{result=\"Complete\"} 1"));
  EXPECT_THAT(page(), HasSubstr("outrigger_jobs_finished_total{result=\"Failed\"} 0"));
}

TEST(FailureSeries, ShowsTheLastFailureOfANamespaceWhateverBecomesOfItsJob) {
  telemetry::Metrics metrics;
  ControllerMetrics told(metrics);
  const auto shows = [&](const std::string& text) {
    return metrics.exposition().find("outrigger_job_last_failure_timestamp_seconds" + text) !=
           std::string::npos;
  };
  const auto ended = [](const std::string& ns, std::string_view condition, int at) {
    auto job = std::make_shared<kube::Cached<JobRecord>>();
    job->key = {ns, "faces"};
    auto& status = job->value.job.status.emplace();
    status.conditions.push_back({std::string(condition), api::ConditionStatus::kTrue});
    status.completion_time = api::Time(std::chrono::seconds(at));
    return job;
  };
  told.count({ended("well", api::kConditionComplete, 7)});
  EXPECT_FALSE(shows("{"));
  told.count({ended("team", api::kConditionFailed, 7), ended("team", api::kConditionFailed, 5)});
  EXPECT_TRUE(shows("{job_namespace=\"team\"} 7\n"));
  told.count({});
  EXPECT_TRUE(shows("{job_namespace=\"team\"} 7\n")) << "the jobs are deleted";
  api::TrainingJob before;
  before.metadata.namespace_name = "team";
  Plan plan;
  plan.status = *ended("team", api::kConditionFailed, 9)->value.job.status;
  told.told(before, plan);
  EXPECT_TRUE(shows("{job_namespace=\"team\"} 9\n")) << "before the cache shows it";
}

}  // namespace
}  // namespace outrigger::controller

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/thread_pool.h"
#include "tests/integration/training/training_run.h"

/// A worker that is given more cores while it works.
namespace outrigger::integration {
namespace {

cpu_set_t cores_of_this() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  return mask;
}

cpu_set_t first_of(const cpu_set_t& mask) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &mask)) CPU_SET(cpu, &one);
  return one;
}

void let_all_threads_use(pid_t process, const cpu_set_t& mask) {
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks))
    ::sched_setaffinity(std::stoi(task.path().filename()), sizeof mask, &mask);
}

TEST(GrowingWorker, JoinsAgainWithAsManyThreadsAsItMayUseByThen) {
  const cpu_set_t all = cores_of_this();
  if (available_cores() < 2) GTEST_SKIP() << "one core";
  TrainingRun run({.cut = "relu2", .share = 75, .steps = 1'000'000});
  run.start_server();
  const cpu_set_t one = first_of(all);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const size_t worker = run.start_worker({.threads = 0});
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
  const auto has_said = [&](const std::string& text, int times) {
    const std::string log = run.worker_log(worker);
    int found = 0;
    for (size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at) ++found;
    return found >= times;
  };
  const auto says = [&](const std::string& text, int times) {
    for (int i = 0; i < 600 && !has_said(text, times); ++i) ::usleep(100'000);
    return has_said(text, times);
  };
  const std::string joined = "joined 127.0.0.1";
  ASSERT_TRUE(says(joined, 1)) << run.worker_log(worker);

  let_all_threads_use(run.worker_process(worker), all);
  EXPECT_TRUE(says("has 1 threads", 1)) << run.worker_log(worker);
  EXPECT_TRUE(says(joined, 2)) << run.worker_log(worker);
  run.wait_for_step(run.step() + 5);
  EXPECT_TRUE(run.worker_runs(worker)) << run.worker_log(worker);
}

}  // namespace
}  // namespace outrigger::integration

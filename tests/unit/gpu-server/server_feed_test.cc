#include "gpu-server/links/server_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "tests/unit/gpu-server/server_feed_fixture.h"

namespace outrigger::gpu_server {
namespace {

TEST_F(ServerFeedTest, DropsWhatArrivesWhileItsSessionsAreEnded) {
  auto feed = make();
  PlayedWorker first;
  PlayedWorker second;
  for (PlayedWorker* worker : {&first, &second}) {
    feed->serve(worker->server_end());
    worker->introduce();
    worker->until_heard();
  }
  ASSERT_EQ(feed->snapshot().workers, 2U);
  first.seen().on_close = [&] {
    second.say(feed::Pull{1});
    second.until_heard();
  };
  feed.reset();
  EXPECT_FALSE(first.seen().on_close) << "the session was ended";
}

TEST_F(ServerFeedTest, LosesAWorkerThatCannotBeSentWhatItNeeds) {
  PlayedWorker worker({.max_frame_bytes = 4096});
  const auto feed = make({.numerics = "any"});
  feed->serve(worker.server_end());
  worker.introduce({.name = "w", .version = OUTRIGGER_VERSION, .numerics = "any", .memory = 1});
  worker.until_heard();
  const auto large = std::make_shared<const std::vector<float>>(4096);
  feed->begin_scoring({.dataset = &dataset_, .parameters = large, .buffers = large});
  EXPECT_THAT(worker.hear_the_end(), testing::HasSubstr("4096"));
  until_joined(*feed, 0);
  EXPECT_FALSE(feed->wait_for_scores()) << "nobody is left to make them";
}

TEST_F(ServerFeedTest, DoesNotBlameTheDataForWhatItsOwnWorkerEndsWith) {
  const auto feed = make();
  feed->fail_local(std::make_exception_ptr(InvalidInput("a pass is too large")));
  try {
    feed->take(0, 0);
    FAIL() << "nobody is left to make it";
  } catch (const InvalidInput&) {
    FAIL() << "as bad data";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the local worker ended: a pass is too large");
  }
}

TEST_F(ServerFeedTest, KnowsAWorkerByANameThatFilesCanHold) {
  PlayedWorker worker;
  const auto feed = make();
  feed->serve(worker.server_end());
  worker.introduce({.name = "caf\xe9", .version = OUTRIGGER_VERSION});
  worker.until_heard();
  EXPECT_THAT(feed->snapshot().worker_names, testing::ElementsAre("caf\uFFFD (a test)"));
  EXPECT_THAT(trace_.json(), testing::HasSubstr("caf\uFFFD"));
}

TEST_F(ServerFeedTest, TellsOfFailedReadsWithTheWorkersNameNowAndThen) {
  PlayedWorker worker;
  const auto feed = make();
  feed->serve(worker.server_end());
  worker.introduce();
  worker.until_heard();
  const auto told_of = [&](const feed::WorkKey& key, const std::string& reason) {
    testing::internal::CaptureStderr();
    worker.say(feed::ReadFailed{key, reason});
    worker.until_heard();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(told_of({}, "train/a: no such file"),
              testing::HasSubstr("worker w (a test) could not read: train/a: no such file"));
  EXPECT_EQ(told_of({}, "train/b: no such file"), "");
  clock_.advance(std::chrono::seconds(31));
  EXPECT_THAT(told_of({.step = feed::kFirstEvaluation}, "val/c: no such file"),
              testing::HasSubstr("val/c: no such file; it evaluates no more for a while (1 more "
                                 "failed since the last such line)"));
}

TEST_F(ServerFeedTest, SendsTheNewestCommitWithWhatIsNext) {
  PlayedWorker worker;
  const auto feed = make({.crossings = {{0, {ElementType::kUint8, {1, 1, 1}}}}});
  feed->serve(worker.server_end());
  worker.introduce();
  worker.say(feed::Pull{4});
  for (int i = 0; i < 4; ++i) {
    worker.say(feed::MicroBatch{
        .key = std::get<feed::Lease>(worker.hear()).key,
        .tensor = std::make_shared<const Tensor>(ElementType::kUint8, Shape{2, 1, 1, 1})});
  }
  for (const uint64_t step : {0u, 1u}) {
    for (const uint32_t index : {0u, 1u}) static_cast<void>(feed->take(step, index));
    static_cast<void>(feed->commit(step));
  }
  worker.say(feed::Pull{1});
  EXPECT_EQ(std::get<feed::Committed>(worker.hear()).step, 2U) << "nobody waited for it";
  EXPECT_EQ(std::get<feed::Lease>(worker.hear()).key.step, 2U);
}

TEST_F(ServerFeedTest, SendsACommitByWhichStemsGoAtOnce) {
  const JoinTerms terms{.numerics = "any", .crossings = {{1, {ElementType::kFloat32, {1, 1, 1}}}}};
  feed::Coordinator coordinator(
      {.total_steps = 4, .micro_batches = 2, .micro_batch = 2},
      feed::SampleOrder({.seed = 1, .samples = 8}), dataset_,
      {.number = 1, .cut = 1, .stems_away = 2, .stem_trains = true, .stem_parameters = 1});
  ServerFeed feed(std::move(coordinator), terms, worker::WireContext{}, clock_, trace_);
  PlayedWorker worker;
  feed.serve(worker.server_end());
  worker.introduce(
      {.name = "w", .version = OUTRIGGER_VERSION, .numerics = "any", .memory = 1 << 30});
  worker.until_heard();
  const auto weight = std::make_shared<const std::vector<float>>(1);
  feed.publish_stem(0, weight, std::make_shared<const std::vector<float>>());
  worker.say(feed::Pull{2});
  for (int leases = 0; leases < 2;) {
    const feed::ServerMessage message = worker.hear();
    const auto* lease = std::get_if<feed::Lease>(&message);
    if (lease == nullptr) continue;
    ++leases;
    worker.say(feed::MicroBatch{
        .key = lease->key,
        .tensor = std::make_shared<const Tensor>(ElementType::kFloat32, Shape{2, 1, 1, 1})});
  }
  for (const uint32_t index : {0u, 1u}) static_cast<void>(feed.take(0, index));
  static_cast<void>(feed.commit(0));
  EXPECT_EQ(std::get<feed::Committed>(worker.hear()).step, 1U) << "nothing else is said";
}

feed::Farewell answer_to(ServerFeed& feed, const worker::Hello& hello) {
  PlayedWorker worker;
  feed.serve(worker.server_end());
  worker.introduce(hello);
  return std::get<feed::Farewell>(worker.hear());
}

TEST_F(ServerFeedTest, RefusesForGoodWhatDoesNotMendItself) {
  JoinTerms terms;
  terms.setup.probe = {dataset_.at(0)};
  const auto feed = make(terms);
  const worker::Hello right{.name = "w", .version = OUTRIGGER_VERSION};
  worker::Hello other_version = right;
  other_version.version = "0.0.1";
  worker::Hello other_data = right;
  other_data.probe.front() = std::byte{1};
  for (const worker::Hello& hello : {other_version, other_data}) {
    const feed::Farewell farewell = answer_to(*feed, hello);
    EXPECT_TRUE(farewell.refused) << farewell.reason;
    EXPECT_FALSE(farewell.again) << farewell.reason;
  }
  worker::Hello unreadable = right;
  unreadable.problem = "no such file";
  const feed::Farewell farewell = answer_to(*feed, unreadable);
  EXPECT_TRUE(farewell.again) << "its mount may come back";
  EXPECT_FALSE(farewell.refused);
}

/// No thread can be made until it goes out of scope: there is no room for such a stack.
class NoThreads {
 public:
  NoThreads() {
    ::pthread_getattr_default_np(&former_);
    pthread_attr_t huge;
    ::pthread_attr_init(&huge);
    ::pthread_attr_setstacksize(&huge, size_t{1} << 46);
    ::pthread_setattr_default_np(&huge);
    ::pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    ::pthread_setattr_default_np(&former_);
    ::pthread_attr_destroy(&former_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t former_{};
};

TEST_F(ServerFeedTest, SendsAWorkerAwayForWhichThereIsNoThread) {
  const auto feed = make();
  PlayedWorker worker;
  {
    const NoThreads none;
    EXPECT_THROW(feed->serve(worker.server_end()), IoError);
  }
  EXPECT_THAT(worker.hear_the_end(), testing::HasSubstr("closed"));
  PlayedWorker next;
  feed->serve(next.server_end());
  next.introduce();
  next.until_heard();
  EXPECT_EQ(feed->snapshot().workers, 1U);
}

}  // namespace
}  // namespace outrigger::gpu_server

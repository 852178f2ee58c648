#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "tests/unit/feed/coordinator_fixture.h"

/// Samples that are no images, and samples that cannot be read.
namespace outrigger::feed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(CoordinatorTest, ABrokenSampleIsReplacedAndTooManyFailTheJobWithTheList) {
  Coordinator feed = make(pixels());
  const WorkerId worker = join(feed, 1);
  const auto lease = sent<Lease>(feed, worker);
  feed.receive(worker, Broken{lease[0].key, {{1, "cut short"}}}, clock_.now());
  feed.receive(worker, Pull{1}, clock_.now());
  const auto again = sent<Lease>(feed, worker);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].samples[0].id, lease[0].samples[0].id);
  EXPECT_NE(again[0].samples[1].id, lease[0].samples[1].id);
  feed.receive(worker, Broken{again[0].key, {{0, "no image"}}}, clock_.now());
  try {
    feed.try_take(0, 0, clock_.now());
    FAIL() << "two of eight broken, one allowed";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("2 of 8 samples are broken"));
    EXPECT_THAT(error.what(), testing::HasSubstr(lease[0].samples[1].sample.path + ": cut short"));
  }
}

/// Two epochs with one worker that does all it is given, as far ahead as it may.
class TwoEpochsTest : public CoordinatorTest {
 protected:
  /// `answer` gives back a lease's result, or what was broken. Returns what filled the slots.
  template <typename Answer>
  std::vector<uint32_t> train(uint32_t leases, const Answer& answer) {
    worker_ = join(feed_, leases);
    std::vector<uint32_t> filled;
    for (uint64_t step = 0; step < 4; ++step) {
      for (auto given = sent<Lease>(feed_, worker_); !given.empty();
           given = sent<Lease>(feed_, worker_)) {
        for (const Lease& lease : given) {
          answer(lease);
          feed_.receive(worker_, Pull{1}, clock_.now());
        }
      }
      for (const uint32_t index : {0, 1})
        EXPECT_TRUE(feed_.try_take(step, index, clock_.now())) << step;
      for (const AuditItem& item : feed_.commit(step, clock_.now()))
        filled.insert(filled.end(), item.samples.begin(), item.samples.end());
    }
    return filled;
  }
  void answer_broken(const Lease& lease, const LeaseSample& sample, const std::string& reason,
                     bool always = false) {
    const auto position = static_cast<uint32_t>(&sample - lease.samples.data());
    feed_.receive(worker_, Broken{lease.key, {{position, reason, always}}}, clock_.now());
  }
  Coordinator feed_ = make(pixels());
  SampleOrder order_{{.seed = 1, .samples = 8}};
  WorkerId worker_ = 0;
};

// Another slot shows another part of the image, and when it is tried depends on who works.
TEST_F(TwoEpochsTest, ASampleThatIsBrokenInOneSlotFillsOthersAllTheSame) {
  const auto filled = train(100, [&](const Lease& lease) {
    const LeaseSample& first = lease.samples[0];
    if (first.slot == 0 && first.id == order_.at(0)) {
      answer_broken(lease, first, "damaged");
    } else {
      deliver(feed_, worker_, lease);
    }
  });
  ASSERT_THAT(filled, SizeIs(16));
  EXPECT_EQ(filled[0], order_.at(0, 1));
  for (uint64_t slot = 1; slot < 16; ++slot) EXPECT_EQ(filled[slot], order_.at(slot)) << slot;
  ASSERT_THAT(feed_.replacements(), SizeIs(1));
  EXPECT_EQ(feed_.replacements()[0].broken, order_.at(0));
  EXPECT_EQ(feed_.replacements()[0].by, order_.at(0, 1));
  EXPECT_EQ(feed_.replacements()[0].reason, "damaged");
}

// Each slot is filled, and each replacement told, as if it had been tried there, too.
TEST_F(TwoEpochsTest, ASampleThatIsNoImageInAnySlotIsTriedOnce) {
  const uint32_t none = order_.at(0);
  int tried = 0;
  const auto filled = train(1, [&](const Lease& lease) {
    const auto at = std::ranges::find(lease.samples, none, &LeaseSample::id);
    if (at == lease.samples.end()) return deliver(feed_, worker_, lease);
    answer_broken(lease, *at, "empty", true);
    ++tried;
  });
  EXPECT_EQ(tried, 1);
  ASSERT_THAT(filled, SizeIs(16));
  std::vector<uint64_t> replaced;
  for (uint64_t slot = 0; slot < 16; ++slot) {
    uint32_t before = 0;
    while (order_.at(slot, before) == none) ++before;
    EXPECT_EQ(filled[slot], order_.at(slot, before)) << slot;
    if (before > 0) replaced.push_back(slot);
  }
  EXPECT_THAT(replaced, SizeIs(2)) << "one in each epoch";
  ASSERT_THAT(feed_.replacements(), SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(feed_.replacements()[i].slot, replaced[i]);
    EXPECT_EQ(feed_.replacements()[i].broken, none);
    EXPECT_EQ(feed_.replacements()[i].by, filled[replaced[i]]);
    EXPECT_EQ(feed_.replacements()[i].reason, "empty");
  }
}

TEST_F(CoordinatorTest, WhatWasBrokenBeforeAResumeIsTriedAgainAndCounted) {
  SampleOrder order({.seed = 1, .samples = 8});
  CoordinatorOptions resumed = options();
  resumed.known_broken = {order.at(0)};
  Coordinator feed = make(pixels(), resumed);
  const WorkerId worker = join(feed, 1);
  const auto lease = sent<Lease>(feed, worker);
  ASSERT_THAT(lease, SizeIs(1));
  EXPECT_EQ(lease[0].samples[0].id, order.at(0));
  feed.receive(worker, Broken{lease[0].key, {{1, "cut short"}}}, clock_.now());
  try {
    feed.throw_if_failed();
    FAIL() << "two of eight broken, one allowed";
  } catch (const InvalidInput& error) {
    const auto path_of = [&](uint64_t slot) { return dataset_.at(order.at(slot)).path; };
    EXPECT_THAT(error.what(), testing::HasSubstr("2 of 8 samples are broken"));
    EXPECT_THAT(error.what(), testing::HasSubstr(path_of(0) + ": known before"));
    EXPECT_THAT(error.what(), testing::HasSubstr(path_of(1) + ": cut short"));
  }
}

// What is told must not depend on who found what first.
TEST_F(TwoEpochsTest, AReplacementIsToldWithTheReasonOfItsOwnSlot) {
  // Of step 1 and of step 2, which is made before step 1 is told.
  const auto is_of_step_one = [&](uint32_t id) {
    for (uint64_t slot = 4; slot < 8; ++slot) {
      if (order_.at(slot) == id) return true;
    }
    return false;
  };
  uint64_t again = 8;
  while (!is_of_step_one(order_.at(again))) ++again;
  ASSERT_LT(again, 12U);
  const uint32_t damaged = order_.at(again);
  train(100, [&](const Lease& lease) {
    const auto at = std::ranges::find(lease.samples, damaged, &LeaseSample::id);
    if (at == lease.samples.end()) return deliver(feed_, worker_, lease);
    answer_broken(lease, *at, "damaged in slot " + std::to_string(at->slot));
  });
  ASSERT_THAT(feed_.replacements(), SizeIs(2));
  for (const Replacement& told : feed_.replacements())
    EXPECT_EQ(told.reason, "damaged in slot " + std::to_string(told.slot));
}

TEST_F(CoordinatorTest, NothingButBrokenSamplesFailsTheJobWhateverItAllows) {
  CoordinatorOptions given = options();
  given.max_bad_fraction = 1;
  for (const bool always : {false, true}) {
    Coordinator feed = make(pixels(), given);
    const WorkerId worker = join(feed, 1);
    for (auto leases = sent<Lease>(feed, worker); !leases.empty();
         leases = sent<Lease>(feed, worker)) {
      const Broken broken{leases[0].key, {{0, "no image", always}, {1, "no image", always}}};
      feed.receive(worker, broken, clock_.now());
      feed.receive(worker, Pull{1}, clock_.now());
    }
    EXPECT_THROW(feed.throw_if_failed(), InvalidInput) << always;
    ASSERT_EQ(feed.ledger().steps().size(), 1u);
    EXPECT_NO_THROW(static_cast<void>(feed.plan_of(1, clock_.now()))) << "draws a step";
  }
}

TEST_F(CoordinatorTest, BrokenSamplesInNoOrderBreakTheProtocol) {
  Coordinator feed = make(pixels());
  const WorkerId worker = join(feed, 1);
  const auto lease = sent<Lease>(feed, worker);
  using Places = std::vector<std::pair<uint32_t, uint32_t>>;
  for (const auto& [first, second] : Places{{0, 0}, {1, 0}, {0, 2}}) {
    const Broken broken{lease[0].key, {{first, "no image"}, {second, "no image"}}};
    EXPECT_THROW(feed.receive(worker, broken, clock_.now()), InvalidInput) << first << second;
  }
  EXPECT_THAT(feed.broken(), IsEmpty());
}

TEST_F(CoordinatorTest, AFailedReadSetsTheWorkerAsideAndSaysNothingOfTheSample) {
  Coordinator feed = make(pixels());
  const WorkerId worker = join(feed, 1);
  const auto lease = sent<Lease>(feed, worker);
  feed.receive(worker, ReadFailed{lease[0].key, "stale handle"}, clock_.now());
  feed.receive(worker, Pull{1}, clock_.now());
  EXPECT_THAT(sent<Lease>(feed, worker), IsEmpty());
  EXPECT_THAT(feed.broken(), IsEmpty());
  clock_.advance(seconds(6));
  feed.tick(clock_.now());
  const auto again = sent<Lease>(feed, worker);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].samples[0].id, lease[0].samples[0].id);
}

/// The server's own worker tries, and cannot read.
class UnreadableTest : public CoordinatorTest {
 protected:
  UnreadableTest() { feed_.receive(local_, Pull{1}, clock_.now()); }
  void fail_for(Duration time) {
    for (const TimePoint end = clock_.now() + time; clock_.now() < end;) {
      const auto lease = sent<Lease>(feed_, local_);
      ASSERT_THAT(lease, SizeIs(1));
      feed_.receive(local_, ReadFailed{lease[0].key, "input/output error"}, clock_.now());
      feed_.receive(local_, Pull{1}, clock_.now());
      clock_.advance(milliseconds(500));
      feed_.tick(clock_.now());
    }
  }
  Coordinator feed_ = make(pixels());
  const WorkerId local_ = feed_.add_worker({"local", true, true}, clock_.now());
};

TEST_F(UnreadableTest, StorageThatIsAwayForAWhileFailsNothing) {
  fail_for(options().unreadable_after);
  EXPECT_NO_THROW(feed_.throw_if_failed()) << "20 failures";
  const auto lease = sent<Lease>(feed_, local_);
  ASSERT_THAT(lease, SizeIs(1));
  deliver(feed_, local_, lease[0]);
  EXPECT_TRUE(feed_.try_take(0, 0, clock_.now()));
}

TEST_F(UnreadableTest, StorageThatStaysAwayFailsTheJobWithTheLastReason) {
  fail_for(options().unreadable_after + milliseconds(500));
  try {
    feed_.throw_if_failed();
    FAIL() << "unread for too long";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("failed 21 times in 10 s, last on local: input/output error"));
  }
}

TEST_F(UnreadableTest, FewFailuresFailNothingHoweverFarApart) {
  for (uint32_t i = 0; i < options().max_read_failures; ++i) {
    fail_for(milliseconds(1));
    clock_.advance(std::chrono::hours(1));
    feed_.tick(clock_.now());
  }
  EXPECT_NO_THROW(feed_.throw_if_failed());
}

TEST_F(CoordinatorTest, AWorkerThatCannotReadAnEvaluationsSetTrainsOnAndTheServerReadsThem) {
  Coordinator feed = make(pixels());
  static_cast<void>(feed.plan_of(0, clock_.now()));
  feed.begin_evaluation(dataset_, 8);
  const WorkerId remote = join(feed, 5);
  const auto leases = sent<Lease>(feed, remote);
  ASSERT_THAT(leases, SizeIs(5)) << "two steps and a batch";
  const auto evaluation = std::ranges::find(leases, WorkKind::kEvaluate, &Lease::kind);
  ASSERT_NE(evaluation, leases.end());
  feed.receive(remote, ReadFailed{evaluation->key, "no such file"}, clock_.now());
  feed.receive(remote, Pull{8}, clock_.now());
  EXPECT_THAT(sent<Lease>(feed, remote), IsEmpty());
  const WorkerId local = feed.add_worker({"local", true, true}, clock_.now());
  feed.receive(local, Pull{1}, clock_.now());
  const auto again = sent<Lease>(feed, local);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].kind, WorkKind::kEvaluate);
  deliver(feed, local, again[0]);
  EXPECT_TRUE(feed.try_take_evaluation(0, clock_.now()));
  for (const Lease& lease : leases) {
    if (lease.kind == WorkKind::kForward) deliver(feed, remote, lease);
  }
  for (const uint32_t index : {0, 1}) EXPECT_TRUE(feed.try_take(0, index, clock_.now())) << index;
  feed.commit(0, clock_.now());
  EXPECT_THAT(sent<Lease>(feed, remote), SizeIs(2)) << "of training it gets more";
}

}  // namespace
}  // namespace outrigger::feed

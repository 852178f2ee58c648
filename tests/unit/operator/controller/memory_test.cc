#include "operator/controller/memory.h"

#include <gmock/gmock.h>

#include "kube/object/object.h"

namespace outrigger::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

Json pod(const std::string& name, const std::string& version, bool deleting = false) {
  Json object{{"metadata",
               {{"name", name},
                {"uid", "uid-of-" + name},
                {"resourceVersion", version},
                {"labels",
                 {{"outrigger.dev/job-name", "faces"},
                  {"outrigger.dev/role", "worker"},
                  {"outrigger.dev/index", "0"},
                  {"outrigger.dev/attempt", "1"}}}}}};
  if (deleting) object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  return object;
}

kube::CachedPtr<PodRecord> cached(const Json& object) {
  auto record = std::make_shared<kube::Cached<PodRecord>>();
  record->key = kube::key_of(object);
  record->uid = object["metadata"]["uid"];
  record->resource_version = object["metadata"]["resourceVersion"];
  record->value = keep_pod(object);
  return record;
}

std::vector<std::string> names(const std::vector<Pod>& pods) {
  std::vector<std::string> found;
  for (const Pod& one : pods) found.push_back(one.name + (one.deleting ? " ends" : ""));
  return found;
}

TEST(Memory, APodThatWeMadeIsThereBeforeTheCacheShowsIt) {
  JobMemory memory("uid");
  memory.wrote_pod(pod("faces-worker-0-0", "5"), TimePoint());
  EXPECT_THAT(names(memory.overlay({}, TimePoint())), ElementsAre("faces-worker-0-0"));
  const auto shown = cached(pod("faces-worker-0-0", "5"));
  EXPECT_THAT(names(memory.overlay({shown}, TimePoint())), ElementsAre("faces-worker-0-0"));
}

TEST(Memory, NumbersAreWrittenOnceASecondAtMost) {
  JobMemory memory("uid");
  const TimePoint begin;
  EXPECT_EQ(memory.may_wait(begin), seconds(0));
  memory.wrote_job(std::make_shared<kube::Cached<JobRecord>>(), begin);
  EXPECT_EQ(memory.may_wait(begin), seconds(1));
  EXPECT_EQ(memory.may_wait(begin + std::chrono::milliseconds(400)),
            std::chrono::milliseconds(600));
  EXPECT_EQ(memory.may_wait(begin + seconds(3)), seconds(0));
}

TEST(Memory, AJobIsKnownAgainInTheVersionThatWeWrote) {
  JobMemory memory("uid");
  EXPECT_EQ(memory.own_write("7"), nullptr);
  auto record = std::make_shared<kube::Cached<JobRecord>>();
  record->resource_version = "7";
  memory.wrote_job(record, TimePoint());
  EXPECT_EQ(memory.own_write("7"), record);
  EXPECT_EQ(memory.own_write("8"), nullptr);
}

TEST(Memory, APodThatTheCacheShowedAndThatIsGoneStaysGone) {
  JobMemory memory("uid");
  memory.wrote_pod(pod("faces-worker-0-0", "5"), TimePoint());
  memory.overlay({cached(pod("faces-worker-0-0", "6"))}, TimePoint());
  EXPECT_THAT(memory.overlay({}, TimePoint()), IsEmpty());
}

TEST(Memory, APodThatCameAndWentBetweenTwoLooksStaysGone) {
  JobMemory memory("uid");
  memory.wrote_pod(pod("faces-worker-0-0", "5"), TimePoint());
  EXPECT_TRUE(memory.awaits_caches());
  memory.pod_is_gone("uid-of-faces-worker-0-0", TimePoint());
  EXPECT_FALSE(memory.awaits_caches());
  EXPECT_THAT(memory.overlay({}, TimePoint()), IsEmpty());
}

// A pod without a node goes at once: the watch may tell so before the answer to our delete is here.
TEST(Memory, AnAnswerThatComesAfterTheEndBringsNoPodBack) {
  JobMemory memory("uid");
  memory.pod_is_gone("uid-of-faces-worker-0-0", TimePoint());
  memory.wrote_pod(pod("faces-worker-0-0", "9", true), TimePoint());
  EXPECT_THAT(memory.overlay({}, TimePoint()), IsEmpty());
  EXPECT_FALSE(memory.awaits_caches());
}

TEST(Memory, APodThatWasReadIsThereWhateverTheWatchSaid) {
  JobMemory memory("uid");
  memory.pod_is_gone("uid-of-faces-worker-0-0", TimePoint());
  memory.found_pod(pod("faces-worker-0-0", "9"), TimePoint());
  EXPECT_THAT(names(memory.overlay({}, TimePoint())), ElementsAre("faces-worker-0-0"));
}

TEST(Memory, ADeletionThatWeAskedForIsThereBeforeTheCacheShowsIt) {
  JobMemory memory("uid");
  const auto before = cached(pod("faces-worker-0-0", "5"));
  memory.wrote_pod(pod("faces-worker-0-0", "9", true), TimePoint());
  EXPECT_THAT(names(memory.overlay({before}, TimePoint())), ElementsAre("faces-worker-0-0 ends"));
}

TEST(Memory, WhatTheCacheShowsNewerWins) {
  JobMemory memory("uid");
  memory.wrote_pod(pod("faces-worker-0-0", "5"), TimePoint());
  const auto newer = cached(pod("faces-worker-0-0", "12", true));
  EXPECT_THAT(names(memory.overlay({newer}, TimePoint())), ElementsAre("faces-worker-0-0 ends"));
}

TEST(Memory, APodThatNoWatchShowsForAMinuteIsThereUntilSomebodyHasLooked) {
  JobMemory memory("uid");
  const auto late = TimePoint() + seconds(61);
  memory.wrote_pod(pod("faces-worker-0-0", "5"), TimePoint());
  EXPECT_THAT(memory.unseen_pods({}, TimePoint() + seconds(60)), IsEmpty());
  EXPECT_THAT(memory.unseen_pods({cached(pod("faces-worker-0-0", "5"))}, late), IsEmpty());
  EXPECT_EQ(memory.unseen_pods({cached(pod("faces-worker-0-0", "4"))}, late).size(), 1U);
  const auto unseen = memory.unseen_pods({}, late);
  ASSERT_EQ(unseen.size(), 1U);
  EXPECT_EQ(unseen[0].name, "faces-worker-0-0");
  EXPECT_THAT(names(memory.overlay({}, late)), ElementsAre("faces-worker-0-0"));
  memory.found_pod(pod("faces-worker-0-0", "7"), late);
  EXPECT_THAT(memory.unseen_pods({}, late), IsEmpty());
  memory.pod_is_gone(unseen[0].uid, late);
  EXPECT_THAT(memory.overlay({}, late), IsEmpty());
}

TEST(Memory, AJobWrittenIsRememberedUntilTheCacheShowsIt) {
  JobMemory memory("uid");
  const auto version = [](const std::string& number) {
    auto job = std::make_shared<kube::Cached<JobRecord>>();
    job->resource_version = number;
    return kube::CachedPtr<JobRecord>(job);
  };
  EXPECT_FALSE(memory.cache_shows("6"));
  memory.wrote_job(version("7"), TimePoint());
  EXPECT_FALSE(memory.cache_shows("6"));
  ASSERT_NE(memory.own_write(), nullptr);
  EXPECT_EQ(memory.own_write()->resource_version, "7");
  EXPECT_TRUE(memory.cache_shows("7"));
  EXPECT_EQ(memory.own_write(), nullptr);
  memory.wrote_job(version("9"), TimePoint());
  EXPECT_FALSE(memory.cache_shows("10")) << "somebody else's";
  EXPECT_EQ(memory.own_write(), nullptr);
}

TEST(Memory, ARefusalIsForgottenWhenTheObjectIsMadeOrAMinuteHasPassed) {
  JobMemory memory("uid");
  const api::Time now;
  memory.refused({"Pod a", api::Role::kWorker, RefusalCause::kQuota, "full", now});
  memory.refused({"Pod b", api::Role::kWorker, RefusalCause::kQuota, "full", now + seconds(30)});
  memory.refused({"Pod c", api::Role::kWorker, RefusalCause::kQuota, "full", now + seconds(30)});
  EXPECT_EQ(memory.refusals(now + seconds(60)).size(), 3U);
  memory.created("Pod b");
  ASSERT_EQ(memory.refusals(now + seconds(61)).size(), 1U);
  EXPECT_EQ(memory.refusals(now + seconds(61))[0].object, "Pod c");
}

TEST(Memory, AChildThatWeMadeIsThereBeforeTheCacheShowsIt) {
  JobMemory memory("uid");
  memory.wrote_child("Service s", 2, JobMemory::Write::kChanged, TimePoint());
  EXPECT_TRUE(memory.awaits_caches());
  EXPECT_EQ(memory.child("Service s", std::nullopt, TimePoint()), 2);
  EXPECT_EQ(memory.child("Service s", 1, TimePoint()), 2);  // our patch is newer
  EXPECT_EQ(memory.child("Service s", 2, TimePoint()), 2);
  EXPECT_FALSE(memory.awaits_caches());
  EXPECT_EQ(memory.child("Service s", std::nullopt, TimePoint()), std::nullopt);
}

TEST(Memory, AChildThatWeWroteForLessIsNotWhatTheCacheShowsYet) {
  JobMemory memory("uid");
  memory.wrote_child("NetworkPolicy n", 1, JobMemory::Write::kChanged, TimePoint());
  EXPECT_EQ(memory.child("NetworkPolicy n", 4, TimePoint()), 1);
  EXPECT_EQ(memory.child("NetworkPolicy n", 1, TimePoint()), 1);
  EXPECT_EQ(memory.child("NetworkPolicy n", 4, TimePoint()), 4) << "somebody else's write";
}

TEST(Memory, WhatAnotherMadeOfAChildBeforeTheCacheFirstShowedItIsSeenAtOnce) {
  JobMemory memory("uid");
  memory.wrote_child("NetworkPolicy n", 1, JobMemory::Write::kMade, TimePoint());
  EXPECT_TRUE(memory.is_own_write("NetworkPolicy n", 1));
  EXPECT_FALSE(memory.is_own_write("NetworkPolicy n", 4));
  EXPECT_FALSE(memory.is_own_write("Service s", 1));
  EXPECT_EQ(memory.child("NetworkPolicy n", 4, TimePoint()), 4);
  EXPECT_FALSE(memory.awaits_caches());
}

TEST(Memory, AChildThatIsGoneBeforeAnyWatchShowedItIsBelievedForAMinuteAtMost) {
  JobMemory memory("uid");
  memory.wrote_child("Service s", 1, JobMemory::Write::kMade, TimePoint());
  EXPECT_EQ(memory.child("Service s", std::nullopt, TimePoint() + seconds(60)), 1);
  EXPECT_EQ(memory.child("Service s", std::nullopt, TimePoint() + seconds(61)), std::nullopt);
  EXPECT_FALSE(memory.awaits_caches());
}

TEST(Memory, WhatIsGoneMakesRoomForWhatWasRefusedForIt) {
  JobMemory memory("uid");
  const api::Time now;
  memory.refused({"Service s", std::nullopt, RefusalCause::kLeftover, "in the way", now});
  memory.refused({"ConfigMap m", std::nullopt, RefusalCause::kLeftover, "in the way", now});
  memory.child_is_gone({"Service s", "a", "former"});
  ASSERT_EQ(memory.refusals(now).size(), 1U);
  EXPECT_EQ(memory.refusals(now)[0].object, "ConfigMap m");
}

TEST(Memory, AFormerJobsChildThatIsGoneIsNotOurs) {
  JobMemory memory("uid");
  memory.wrote_child("Service s", 1, JobMemory::Write::kMade, TimePoint());
  memory.child_is_gone({"Service s", "a", "former"});
  EXPECT_EQ(memory.child("Service s", std::nullopt, TimePoint()), 1);
  memory.child_is_gone({"Service s", "b", "uid"});
  EXPECT_EQ(memory.child("Service s", std::nullopt, TimePoint()), std::nullopt);
}

TEST(Memory, WhatWeDeletedIsNotThereUntilTheCacheShowsThatItIsGone) {
  JobMemory memory("uid");
  memory.wrote_child("ConfigMap m", 1, JobMemory::Write::kMade, TimePoint());
  memory.dropped("ConfigMap m", "a");
  memory.dropped("Workload w", "b");
  EXPECT_EQ(memory.child("ConfigMap m", std::nullopt, TimePoint()), std::nullopt);
  EXPECT_TRUE(memory.dropped().contains("a"));
  EXPECT_TRUE(memory.dropped().contains("b"));
  memory.child_is_gone({"ConfigMap m", "a", "uid"});
  EXPECT_FALSE(memory.dropped().contains("a"));
  EXPECT_TRUE(memory.dropped().contains("b"));
}

TEST(Memory, ASecretIsMadeSureOfAgainWithEachAttempt) {
  JobMemory memory("uid");
  EXPECT_EQ(memory.secret_age(1, TimePoint()), std::nullopt);
  EXPECT_FALSE(memory.had_secret());
  memory.wrote_secret(1, TimePoint());
  EXPECT_EQ(memory.secret_age(1, TimePoint() + seconds(40)), seconds(40));
  EXPECT_EQ(memory.secret_age(2, TimePoint() + seconds(40)), std::nullopt);
  EXPECT_TRUE(memory.had_secret());
  memory.wrote_secret(1, TimePoint() + seconds(40));
  EXPECT_EQ(memory.secret_age(1, TimePoint() + seconds(50)), seconds(10));
}

TEST(Memory, DemandIsKeptForAsLongAsItIsAskedForAndNotAtAllWhereNobodyAsks) {
  JobMemory memory("uid");
  const api::Time start;
  ServerReport report;
  report.desired_workers = 3;
  memory.reported(report, start);
  EXPECT_THAT(memory.demand(seconds(30)), IsEmpty());
  for (int i = 0; i <= 200; i += 10) memory.reported(report, start + seconds(i));
  const auto demand = memory.demand(seconds(30));
  EXPECT_EQ(demand.front().at, start + seconds(110));
  EXPECT_EQ(demand.back().desired, 3);
  EXPECT_THAT(memory.demand(seconds(0)), IsEmpty());
}

TEST(Memory, WhatAServerSaidIsForgottenWithItsPod) {
  JobMemory memory("uid");
  EXPECT_FALSE(memory.report_of("first"));
  memory.reported({.checkpoint_step = 7}, api::Time());
  EXPECT_EQ(memory.report_of("first")->checkpoint_step, 7);
  EXPECT_FALSE(memory.report_of("second"));
  EXPECT_FALSE(memory.report_of("first"));
  memory.reported({.checkpoint_step = 8}, api::Time());
  EXPECT_FALSE(memory.report_of("")) << "nobody runs";
}

TEST(Memory, ThatAServerRefusesAnEditIsToldOnceForEachGeneration) {
  JobMemory memory("uid");
  EXPECT_TRUE(memory.first_refusal_of(2));
  EXPECT_FALSE(memory.first_refusal_of(2));
  EXPECT_TRUE(memory.first_refusal_of(3));
  EXPECT_FALSE(memory.first_refusal_of(3));
}

TEST(Memory, AJobMadeAnewUnderItsNameInheritsNothing) {
  Memory memory;
  memory.of("team/faces", "old")->wrote_secret(1, TimePoint());
  EXPECT_TRUE(memory.of("team/faces", "old")->had_secret());
  EXPECT_FALSE(memory.of("team/faces", "new")->had_secret());
}

}  // namespace
}  // namespace outrigger::controller

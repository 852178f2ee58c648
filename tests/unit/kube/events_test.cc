#include "kube/control/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "kube/object/object.h"
#include "tests/fakes/api_server.h"
#include "tests/fakes/fake_timer.h"

namespace outrigger::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::SizeIs;

class DropCounter final : public Observer {
 public:
  void event_dropped() override { ++dropped; }
  std::atomic<int> dropped = 0;
};

class EventsTest : public testing::Test {
 protected:
  EventRecorderOptions options() {
    EventRecorderOptions options;
    options.controller = "outrigger.dev/operator";
    options.instance = "operator-1";
    options.timer = &timer_;
    options.observer = &drops_;
    return options;
  }
  std::vector<Json> sent() {
    EXPECT_TRUE(recorder_.flush(TimePoint::max()));
    return client_.list(kEvents).take();
  }
  // Once the server has a series of that many.
  bool wait_for_count(int count) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      for (const Json& event : sent()) {
        if (event.value("/series/count"_json_pointer, 1) == count) return true;
      }
    }
    return false;
  }

  fakes::ApiServer server_;
  fakes::FakeTimer timer_;
  DropCounter drops_;
  Client client_{server_.config(), {.retry = {.tries = 1}}};
  EventRecorder recorder_{client_, options()};
  const EventSubject job_{"outrigger.dev/v1alpha1", "TrainingJob", {"team", "faces"}, "uid-1", "7"};
  const Event restarting_{EventType::kWarning, "Restarting", "RestartJob", "exit code 137"};
};

TEST_F(EventsTest, AnEventSaysWhoWhatAndWhen) {
  recorder_.record(job_, restarting_);
  const auto events = sent();
  ASSERT_THAT(events, SizeIs(1));
  const Json& event = events[0];
  EXPECT_EQ(namespace_of(event), "team");
  EXPECT_THAT(name_of(event), testing::StartsWith("faces."));
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "Restarting");
  EXPECT_EQ(event["action"], "RestartJob");
  EXPECT_EQ(event["note"], "exit code 137");
  EXPECT_EQ(event["reportingController"], "outrigger.dev/operator");
  EXPECT_EQ(event["reportingInstance"], "operator-1");
  EXPECT_EQ(event["regarding"], Json({{"apiVersion", "outrigger.dev/v1alpha1"},
                                      {"kind", "TrainingJob"},
                                      {"namespace", "team"},
                                      {"name", "faces"},
                                      {"uid", "uid-1"},
                                      {"resourceVersion", "7"}}));
  EXPECT_TRUE(parse_time(event["eventTime"].get<std::string>()));
  EXPECT_FALSE(event.contains("series"));
}

TEST_F(EventsTest, WhatIsAlikeIsASeries) {
  recorder_.record(job_, restarting_);
  ASSERT_THAT(sent(), SizeIs(1));
  recorder_.record(job_, restarting_);
  EXPECT_TRUE(wait_for_count(2));
  const auto events = sent();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_TRUE(parse_time(events[0]["series"]["lastObservedTime"].get<std::string>()));
}

TEST_F(EventsTest, ALongSeriesIsWrittenNowAndThen) {
  for (int i = 0; i < 50; ++i) recorder_.record(job_, restarting_);
  sent();
  timer_.advance(seconds(30));
  EXPECT_TRUE(wait_for_count(50));
  EXPECT_LE(server_.requests("POST").size() + server_.requests("PATCH").size(), 3u);
}

TEST_F(EventsTest, ASeriesWhoseEventHasEndedIsMadeAnew) {
  recorder_.record(job_, restarting_);
  const auto first = sent();
  ASSERT_TRUE(client_.remove(kEvents, key_of(first.at(0))));
  recorder_.record(job_, restarting_);
  EXPECT_TRUE(wait_for_count(2));
}

TEST_F(EventsTest, AfterAPauseItIsANewEvent) {
  recorder_.record(job_, restarting_);
  sent();
  timer_.advance(minutes(6));
  recorder_.record(job_, restarting_);
  EXPECT_THAT(sent(), SizeIs(2));
}

TEST_F(EventsTest, OfOneObjectOnlySoManyAreSent) {
  for (int i = 0; i < 40; ++i) {
    Event event = restarting_;
    event.note = "number " + std::to_string(i);
    recorder_.record(job_, event);
  }
  EXPECT_THAT(sent(), SizeIs(25));
  EXPECT_EQ(drops_.dropped, 15);
  EventSubject other = job_;
  other.uid = "uid-2";
  recorder_.record(other, restarting_);
  EXPECT_THAT(sent(), SizeIs(26));
  timer_.advance(minutes(5));
  recorder_.record(job_, {EventType::kNormal, "Again", "None", "later"});
  EXPECT_THAT(sent(), SizeIs(27));
}

TEST_F(EventsTest, RecordingDoesNotWaitForAServerThatHangs) {
  server_.fail("POST", {.hang = true});
  for (int i = 0; i < 5000; ++i) {
    EventSubject subject = job_;
    subject.uid = std::to_string(i);
    recorder_.record(subject, restarting_);
  }
  EXPECT_GE(drops_.dropped, 3900);
  server_.release_hanging();
}

TEST_F(EventsTest, WhatTheServerRefusesIsCountedAndForgotten) {
  server_.fail("POST", {.status = 403});
  recorder_.record(job_, restarting_);
  EXPECT_THAT(sent(), SizeIs(0));
  EXPECT_EQ(drops_.dropped, 1);
}

TEST_F(EventsTest, WhatIsPendingAtItsEndIsSent) {
  {
    EventRecorder recorder(client_, options());
    for (int i = 0; i < 20; ++i)
      recorder.record(job_, {EventType::kNormal, "Told", "Tell", "number " + std::to_string(i)});
  }
  EXPECT_THAT(sent(), SizeIs(20));
  EXPECT_EQ(drops_.dropped, 0);
}

TEST_F(EventsTest, NothingIsWaitedForAtItsEndOnceAllIsSent) {
  EventRecorderOptions patient = options();
  patient.timer = &Timer::system();
  patient.drain = std::chrono::hours(1);
  {
    EventRecorder recorder(client_, patient);
    for (const char* note : {"1", "2", "3"})
      recorder.record(job_, {EventType::kNormal, "Told", "Tell", note});
  }
  EXPECT_THAT(sent(), SizeIs(3));
}

TEST_F(EventsTest, WhatCannotBeSentAtItsEndIsCounted) {
  server_.fail("POST", {.hang = true}, 100);
  EventRecorderOptions short_lived = options();
  short_lived.timer = &Timer::system();
  short_lived.drain = std::chrono::milliseconds(20);
  short_lived.give_up = std::stop_source();
  Client client(server_.config(), {}, short_lived.give_up.get_token());
  {
    EventRecorder recorder(client, short_lived);
    for (const char* note : {"1", "2", "3"})
      recorder.record(job_, {EventType::kNormal, "Told", "Tell", note});
  }
  EXPECT_EQ(drops_.dropped, 3) << "the one that hangs is broken off";
  server_.release_hanging();
}

TEST_F(EventsTest, AnyTextIsTold) {
  const std::string note = "a \"quoted\" \\ line\n\tand \xc3\xa9";
  recorder_.record(job_, {EventType::kNormal, "Told", "Tell", note});
  recorder_.record(job_, {EventType::kNormal, "Told", "Tell", "bad \xff"});
  const auto events = sent();
  ASSERT_THAT(events, SizeIs(2));
  const std::set<std::string> notes{events[0]["note"], events[1]["note"]};
  EXPECT_EQ(notes, (std::set<std::string>{note, "bad \xef\xbf\xbd"}));
}

TEST_F(EventsTest, LongTextsAreCutBetweenCharacters) {
  EventSubject subject = job_;
  subject.key.name = std::string(253, 'n');
  std::string note = std::string(1023, 'x') + "\xc3\xa9 and more";
  recorder_.record(subject, {EventType::kNormal, "A", "B", note});
  const auto events = sent();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0]["note"], std::string(1023, 'x'));
  EXPECT_EQ(name_of(events[0]).size(), 253u);
}

TEST_F(EventsTest, WhatHasNoNamespaceIsToldInDefault) {
  recorder_.record({"v1", "Node", {"", "one"}, "uid-n"}, restarting_);
  const auto events = sent();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(namespace_of(events[0]), "default");
  EXPECT_FALSE(events[0]["regarding"].contains("namespace"));
}

TEST_F(EventsTest, OfTooManySeriesTheOlderHalfIsForgotten) {
  EventRecorderOptions few = options();
  few.most_series = 4;
  EventRecorder recorder(client_, few);
  const auto record = [&](const std::string& note) {
    recorder.record(job_, {EventType::kNormal, "Told", "Tell", note});
    EXPECT_TRUE(recorder.flush(TimePoint::max()));  // what is not sent yet is not forgotten
    timer_.advance(seconds(1));
  };
  for (const char* note : {"0", "1", "2", "3", "4"}) record(note);
  record("3");
  record("0");
  std::multiset<std::string> told;
  for (const Json& event : sent())
    told.insert(event.at("note").get<std::string>() + " x" +
                std::to_string(event.value("/series/count"_json_pointer, 1)));
  EXPECT_EQ(told, (std::multiset<std::string>{"0 x1", "0 x1", "1 x1", "2 x1", "3 x2", "4 x1"}));
}

TEST_F(EventsTest, ManyThreadsMayRecord) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int n = 0; n < 25; ++n) recorder_.record(job_, restarting_);
    });
  }
  threads.clear();
  sent();
  timer_.advance(seconds(30));
  EXPECT_TRUE(wait_for_count(100));
}

}  // namespace
}  // namespace outrigger::kube

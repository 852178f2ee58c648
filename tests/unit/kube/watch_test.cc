#include "kube/cache/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "common/error.h"
#include "kube/cache/line_decoder.h"
#include "kube/object/object.h"
#include "tests/fakes/api_server.h"
#include "tests/fakes/resources.h"

namespace outrigger::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class LineDecoderTest : public testing::Test {
 protected:
  bool feed(std::string_view piece) {
    return decoder_.feed(piece, [this](std::string_view line) {
      lines_.emplace_back(line);
      return lines_.size() < most_;
    });
  }
  LineDecoder decoder_{10};
  std::vector<std::string> lines_;
  size_t most_ = 100;
};

TEST_F(LineDecoderTest, CutsLinesWhereverThePiecesEnd) {
  const std::string text = "one\ntwo\r\n\nthree\n";
  for (size_t size = 1; size <= text.size(); ++size) {
    lines_.clear();
    for (size_t at = 0; at < text.size(); at += size) feed(std::string_view(text).substr(at, size));
    EXPECT_THAT(lines_, ElementsAre("one", "two", "three")) << "pieces of " << size;
    EXPECT_EQ(decoder_.pending(), 0u);
  }
}

TEST_F(LineDecoderTest, KeepsNoMoreThanTheBeginningOfOneLine) {
  feed("a\nb\ncdef");
  EXPECT_EQ(decoder_.pending(), 4u);
  feed("\n");
  EXPECT_EQ(decoder_.pending(), 0u);
  EXPECT_THAT(lines_, ElementsAre("a", "b", "cdef"));
}

TEST_F(LineDecoderTest, ALineTooLongIsAnErrorAsSoonAsThatIsKnown) {
  feed("0123456789\n");
  EXPECT_THROW(feed("01234567890\n"), IoError);
  LineDecoder other(10);
  const auto ignore = [](std::string_view) { return true; };
  other.feed("0123456789", ignore);
  EXPECT_THROW(other.feed("0", ignore), IoError);
}

TEST_F(LineDecoderTest, StopsWhenNoMoreIsWanted) {
  most_ = 2;
  EXPECT_FALSE(feed("a\nb\nc\n"));
  EXPECT_THAT(lines_, ElementsAre("a", "b"));
}

TEST(ParseWatchLine, KnowsEveryType) {
  using Kind = WatchLine::Kind;
  const auto parse = [](const std::string& type) {
    return parse_watch_line(R"({"type": ")" + type + R"(", "object": {"a": 1}})", {});
  };
  EXPECT_EQ(parse("ADDED").type, ChangeType::kAdded);
  EXPECT_EQ(parse("MODIFIED").type, ChangeType::kModified);
  EXPECT_EQ(parse("DELETED").type, ChangeType::kDeleted);
  EXPECT_EQ(parse("DELETED").kind, Kind::kChange);
  EXPECT_EQ(parse("BOOKMARK").kind, Kind::kBookmark);
  EXPECT_EQ(parse("ERROR").kind, Kind::kError);
  EXPECT_EQ(parse("ERROR").object, Json({{"a", 1}}));
}

TEST(ParseWatchLine, RefusesWhatIsNoEvent) {
  for (const char* line :
       {"", "null", "[]", "{}", R"({"type": "ADDED"})", R"({"type": 3, "object": {}})",
        R"({"type": "ADDED", "object": []})", R"({"type": "RENAMED", "object": {}})", "<html>"}) {
    EXPECT_THROW(parse_watch_line(line, {}), IoError) << line;
  }
}

class WatchTest : public testing::Test {
 protected:
  Json make(const std::string& name) {
    return client_.create(kConfigMaps, {{"metadata", {{"name", name}, {"namespace", "team"}}}})
        .take();
  }
  // Watches until `wanted` changes have come, or the watch ends.
  WatchEnd run(size_t wanted = 1000) {
    std::stop_source stop;
    WatchEnd end{WatchEnd::Why::kEnded, {}};
    try {
      end = watch(
          client_, options_,
          [&](const Change& change) {
            const char* types[] = {"+", "~", "-"};
            seen_.push_back(types[static_cast<size_t>(change.type)] + name_of(change.object));
            on_change_();
            if (seen_.size() == wanted) stop.request_stop();
          },
          stop.get_token());
    } catch (const Cancelled&) {
      seen_.emplace_back("cancelled");
    }
    return end;
  }

  // Does `work` once the watch is open.
  std::jthread meanwhile(const std::function<void()>& work) {
    return std::jthread([this, work] {
      ASSERT_TRUE(server_.wait_for_watches(1));
      work();
    });
  }

  fakes::ApiServer server_;
  Client client_{server_.config()};
  WatchOptions options_{
      .resource = kConfigMaps, .selection = {.ns = "team"}, .resource_version = "100"};
  std::vector<std::string> seen_;
  std::function<void()> on_change_ = [] {};
};

TEST_F(WatchTest, TellsChangesInTheirOrder) {
  Json a = make("a");
  make("b");
  ASSERT_TRUE(client_.update(kConfigMaps, a));
  ASSERT_TRUE(client_.remove(kConfigMaps, {"team", "b"}));
  run(4);
  EXPECT_THAT(seen_, ElementsAre("+a", "+b", "~a", "-b", "cancelled"));
}

TEST_F(WatchTest, AsksForBookmarksAndATimeWithinItsRange) {
  options_.shortest = options_.longest = seconds(1);
  run();
  const std::string line = server_.requests("watch=true").at(0).line;
  EXPECT_THAT(line, HasSubstr("allowWatchBookmarks=true"));
  EXPECT_THAT(line, HasSubstr("timeoutSeconds=1&resourceVersion=100"));
}

TEST_F(WatchTest, EndsCleanlyWithTheLastVersionTold) {
  const std::string version = resource_version_of(make("a"));
  const auto ending = meanwhile([&] { server_.end_watches(); });
  const WatchEnd end = run();
  EXPECT_EQ(end.why, WatchEnd::Why::kEnded);
  EXPECT_EQ(end.resource_version, version);
}

TEST_F(WatchTest, ABookmarkMovesTheVersionAndTellsNothing) {
  const auto bookmark = meanwhile([&] {
    (void)client_.create(kConfigMaps, {{"metadata", {{"name", "x"}, {"namespace", "other"}}}});
    server_.bookmark_watches();
    server_.say_to_watches("\n");
    server_.end_watches();
  });
  const WatchEnd end = run();
  EXPECT_THAT(seen_, ElementsAre());
  EXPECT_EQ(end.resource_version, std::to_string(server_.store().version()));
}

TEST_F(WatchTest, OfWhatIsKnownNoMoreThanItsHeadIsRead) {
  const auto known = std::make_shared<const int>(7);
  options_.known = [&known](const Json& head) -> std::shared_ptr<const void> {
    EXPECT_FALSE(head.contains("spec") || head.contains("status")) << head;
    return name_of(head) == "b" ? known : nullptr;
  };
  const Json patch{{"spec", {{"x", 1}}}, {"status", "new"}};
  for (const char* name : {"a", "b"}) {
    make(name);
    ASSERT_TRUE(client_.patch(kConfigMaps, {"team", name}, PatchType::kMerge, patch));
  }
  std::map<std::string, Change> changes;
  const auto told = [&](Change change) {
    if (change.type != ChangeType::kModified) return;
    const std::string name = name_of(change.object);
    changes.insert_or_assign(name, std::move(change));
    if (changes.size() == 2) server_.break_watches();
  };
  const WatchEnd end = watch(client_, options_, told, {});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes.at("a").known, nullptr);
  EXPECT_EQ(changes.at("a").object["status"], "new");
  EXPECT_EQ(changes.at("b").known, known);
  EXPECT_FALSE(changes.at("b").object.contains("spec"));
  EXPECT_EQ(end.resource_version, resource_version_of(changes.at("b").object));
}

TEST_F(WatchTest, WhatIsNewOrGoneIsReadWithoutAskingWhetherItIsKnown) {
  options_.known = [](const Json& head) -> std::shared_ptr<const void> {
    ADD_FAILURE() << head;
    return nullptr;
  };
  const auto talking = meanwhile([&] {
    // As API servers write a line, and as they might.
    const std::string c = R"({"metadata":{"name":"c","resourceVersion":"7"},"spec":{"x":1}})";
    server_.say_to_watches(R"({"type":"ADDED","object":)" + c + "}\n" + R"({"object":)" + c +
                           R"(,"type":"ADDED"})"
                           "\n" +
                           R"({"type":"DELETED","object":)" + c + "}\n");
  });
  std::vector<Change> changes;
  std::stop_source stop;
  const auto told = [&](Change change) {
    EXPECT_EQ(change.object["spec"]["x"], 1);
    changes.push_back(std::move(change));
    if (changes.size() == 3) stop.request_stop();
  };
  EXPECT_THROW(watch(client_, options_, told, stop.get_token()), Cancelled);
  EXPECT_EQ(changes.size(), 3u);
}

TEST_F(WatchTest, ReadsOfAnObjectNoMoreThanIsKept) {
  options_.kept = {{"metadata", {"name", "resourceVersion"}}, {"object", {"metadata", "data"}}};
  ASSERT_TRUE(client_.create(
      kConfigMaps, {{"metadata", {{"name", "a"}, {"namespace", "team"}}}, {"data", {{"x", "1"}}}}));
  std::stop_source stop;
  Json seen;
  const auto told = [&](Change change) {
    seen = std::move(change.object);
    stop.request_stop();
  };
  EXPECT_THROW(watch(client_, options_, told, stop.get_token()), Cancelled);
  const std::string version = std::to_string(server_.store().version());
  EXPECT_EQ(seen, Json({{"metadata", {{"name", "a"}, {"resourceVersion", version}}},
                        {"data", {{"x", "1"}}}}));
}

TEST_F(WatchTest, ABrokenConnectionKeepsWhatWasTold) {
  const std::string version = resource_version_of(make("a"));
  on_change_ = [&] { server_.break_watches(); };
  const WatchEnd end = run();
  EXPECT_EQ(end.why, WatchEnd::Why::kEnded);
  EXPECT_EQ(end.resource_version, version);
  EXPECT_THAT(end.reason, HasSubstr("connection"));
}

TEST_F(WatchTest, ASilentServerIsTakenForDead) {
  options_.silence = milliseconds(300);  // the server has nothing to say
  const auto start = std::chrono::steady_clock::now();
  const WatchEnd end = run();
  EXPECT_EQ(end.why, WatchEnd::Why::kEnded);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(250));
}

TEST_F(WatchTest, AnErrorEventMeansListAgain) {
  const auto erring = meanwhile([&] {
    server_.say_to_watches(
        R"({"type": "ERROR", "object": {"kind": "Status", "code": 500, "reason": "InternalError"}})"
        "\n");
  });
  const WatchEnd end = run();
  EXPECT_EQ(end.why, WatchEnd::Why::kExpired);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->code(), 500);
}

TEST_F(WatchTest, Http410MeansListAgain) {
  server_.store().compact();
  EXPECT_EQ(run().why, WatchEnd::Why::kExpired);
}

TEST_F(WatchTest, WhatCannotBeUnderstoodMeansListAgain) {
  const auto talking = meanwhile([&] { server_.say_to_watches("<html>proxy error</html>\n"); });
  const WatchEnd end = run();
  EXPECT_EQ(end.why, WatchEnd::Why::kExpired);
  EXPECT_THAT(end.reason, HasSubstr("<html>"));
}

TEST_F(WatchTest, ALineWithoutEndIsCutByItsLimit) {
  options_.longest_line = 1000;
  const auto talking = meanwhile([&] { server_.say_to_watches(std::string(5000, ' ')); });
  EXPECT_EQ(run().why, WatchEnd::Why::kExpired);
}

TEST_F(WatchTest, ARefusalIsTold) {
  server_.fail("watch=true", {.status = 429, .retry_after = 3});
  const WatchEnd end = run();
  EXPECT_EQ(end.why, WatchEnd::Why::kRefused);
  EXPECT_EQ(end.error->retry_after(), seconds(3));
}

TEST_F(WatchTest, BytesThatTrickleAreUnderstood) {
  server_.send_in_pieces(3);
  make("a");
  make("b");
  run(2);
  EXPECT_THAT(seen_, ElementsAre("+a", "+b", "cancelled"));
}

TEST_F(WatchTest, AStopEndsAQuietWatchAtOnce) {
  std::stop_source stop;
  const auto stopping = meanwhile([&] { stop.request_stop(); });
  EXPECT_THROW(watch(
                   client_, options_, [](const Change&) {}, stop.get_token()),
               Cancelled);
}

TEST_F(WatchTest, AnExceptionOfTheReceiverComesOut) {
  make("a");
  const auto fail = [](const Change&) { throw std::runtime_error("receiver"); };
  EXPECT_THROW(watch(client_, options_, fail, {}), std::runtime_error);
}

}  // namespace
}  // namespace outrigger::kube

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gpu-server/links/server_feed.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/comes_true.h"
#include "transport/memory_link.h"

namespace outrigger::gpu_server {

/// The server's end of a link to a worker that the test plays.
class WatchedLink final : public transport::Link {
 public:
  struct Seen {
    std::atomic<int> heard = 0;           // frames that the session is done with
    std::function<void()> on_close = {};  // in the thread that closes this end
  };
  WatchedLink(std::unique_ptr<transport::Link> link, std::shared_ptr<Seen> seen)
      : link_(std::move(link)), seen_(std::move(seen)) {}

  bool send_within(transport::Frame frame, Duration timeout) override {
    return link_->send_within(std::move(frame), timeout);
  }
  std::optional<transport::ReceivedFrame> receive(Duration timeout) override {
    seen_->heard = handed_out_;
    auto frame = link_->receive(timeout);
    if (frame) ++handed_out_;
    return frame;
  }
  bool flush(Duration timeout) override { return link_->flush(timeout); }
  void close(std::string_view reason) override {
    if (seen_->on_close) std::exchange(seen_->on_close, {})();
    link_->close(reason);
  }
  std::optional<std::string> closed_reason() const override { return link_->closed_reason(); }
  std::string peer() const override { return "a test"; }
  transport::LinkStats stats() const override { return link_->stats(); }

 private:
  const std::unique_ptr<transport::Link> link_;
  const std::shared_ptr<Seen> seen_;
  int handed_out_ = 0;
};

/// A worker that says what the test has it say.
class PlayedWorker {
 public:
  explicit PlayedWorker(const transport::LinkOptions& options = {})
      : PlayedWorker(transport::make_memory_links(options)) {}

  std::unique_ptr<transport::Link> server_end() { return std::move(server_end_); }
  void say(transport::Frame frame) {
    end_->send(std::move(frame));
    ++said_;
  }
  void say(const feed::WorkerMessage& message) { say(worker::to_frame(message, {})); }
  void introduce(const worker::Hello& hello = {.name = "w", .version = OUTRIGGER_VERSION}) {
    say(worker::to_frame(hello));
  }
  /// Until the server has taken in all that was said, and listens for more. Throws IoError where
  /// it does not.
  void until_heard() const {
    if (!testing_support::comes_true([this] { return seen_->heard >= said_; }))
      throw IoError("the server does not hear what a worker says");
  }
  /// The next message behind the introduction of the job.
  feed::ServerMessage hear() {
    for (;;) {
      const auto frame = end_->receive(std::chrono::seconds(30));
      if (!frame) throw IoError("the server said nothing for 30 s");
      if (frame->type == static_cast<uint16_t>(worker::FrameType::kSetup)) continue;
      return worker::read_server_message(*frame, {});
    }
  }
  /// Why the server closed the link, once it has.
  std::string hear_the_end() {
    try {
      for (;;) static_cast<void>(hear());
    } catch (const transport::LinkClosed& closed) {
      return closed.what();
    }
  }
  WatchedLink::Seen& seen() { return *seen_; }

 private:
  using Ends = std::pair<std::unique_ptr<transport::Link>, std::unique_ptr<transport::Link>>;
  explicit PlayedWorker(Ends ends)
      : server_end_(std::make_unique<WatchedLink>(std::move(ends.first), seen_)),
        end_(std::move(ends.second)) {}

  const std::shared_ptr<WatchedLink::Seen> seen_ = std::make_shared<WatchedLink::Seen>();
  std::unique_ptr<transport::Link> server_end_;
  const std::unique_ptr<transport::Link> end_;
  int said_ = 0;
};

/// A feed of pixels, whose workers are played by the test.
class ServerFeedTest : public testing::Test {
 protected:
  static data::Dataset eight_images() {
    data::Dataset dataset;
    dataset.set_classes({"a"});
    dataset.begin_container("", false);
    for (int i = 0; i < 8; ++i) dataset.add_file("image" + std::to_string(i), 0);
    dataset.finish();
    return dataset;
  }
  std::unique_ptr<ServerFeed> make(JoinTerms terms = {}) {
    feed::Coordinator coordinator({.total_steps = 4, .micro_batches = 2, .micro_batch = 2},
                                  feed::SampleOrder({.seed = 1, .samples = 8}), dataset_,
                                  {.number = 1});
    return std::make_unique<ServerFeed>(std::move(coordinator), std::move(terms),
                                        worker::WireContext{}, clock_, trace_);
  }
  /// Once so many workers are joined. Throws IoError where they never are.
  static void until_joined(ServerFeed& feed, size_t workers) {
    if (!testing_support::comes_true([&] { return feed.snapshot().workers == workers; }))
      throw IoError("there never are " + std::to_string(workers) + " workers");
  }

  const data::Dataset dataset_ = eight_images();
  fakes::FakeClock clock_;
  telemetry::Trace trace_{"test", clock_};
};

}  // namespace outrigger::gpu_server

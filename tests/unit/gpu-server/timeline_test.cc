#include "gpu-server/report/timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/fakes/fake_clock.h"

namespace outrigger::gpu_server {
namespace {

using std::chrono::milliseconds;

class TimelineTest : public testing::Test {
 protected:
  /// The first event of the name; milliseconds from the trace's beginning.
  struct Drawn {
    double begin = -1;
    double length = -1;
    int track = -1;
  };
  Drawn drawn(const std::string& name) const {
    const auto told = nlohmann::json::parse(trace_.json());
    for (const auto& event : told["traceEvents"]) {
      if (event["name"] != name || event["ph"] != "X") continue;
      return {event["ts"].get<double>() / 1e3, event["dur"].get<double>() / 1e3, event["tid"]};
    }
    return {};
  }

  fakes::FakeClock clock_;
  telemetry::Trace trace_{"server 0", clock_, {.made = {}}};
  Timeline timeline_{trace_};
};

TEST_F(TimelineTest, TheDeviceWorksFromOneMicroBatchToTheNextWait) {
  clock_.advance(milliseconds(10));
  timeline_.device_takes(4, 1, clock_.now());
  clock_.advance(milliseconds(30));
  timeline_.device_is_done(clock_.now());
  timeline_.device_is_done(clock_.now());
  EXPECT_NEAR(drawn("micro-batch").begin, 10, 1e-6);
  EXPECT_NEAR(drawn("micro-batch").length, 30, 1e-6);
}

TEST_F(TimelineTest, AWorkersPiecesLieBeforeWhatItsLinkTook) {
  clock_.advance(milliseconds(1000));
  WorkerMeasures link;
  link.bytes_per_second = 1e6;
  link.latency = 0.005;
  const feed::MicroBatch batch{
      .key = {.incarnation = 1, .step = 3, .index = 2},
      .tensor = std::make_shared<Tensor>(ElementType::kUint8, Shape{1, 15'000}),
      .times = {.cut = 4, .decode = 0.1f, .forward = 0.2f, .decoded_ago = 0.5f}};
  timeline_.arrived(7, batch, link, clock_.now());
  EXPECT_NEAR(drawn("send").begin, 980, 0.01);
  EXPECT_NEAR(drawn("send").length, 20, 0.01);
  EXPECT_NEAR(drawn("stem forward").begin, 780, 0.01);
  EXPECT_NEAR(drawn("decode").begin, 380, 0.01);
  EXPECT_NE(drawn("send").track, drawn("stem forward").track) << "both at once are to be seen";
}

TEST_F(TimelineTest, WeightsAndGradientsAtTheCutFollowEachOtherOnTheWayOut) {
  clock_.advance(milliseconds(1000));
  WorkerMeasures link;
  link.bytes_per_second = 1e6;
  link.latency = 0.005;
  timeline_.posted(7, feed::StemWeights{.parameter_count = 10'000}, link, clock_.now());
  const feed::CutGradient gradient{
      .key = {.incarnation = 1, .step = 3, .index = 2},
      .gradient = std::make_shared<Tensor>(ElementType::kFloat32, Shape{1, 5000})};
  timeline_.posted(7, gradient, link, clock_.now());
  EXPECT_NEAR(drawn("weights").begin, 1000, 0.01);
  EXPECT_NEAR(drawn("weights").length, 45, 0.01);
  EXPECT_NEAR(drawn("cut gradient").begin, 1040, 0.01)
      << "the link is free, though not all is there";
  EXPECT_NEAR(drawn("cut gradient").length, 25, 0.01);
}

TEST_F(TimelineTest, ScoresOfAnEvaluationAreTheWorkersTimeToo) {
  clock_.advance(milliseconds(1000));
  const feed::Scores scores{.key = {.index = 3}, .values = {}, .times = {.forward = 0.25f}};
  timeline_.arrived(7, scores, {}, clock_.now());
  EXPECT_NEAR(drawn("score").begin, 750, 0.01);
  EXPECT_NEAR(drawn("score").length, 250, 0.01);
}

TEST_F(TimelineTest, ABackwardPassEndsWhereItsGradientIsSent) {
  clock_.advance(milliseconds(1000));
  const feed::StemGradient gradient{
      .key = {}, .gradients = nullptr, .times = {.cut = 4, .backward = 0.25f}};
  timeline_.arrived(7, gradient, {}, clock_.now());
  EXPECT_NEAR(drawn("stem backward").begin, 750, 0.01);
}

}  // namespace
}  // namespace outrigger::gpu_server

#include "kube/client/retry.h"

#include <gtest/gtest.h>

#include "kube/client/api_error.h"
#include "kube/control/token_bucket.h"

namespace outrigger::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(BackOff, DoublesUpToItsLimit) {
  const BackOff back_off{milliseconds(100), seconds(1)};
  EXPECT_EQ(back_off.after(1, 0), milliseconds(100));
  EXPECT_EQ(back_off.after(2, 0), milliseconds(200));
  EXPECT_EQ(back_off.after(4, 0), milliseconds(800));
  EXPECT_EQ(back_off.after(5, 0), seconds(1));
  EXPECT_EQ(back_off.after(1'000'000, 0), seconds(1));
}

TEST(BackOff, JitterTakesHalfAtMost) {
  const BackOff back_off{milliseconds(100), seconds(1)};
  EXPECT_EQ(back_off.after(1, 0.5), milliseconds(75));
  EXPECT_GE(back_off.after(1, 0.999), milliseconds(50));
}

TEST(RandomChance, StaysInItsRangeAndVaries) {
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const double chance = random_chance();
    ASSERT_GE(chance, 0);
    ASSERT_LT(chance, 1);
    sum += chance;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.1);  // eleven standard deviations
}

TEST(RetryPolicy, RepeatsWhatDoesNoHarm) {
  const RetryPolicy policy;
  EXPECT_TRUE(policy.wait({.code = 503, .idempotent = true}, 1, 0));
  EXPECT_TRUE(policy.wait({.code = 500, .idempotent = true}, 1, 0));
  EXPECT_TRUE(policy.wait({.code = 0, .idempotent = true}, 1, 0));
  EXPECT_FALSE(policy.wait({.code = 503}, 1, 0));
  EXPECT_FALSE(policy.wait({.code = 0}, 1, 0));
  EXPECT_TRUE(policy.wait({.code = 429}, 1, 0));
  EXPECT_FALSE(policy.wait({.code = 409, .idempotent = true}, 1, 0));
}

TEST(RetryPolicy, EndsAfterItsTries) {
  RetryPolicy policy;
  policy.tries = 3;
  EXPECT_TRUE(policy.wait({.code = 429}, 2, 0));
  EXPECT_FALSE(policy.wait({.code = 429}, 3, 0));
}

TEST(RetryPolicy, WaitsAsLongAsTheServerSaysButNotForEver) {
  const RetryPolicy policy;
  EXPECT_GE(policy.wait({.code = 429, .retry_after = seconds(7)}, 1, 0), seconds(7));
  EXPECT_FALSE(policy.wait({.code = 429, .retry_after = seconds(3600)}, 1, 0));
}

TEST(TokenBucket, AllowsABurstAndThenItsRate) {
  TimePoint now(seconds(100));
  TokenBucket bucket({.per_second = 2, .burst = 3}, now);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
  now += milliseconds(500);
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
  now += seconds(3600);
  EXPECT_TRUE(bucket.full(now));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
}

TEST(TokenBucket, OnCreditTellsHowLongToWait) {
  const TimePoint now(seconds(100));
  TokenBucket bucket({.per_second = 2, .burst = 1}, now);
  EXPECT_EQ(bucket.take(now), Duration::zero());
  EXPECT_EQ(bucket.take(now), milliseconds(500));
  EXPECT_EQ(bucket.take(now), milliseconds(1000));
}

TEST(ApiError, TellsAStatusInFull) {
  const Json status = Json::parse(R"({"kind": "Status", "code": 409, "reason": "AlreadyExists",
      "message": "pods \"a\" already exists", "details": {"kind": "pods", "name": "a"}})");
  const ApiError error = ApiError::from("POST /pods", status);
  EXPECT_EQ(error.what(), std::string("POST /pods: 409 AlreadyExists: pods \"a\" already exists"));
  EXPECT_TRUE(error.already_exists());
  EXPECT_FALSE(error.conflict());
  EXPECT_EQ(error.details().at("name"), "a");
}

TEST(ApiError, OfAnAnswerWithoutStatusTellsCodeAndText) {
  const ApiError error = ApiError::from(
      "GET /x", http::Response{503, "<html>proxy</html>", "text/html", {{"Retry-After", "12"}}});
  EXPECT_EQ(error.code(), 503);
  EXPECT_EQ(error.message(), "<html>proxy</html>");
  EXPECT_EQ(error.retry_after(), seconds(12));
}

TEST(ApiError, ARetryAfterThatIsNoNumberIsNone) {
  for (const char* text : {"", "soon", "-1", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT"}) {
    EXPECT_EQ(ApiError::from("GET /x", http::Response{429, "", "", {{"Retry-After", text}}})
                  .retry_after(),
              std::nullopt)
        << text;
  }
}

TEST(Result, IsAValueOrThrowsItsError) {
  const Result<int> good = 7;
  EXPECT_TRUE(good);
  EXPECT_EQ(*good, 7);
  Result<int> bad = ApiError("GET /x", {404, "NotFound", "gone"});
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().not_found());
  EXPECT_THROW((void)std::move(bad).take(), ApiError);
}

}  // namespace
}  // namespace outrigger::kube

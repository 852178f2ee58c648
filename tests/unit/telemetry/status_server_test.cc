#include "telemetry/status_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/error.h"
#include "http/client.h"

namespace outrigger::telemetry {
namespace {

using testing::HasSubstr;

class StatusServerTest : public testing::Test {
 protected:
  StatusServerOptions options() const {
    StatusServerOptions options;
    options.http.address = "127.0.0.1";
    options.control_token = token_;
    return options;
  }
  StatusSource source() {
    return {[this] { return reasons_; },
            [] { return std::string(R"({"step": 7})"); },
            [this] { ++stops_; },
            {},
            {}};
  }
  http::Client client(const StatusServer& server, http::Headers headers = {}) const {
    return http::Client({.base_url = "http://127.0.0.1:" + std::to_string(server.port()),
                         .headers = std::move(headers)});
  }
  int stop_with(const StatusServer& server, const std::string& authorization) const {
    return client(server, {{"Authorization", authorization}}).post("/stop", "").status;
  }

  std::string token_ = "control-token";
  std::vector<std::string> reasons_;
  int stops_ = 0;
  Metrics metrics_;
};

TEST_F(StatusServerTest, IsHealthyWhileItAnswers) {
  const StatusServer server(options(), metrics_, source());
  EXPECT_EQ(client(server).get("/healthz").status, 200);
}

TEST_F(StatusServerTest, SaysWhyItIsNotReady) {
  const StatusServer server(options(), metrics_, source());
  EXPECT_EQ(client(server).get("/readyz").status, 200);
  reasons_ = {"no data yet", "waiting for 2 ranks"};
  const http::Response response = client(server).get("/readyz");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "no data yet\nwaiting for 2 ranks\n");
}

TEST_F(StatusServerTest, TakesAPlanFromWhoHasTheToken) {
  StatusSource with_plan = source();
  std::string plan = R"({"cut": "Input"})";
  with_plan.plan_json = [&] { return plan; };
  with_plan.set_plan = [&](const std::string& body) {
    if (body.empty()) throw InvalidInput("a plan is a JSON object");
    return plan = body;
  };
  const StatusServer server(options(), metrics_, with_plan);
  EXPECT_EQ(client(server).get("/plan").body, "{\"cut\": \"Input\"}\n");
  EXPECT_EQ(client(server).post("/plan", "{}").status, 401);
  const http::Headers token{{"Authorization", "Bearer " + token_}};
  EXPECT_EQ(client(server, token).post("/plan", "{}").status, 202);
  EXPECT_EQ(client(server).get("/plan").body, "{}\n");
  const http::Response refused = client(server, token).post("/plan", "");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.body, "a plan is a JSON object\n");
}

TEST_F(StatusServerTest, TakesAnEditedJobFromWhoHasTheToken) {
  StatusSource with_edits = source();
  with_edits.edit_job = [](const std::string& body) {
    if (body.empty()) throw InvalidInput("a job is a JSON object");
    return body;
  };
  const StatusServer server(options(), metrics_, with_edits);
  EXPECT_EQ(client(server).post("/job", "{}").status, 401);
  const http::Headers token{{"Authorization", "Bearer " + token_}};
  const http::Response taken = client(server, token).post("/job", "{}");
  EXPECT_EQ(taken.status, 200);
  EXPECT_EQ(taken.body, "{}\n");
  EXPECT_EQ(client(server, token).post("/job", "").status, 400);
  const StatusServer without(options(), metrics_, source());
  EXPECT_EQ(client(without, token).post("/job", "{}").status, 404);
}

TEST_F(StatusServerTest, HasNoPageForAPlanWhereThereIsNone) {
  const StatusServer server(options(), metrics_, source());
  EXPECT_EQ(client(server).get("/plan").status, 404);
}

TEST_F(StatusServerTest, ShowsMetricsAndStatus) {
  metrics_.counter({"outrigger_steps_total", "Steps.", {}}).add(5);
  const StatusServer server(options(), metrics_, source());
  const http::Response metrics = client(server).get("/metrics");
  EXPECT_THAT(metrics.body, HasSubstr("outrigger_steps_total 5\n"));
  EXPECT_THAT(metrics.content_type, HasSubstr("version=0.0.4"));
  const http::Response status = client(server).get("/status");
  EXPECT_EQ(nlohmann::json::parse(status.body)["step"], 7);
  EXPECT_EQ(status.content_type, "application/json");
}

TEST_F(StatusServerTest, StopsForTheControlTokenOnly) {
  const StatusServer server(options(), metrics_, source());
  EXPECT_EQ(client(server).post("/stop", "").status, 401);
  EXPECT_EQ(stop_with(server, "Bearer control-toke"), 401);
  EXPECT_EQ(stop_with(server, "control-token"), 401);
  EXPECT_EQ(stops_, 0);
  EXPECT_EQ(stop_with(server, "Bearer control-token"), 202);
  EXPECT_EQ(stops_, 1);
}

TEST_F(StatusServerTest, WithoutATokenNobodyMayStopIt) {
  token_.clear();
  const StatusServer server(options(), metrics_, source());
  EXPECT_EQ(stop_with(server, "Bearer "), 401);
  EXPECT_EQ(stops_, 0);
}

TEST_F(StatusServerTest, AGetDoesNotStopIt) {
  const StatusServer server(options(), metrics_, source());
  EXPECT_EQ(client(server, {{"Authorization", "Bearer control-token"}}).get("/stop").status, 405);
  EXPECT_EQ(stops_, 0);
}

}  // namespace
}  // namespace outrigger::telemetry

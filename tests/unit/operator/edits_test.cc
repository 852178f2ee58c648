#include "operator/policy/edits.h"

#include <gmock/gmock.h>

#include "api/names.h"
#include "api/parse.h"
#include "operator/objects/children.h"
#include "operator/policy/conditions.h"
#include "operator/read_report.h"
#include "tests/unit/operator/world.h"

namespace outrigger::controller {
namespace {

std::optional<Edit> edit_of(const World& world) {
  const Observed seen = world.observe();
  return edit_for({seen.job, seen.errors}, seen.pods, world.options);
}

ServerReport page_with(const std::string& edits) {
  return *read_report(R"({"progress": {"step": 1}, "edits": )" + edits + "}");
}

TEST(Edits, OfAPageTheGenerationAndTheRefusalAreRead) {
  const ServerReport took = page_with(R"({"generation": 4, "refused": ""})");
  EXPECT_EQ(took.told_generation, 4);
  EXPECT_EQ(took.edit_refused, "");
  const ServerReport refused = page_with(R"({"generation": 5, "refused": "no such layer"})");
  EXPECT_EQ(refused.edit_refused, "no such layer");
  EXPECT_EQ(page_with(R"({"generation": 5, "refused": ")" + std::string(5000, 'x') + "\"}")
                .edit_refused.size(),
            900U);
}

TEST(Edits, APageThatTellsOfNoneOrOfNonsenseIsOfAServerThatTakesNone) {
  World world = running();
  for (const char* edits : {"null", "7", "{}", R"({"generation": "two"})", R"({"refused": "x"})"}) {
    EXPECT_EQ(page_with(edits).told_generation, std::nullopt) << edits;
    EXPECT_FALSE(is_behind(page_with(edits), world.job)) << edits;
  }
  EXPECT_FALSE(is_behind(*read_report(R"({"progress": {"step": 1}})"), world.job));
}

TEST(Edits, AServerIsBehindThatWasToldOfAnEarlierGeneration) {
  World world = running();
  world.job.metadata.generation = 7;
  EXPECT_TRUE(is_behind(page_with(R"({"generation": 0})"), world.job));
  EXPECT_TRUE(is_behind(page_with(R"({"generation": 6})"), world.job));
  EXPECT_FALSE(is_behind(page_with(R"({"generation": 7})"), world.job));
  EXPECT_FALSE(is_behind(page_with(R"({"generation": 8})"), world.job)) << "our cache lags";
  world.job.metadata.generation.reset();
  EXPECT_FALSE(is_behind(page_with(R"({"generation": 0})"), world.job));
}

TEST(Edits, TheServerIsToldTheJobThatItsNextAttemptWouldRead) {
  World world = running("  workers: {replicas: 1}\n");
  world.spec().split.min_server_percent = 42;
  world.spec().active_deadline = seconds(60);
  world.job.metadata.generation = 7;
  const auto edit = edit_of(world);
  ASSERT_TRUE(edit);
  EXPECT_EQ(edit->ip, "10.0.0.1");
  EXPECT_EQ(edit->token, token(world.options, world.job.metadata.uid, "control"));
  const Json body = Json::parse(edit->body);
  EXPECT_EQ(body["generation"], 7);
  const auto told = api::resolve_training_job(body["job"].dump());
  const auto next = api::resolve_training_job(
      build_config_map(world.job, 2)["data"][std::string(api::kJobFileName)].get<std::string>());
  ASSERT_EQ(api::to_string(told.errors), "");
  EXPECT_EQ(told.job, next.job);
  EXPECT_EQ(told.job.spec.split.min_server_percent, 42);
}

TEST(Edits, AJobThatDoesNotRunHasNobodyToTell) {
  const auto unless = [](const std::function<void(World&)>& change) {
    World world = running();
    change(world);
    return edit_of(world).has_value();
  };
  EXPECT_TRUE(unless([](World&) {}));
  EXPECT_FALSE(unless([](World& world) { world.spec().suspend = true; }));
  EXPECT_FALSE(unless([](World& world) { world.job.metadata.deletion_time = world.now; }));
  EXPECT_FALSE(unless([](World& world) { world.spec().server.engine = api::Engine::kExternal; }));
  EXPECT_FALSE(unless([](World& world) { world.vanish("faces-server-0-0"); }));
  EXPECT_FALSE(unless([](World& world) { world.ask_to_delete("faces-server-0-0"); }));
  EXPECT_FALSE(unless([](World& world) { world.end("faces-server-0-0", {22}); }));
  EXPECT_FALSE(unless([](World& world) { world.job.metadata.uid = "a later job's"; }));
  EXPECT_FALSE(unless([](World& world) { world.status().execution_attempts = 2; }));
  EXPECT_FALSE(unless([](World& world) {
    world.end("faces-server-0-0", {0});
    world.settle();
    world.run("faces-server-0-0");
  })) << "it is complete";
}

TEST(Edits, ASpecThatCannotBeReadIsToldToNobody) {
  World world = running();
  const Observed seen = world.observe();
  EXPECT_FALSE(edit_for({seen.job, {{"spec.split", "unknown"}}}, seen.pods, world.options));
}

}  // namespace
}  // namespace outrigger::controller

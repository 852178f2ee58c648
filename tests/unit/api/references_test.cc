#include "api/references.h"

#include <gtest/gtest.h>

#include "api/validate.h"
#include "sample_job.h"

namespace outrigger::api {
namespace {

std::string missing_of(const TrainingJob& job) {
  EXPECT_EQ(to_string(validate(job)), "");
  return to_string(check_references(job));
}

TEST(References, ALayerReadsOnesBeforeIt) {
  TrainingJob job = sample_job();
  job.spec.model = {.layers = {{"a", {"input"}, ReluLayer{}},
                               {"b", {"a"}, ReluLayer{}},
                               {"c", {"b", "a"}, AddLayer{}}}};
  EXPECT_EQ(missing_of(job), "");
  job.spec.model.layers[0].inputs = {"b"};
  job.spec.model.layers[2].inputs = {"a", "c"};
  EXPECT_EQ(missing_of(job),
            "spec.model.layers[0].inputs[0]: \"b\" is no layer before \"a\"\n"
            "spec.model.layers[2].inputs[1]: \"c\" is no layer before \"c\"");
}

TEST(References, AServerOfTheUsersNamesItsImage) {
  constexpr const char* kNone =
      "spec.server.engine: External needs the image of your own server; give "
      "template.spec.containers one named server with image";
  TrainingJob job = sample_job();
  job.spec.server.engine = Engine::kExternal;
  EXPECT_EQ(missing_of(job), kNone);
  for (const char* text : {R"({"spec": {}})", R"({"spec": {"containers": 1}})",
                           R"({"spec": {"containers": [{"name": "server"}, 2]}})",
                           R"({"spec": {"containers": [{"name": "other", "image": "i"}]}})"}) {
    job.spec.server.pod_template = nlohmann::json::parse(text);
    EXPECT_EQ(missing_of(job), kNone) << text;
  }
  job.spec.server.pod_template =
      nlohmann::json::parse(R"({"spec": {"containers": [{"name": "server", "image": "i"}]}})");
  EXPECT_EQ(missing_of(job), "");
}

}  // namespace
}  // namespace outrigger::api

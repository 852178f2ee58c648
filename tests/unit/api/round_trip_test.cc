#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/schema.h"
#include "api/schema/scalar.h"
#include "api/write.h"
#include "api/yaml_text.h"
#include "common/random.h"
#include "sample_job.h"

namespace outrigger::api {
namespace {

using Json = nlohmann::ordered_json;
using schema::Field;
using schema::Kind;

/// Texts that careless writers or readers of YAML get wrong.
const std::vector<std::string> kHardTexts{"yes",
                                          "NO",
                                          "null",
                                          "~",
                                          "123",
                                          "1e3",
                                          "0x1F",
                                          "010",
                                          "1_000",
                                          ".5",
                                          "true",
                                          "- x",
                                          "a: b",
                                          "a #b",
                                          "#",
                                          "{a}",
                                          "[",
                                          "'",
                                          "\"",
                                          "\\",
                                          "a\nb",
                                          "\n",
                                          "a\tb",
                                          " lead",
                                          "trail ",
                                          "ä€😀",
                                          "%",
                                          "@x",
                                          "`",
                                          "!tag",
                                          "&a",
                                          "*a",
                                          "?",
                                          ":",
                                          "a:",
                                          "---",
                                          "...",
                                          "x---",
                                          "2026-01-31",
                                          "\xC2\x85",
                                          "\xE2\x80\xA8",
                                          "=",
                                          "<<",
                                          ",",
                                          "/a/b-c_d.e:f@g+h",
                                          "|",
                                          ">"};

/// Draws objects that keep every rule of every field by itself.
class RandomObject {
 public:
  explicit RandomObject(uint64_t seed) : random_(seed, RandomUse::kSyntheticData, 0) {}

  Json object(const schema::Object& object) {
    Json result = Json::object();
    std::vector<const Field*> alternatives;
    for (const Field& field : object.fields) {
      if (field.alternative) alternatives.push_back(&field);
    }
    const Field* chosen =
        alternatives.empty()
            ? nullptr
            : alternatives[random_.below(static_cast<uint32_t>(alternatives.size()))];
    for (const Field& field : object.fields) {
      const bool present =
          field.alternative ? &field == chosen : field.required || random_.below(2) == 0;
      if (present) result[field.name] = value(field, field.kind);
    }
    return result;
  }

 private:
  Json value(const Field& field, Kind kind) {
    switch (kind) {
      case Kind::kBoolean:
        return random_.below(2) == 0;
      case Kind::kInteger:
      case Kind::kSeconds:
        return integer(field);
      case Kind::kNumber:
        return number(field);
      case Kind::kText:
        return text(field);
      case Kind::kEnum:
        return pick(field.values);
      case Kind::kTime:
        return "20" + std::to_string(10 + random_.below(80)) + "-0" +
               std::to_string(1 + random_.below(9)) + "-11T0" + std::to_string(random_.below(10)) +
               ":30:59Z";
      case Kind::kTextMap:
        return Json{{pick(kHardTexts), text(field)}, {"other", text(field)}};
      case Kind::kJson:
        return Json{
            {pick(kHardTexts), {1, -2.5, true, pick(kHardTexts), Json::object(), Json::array()}},
            {"nested", {{"name", pick(kHardTexts)}}}};
      case Kind::kObject:
        return object(*field.object);
      case Kind::kList:
        return list(field);
    }
    return nullptr;
  }

  Json list(const Field& field) {
    Json items = Json::array();
    for (uint32_t i = 1 + random_.below(3); i > 0; --i) items.push_back(value(field, field.item));
    return items;
  }

  Json integer(const Field& field) {
    const auto least = static_cast<int64_t>(field.minimum.value_or(-9e15));
    const auto most = static_cast<int64_t>(field.maximum.value_or(9e15));
    return least + static_cast<int64_t>(random_.below64(static_cast<uint64_t>(most - least) + 1));
  }

  Json number(const Field& field) {
    const double least = field.minimum.value_or(-1e30);
    const double most = field.maximum.value_or(1e30);
    return least + (most - least) * (0.001 + 0.998 * static_cast<double>(random_.uniform()));
  }

  Json text(const Field& field) {
    if (!field.values.empty()) return pick(field.values);
    if (field.text_rule != nullptr) {
      return pick(field.text_rule->regex.substr(0, 4) == "http"
                      ? std::vector<std::string>{"http://h/a.tar", "https://h"}
                      : std::vector<std::string>{"a", "abc1", "off"});
    }
    return field.least_text == 0 && random_.below(8) == 0 ? "x" : pick(kHardTexts);
  }

  std::string pick(const std::vector<std::string>& from) {
    return from[random_.below(static_cast<uint32_t>(from.size()))];
  }

  RandomStream random_;
};

TEST(RoundTrip, RandomJobsReadBackEqualFromYamlAndJson) {
  for (uint64_t seed = 0; seed < 80; ++seed) {
    const Json drawn = RandomObject(seed).object(schema::training_job());
    const ParseResult first = parse_training_job(drawn.dump());
    ASSERT_EQ(to_string(first.errors), "") << drawn.dump(2);
    const ParseResult from_yaml = parse_training_job(to_yaml(first.job));
    ASSERT_EQ(to_string(from_yaml.errors), "") << to_yaml(first.job);
    EXPECT_EQ(from_yaml.job, first.job) << to_yaml(first.job);
    const ParseResult from_json = parse_training_job(to_json_text(first.job));
    ASSERT_EQ(to_string(from_json.errors), "") << to_json_text(first.job);
    EXPECT_EQ(from_json.job, first.job) << to_json_text(first.job);
    const std::string brief = to_short_json(first.job).dump();
    const ParseResult from_short = parse_training_job(brief);
    ASSERT_EQ(to_string(from_short.errors), "") << brief;
    EXPECT_EQ(from_short.job, first.job) << brief;
  }
}

// Whatever was drawn is in what is written: nothing that a file says is dropped on the way.
void expect_holds(const Json& written, const Json& drawn, const std::string& path) {
  if (drawn.is_object()) {
    ASSERT_TRUE(written.is_object()) << path;
    const std::string prefix = path + ".";
    for (const auto& [name, value] : drawn.items()) {
      ASSERT_TRUE(written.contains(name)) << prefix << name;
      expect_holds(written[name], value, prefix + name);
    }
  } else if (drawn.is_array()) {
    ASSERT_EQ(written.size(), drawn.size()) << path;
    for (size_t i = 0; i < drawn.size(); ++i) expect_holds(written[i], drawn[i], path + "[]");
  } else {
    EXPECT_EQ(written, drawn) << path;
  }
}

TEST(RoundTrip, EveryFieldOfAFileIsKept) {
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    const Json drawn = RandomObject(seed).object(schema::training_job());
    expect_holds(to_json(parse_training_job(drawn.dump()).job), drawn, "");
  }
}

TEST(Write, WhatIsUnsetIsAbsentAndDefaultsAreWrittenOut) {
  const Json json = to_json(sample_job());
  EXPECT_FALSE(json.contains("status"));
  EXPECT_FALSE(json["spec"]["data"].contains("validation"));
  EXPECT_FALSE(json["spec"]["data"].contains("augment"));
  EXPECT_EQ(json["spec"]["training"]["microBatchSize"], 32);
  EXPECT_EQ(json["spec"]["training"]["optimizer"]["sgd"]["momentum"], 0.9);
  EXPECT_EQ(json["spec"]["network"]["port"], 29400);
}

TEST(Write, TheShortFormLeavesOutDefaultsAndNothingElse) {
  TrainingJob job = sample_job();
  job.spec.failure_policy.max_restarts = 4;
  const Json json = to_short_json(job);
  EXPECT_EQ(json["apiVersion"], "outrigger.dev/v1alpha1");
  EXPECT_FALSE(json["spec"].contains("suspend"));
  EXPECT_FALSE(json["spec"]["network"].contains("port"));
  EXPECT_EQ(json["spec"]["failurePolicy"]["maxRestarts"], 4);
  EXPECT_EQ(resolve_training_job(json.dump()).job, job);
}

TEST(Write, AResolvedJobIsItsOwnResolution) {
  const TrainingJob job = sample_job();
  const ParseResult again = resolve_training_job(to_yaml(job));
  EXPECT_EQ(to_string(again.errors), "");
  EXPECT_EQ(again.job, job);
}

TEST(Write, YamlKeepsTheOrderOfTheFields) {
  EXPECT_THAT(to_yaml(sample_job()),
              testing::StartsWith(
                  "apiVersion: outrigger.dev/v1alpha1\nkind: TrainingJob\nmetadata:\n  name: "
                  "faces\nspec:\n  suspend: false\n"));
}

TEST(RoundTrip, NumbersWithAnExponentAreNumbersToReadersOfYaml11) {
  const Json numbers{{"rate", 5e-05}, {"bound", 1e20}, {"part", 1.25e-07}, {"plain", 0.5}};
  const std::string text = to_yaml_text(numbers);
  EXPECT_EQ(text, "rate: 5.0e-05\nbound: 1.0e+20\npart: 1.25e-07\nplain: 0.5\n");
  for (const double value : {5e-05, 1e20}) {
    const std::string written = to_yaml_text(Json(value));
    EXPECT_EQ(schema::parse_number(written.substr(0, written.size() - 1)), value);
  }
  EXPECT_EQ(to_yaml_text(Json("5e-05")), "\"5e-05\"\n") << "a text stays one";
  EXPECT_EQ(numbers.at("rate").dump(), "5e-05") << "JSON has no need of it";
}

}  // namespace
}  // namespace outrigger::api

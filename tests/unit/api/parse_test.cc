#include "api/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/file.h"
#include "sample_job.h"

namespace outrigger::api {
namespace {

using testing::HasSubstr;

struct BadJob {
  const char* name;
  std::string text;
  std::string errors;
};

void PrintTo(const BadJob& bad, std::ostream* out) { *out << bad.name; }

class BadJobs : public testing::TestWithParam<BadJob> {};

TEST_P(BadJobs, AreRefusedWithPlaceFieldValueAndWhatIsAllowed) {
  EXPECT_EQ(errors_of(GetParam().text), GetParam().errors);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadJobs,
    testing::Values(
        BadJob{"misspelt", sample_with("batchSize", "batchsize"),
               "job.yaml:10:5: spec.training.batchSize: missing\n"
               "job.yaml:11:5: spec.training.batchsize: unknown field; did you mean batchSize?"},
        BadJob{"wrong level", sample_text("  batchSize: 64\n"),
               "job.yaml:14:3: spec.batchSize: unknown field; there is spec.training.batchSize"},
        BadJob{"no such field", sample_with("{name: lenet5}", "{name: lenet5, colour: red}"),
               "job.yaml:5:25: spec.model.colour: unknown field; allowed here: name, layers, "
               "embedding, "
               "weights, replaceHead, freezeUntil"},
        BadJob{
            "text for a number", sample_with("batchSize: 64", "batchSize: many"),
            "job.yaml:11:16: spec.training.batchSize: \"many\" is text; a whole number is needed"},
        BadJob{"number in quotes", sample_with("batchSize: 64", "batchSize: '64'"),
               "job.yaml:11:16: spec.training.batchSize: \"64\" is text; a whole number is needed"},
        BadJob{"number for a text", sample_with("lenet5", "5"),
               "job.yaml:5:17: spec.model.name: 5 is a number; for text write \"5\""},
        BadJob{"too small", sample_with("batchSize: 64", "batchSize: 0"),
               "job.yaml:11:16: spec.training.batchSize: 0 is too small; at least 1"},
        BadJob{"beyond int64", sample_with("batchSize: 64", "batchSize: 99999999999999999999"),
               "job.yaml:11:16: spec.training.batchSize: 99999999999999999999 is out of range for "
               "a whole "
               "number"},
        BadJob{"beyond float64", sample_with("base: 0.1", "base: 1e999"),
               "job.yaml:12:33: spec.training.schedule.constant.base: 1e999 is out of range for a "
               "number"},
        BadJob{"not a number", sample_with("base: 0.1", "base: .nan"),
               "job.yaml:12:33: spec.training.schedule.constant.base: .nan is not a plain decimal "
               "number, and "
               "readers of YAML disagree on it; write its decimal digits"},
        BadJob{
            "exponent", sample_with("batchSize: 64", "batchSize: 1e3"),
            "job.yaml:11:16: spec.training.batchSize: 1e3 is not a whole number in digits alone"},
        BadJob{"octal", sample_with("batchSize: 64", "batchSize: 0100"),
               "job.yaml:11:16: spec.training.batchSize: 0100 is not a plain decimal number, and "
               "readers of YAML "
               "disagree on it; write its decimal digits"},
        BadJob{"yes", sample_text("  suspend: yes\n"),
               "job.yaml:14:12: spec.suspend: \"yes\" is not allowed; write true or false"},
        BadJob{"no as text", sample_text("  split: {cut: no}\n"),
               "job.yaml:14:16: spec.split.cut: no is not text to every reader of YAML; for text "
               "write \"no\""},
        BadJob{"null", sample_text("  split:\n"),
               "job.yaml:14:3: spec.split: null is not allowed; leave the field out to leave it "
               "unset"},
        BadJob{"twice", sample_text("  suspend: true\n  suspend: false\n"),
               "job.yaml:15:3: spec.suspend: given twice"},
        BadJob{"list for an object", sample_with("{path: runs}", "[runs]"),
               "job.yaml:13:11: spec.output: a list stands here; an object is needed"},
        BadJob{"wrong word", sample_with("epochs: 3", "epochs: 3\n    precision: bfloat16"),
               "job.yaml:11:16: spec.training.precision: \"bfloat16\" is not allowed; one of "
               "Float32, Float16, "
               "BFloat16 (did you mean BFloat16?)"},
        BadJob{"name with capitals", sample_with("name: faces", "name: Faces"),
               "job.yaml:3:18: metadata.name: \"Faces\" is not allowed; lower-case letters, digits "
               "and -, with "
               "a letter first and no - last (RFC 1035) is needed"},
        BadJob{"long name", sample_with("name: faces", "name: " + std::string(49, 'a')),
               "job.yaml:3:18: metadata.name: 49 bytes of text are too long; at most 48"},
        BadJob{
            "two of a union",
            sample_with("{constant: {base: 0.1}}", "{constant: {base: 0.1}, cosine: {base: 0.1}}"),
            "job.yaml:12:15: spec.training.schedule: 2 given of which exactly one is needed: "
            "constant, step, "
            "cosine"},
        BadJob{"none of a union", sample_with("{constant: {base: 0.1}}", "{}"),
               "job.yaml:12:15: spec.training.schedule: 0 given of which exactly one is needed: "
               "constant, step, "
               "cosine"},
        BadJob{"unknown in a union", sample_with("{constant:", "{constnat:"),
               "job.yaml:12:16: spec.training.schedule.constnat: unknown field; did you mean "
               "constant?"},
        BadJob{
            "inside a list",
            sample_with("image:", "augment: [{resize: {shorterSide: 0}}]\n    image:"),
            "job.yaml:8:38: spec.data.augment[0].resize.shorterSide: 0 is too small; at least 1"},
        BadJob{"merge key", sample_with("{path: runs}", "{<<: {path: runs}, path: runs}"),
               "job.yaml:13:12: spec.output.<<: unknown field; merge keys are not read, write the "
               "fields out"},
        BadJob{"template in YAML 1.1", sample_text("  server: {template: {a: [0x1F]}}\n"),
               "job.yaml:14:27: spec.server.template.a[0]: 0x1F is not the same to every reader of "
               "YAML; for "
               "text write \"0x1F\""},
        BadJob{"no time", sample_text("status: {startTime: noon}\n"),
               "job.yaml:14:21: status.startTime: \"noon\" is no time; one like "
               "2026-01-31T12:00:00Z is needed"}));

INSTANTIATE_TEST_SUITE_P(
    Files, BadJobs,
    testing::Values(
        BadJob{"empty", "", "job.yaml:1:1: there is nothing in it; a TrainingJob is needed"},
        BadJob{"only comments", "# nothing\n---\n",
               "job.yaml:1:1: there is nothing in it; a TrainingJob is needed"},
        BadJob{"a word", "hello", "job.yaml:1:1: \"hello\" is text; a TrainingJob is needed"},
        BadJob{
            "another kind", "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 3}\n",
            "job.yaml:1:13: apiVersion: \"apps/v1\" is not allowed; one of outrigger.dev/v1alpha1\n"
            "job.yaml:2:7: kind: \"Deployment\" is not allowed; one of TrainingJob"},
        BadJob{"two documents", sample_text("---\nkind: TrainingJob\n"),
               "job.yaml:14:1: a second document starts here; a file holds one TrainingJob"},
        BadJob{"tab", "kind: TrainingJob\nspec:\n\tmodel: a\n",
               "job.yaml:3:7: not valid YAML: illegal map value; the line is indented with a tab, "
               "YAML wants spaces"},
        BadJob{"tab that is none of it", "a: |\n  x\n  \ty\nb: ]\n",
               "job.yaml:4:4: not valid YAML: illegal flow end"},
        BadJob{"unclosed", "kind: [\n",
               "job.yaml:2:1: not valid YAML: end of sequence flow not found"},
        BadJob{"latin-1", "kind: Gr\xFC\xDF",
               "job.yaml:1:9: byte 0xfc is not UTF-8, which a job file is written in"},
        BadJob{"utf-16", std::string("\xFF\xFEk\0", 4),
               "job.yaml:1:1: byte 0xff is not UTF-8, which a job file is written in"},
        BadJob{"overlong", "kind: \xC0\x80",
               "job.yaml:1:7: byte 0xc0 is not UTF-8, which a job file is written in"},
        BadJob{"zero byte", std::string("kind: \0x", 8),
               "job.yaml:1:7: control character 0x00 in a text"},
        BadJob{"tag", "kind: !!python/object x\n",
               "job.yaml:1:7: the tag tag:yaml.org,2002:python/object is not allowed; write the "
               "value without a "
               "tag"},
        BadJob{"alias in itself", "a: &x [*x]\n",
               "job.yaml:1:8: an alias inside of what it stands for"},
        BadJob{
            "list as a name", "? [a]\n: b\n",
            "job.yaml:1:3: a list or an object as a name is not allowed; is a bracket not closed?"},
        BadJob{"deep", std::string(100, '[') + std::string(100, ']'),
               "job.yaml:1:65: nested too deep; at most 64 levels"},
        BadJob{"long", std::string(2 << 20, 'a'),
               "job.yaml: 2097152 bytes are too long; at most 1 MiB"}));

TEST(Parse, AliasBombsAreCutOff) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string former = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + former;
    for (int k = 1; k < 10; ++k) text += ", " + former;
    text += "]\n";
  }
  EXPECT_THAT(errors_of(text),
              HasSubstr("too many values, aliases counted each time; at most 100000"));
}

TEST(Parse, AnAliasStandsForItsValue) {
  const auto result = resolve_training_job(
      sample_with("train: {path: faces}", "train: &source {path: faces}\n    validation: *source"));
  EXPECT_EQ(to_string(result.errors), "");
  EXPECT_EQ(result.job.spec.data.validation, result.job.spec.data.train);
}

TEST(Parse, AllErrorsOfAFileAreReportedTogether) {
  std::string text = sample_with("batchSize: 64", "batchSize: 0");
  text.replace(text.find("epochs: 3"), 9, "epochs: x");
  EXPECT_EQ(errors_of(text),
            "job.yaml:10:13: spec.training.epochs: \"x\" is text; a whole number is needed\n"
            "job.yaml:11:16: spec.training.batchSize: 0 is too small; at least 1");
}

TEST(Parse, RulesOverSeveralFieldsPointAtTheNearestGivenField) {
  EXPECT_EQ(errors_of(sample_with("epochs: 3", "epochs: 3\n    steps: 9")),
            "job.yaml:9:3: spec.training: 2 given of which exactly one is needed: epochs, steps");
}

TEST(Parse, JsonIsReadAsYaml) {
  const std::string json = R"({
    "apiVersion": "outrigger.dev/v1alpha1", "kind": "TrainingJob",
	"metadata": {"name": "faces"},
    "spec": {"model": {"name": "lenet5"},
             "data": {"train": {"path": "faces"}, "image": {"height": 28, "width": 28}},
             "training": {"epochs": 3, "batchSize": 64, "schedule": {"constant": {"base": 1e-1}}},
             "output": {"path": "runs"}}})";
  const auto result = resolve_training_job(json);
  EXPECT_EQ(to_string(result.errors), "");
  EXPECT_EQ(result.job, sample_job());
}

TEST(Parse, AByteOrderMarkAndClosingMarksAreNoMatter) {
  EXPECT_EQ(errors_of("\xEF\xBB\xBF---\n" + sample_text("---\n# nothing more\n")), "");
}

TEST(Parse, WhatTheApiServerAddsIsReadBack) {
  const auto result = parse_training_job(sample_with(
      "{name: faces}",
      "{name: faces, namespace: team, uid: 6f1c, resourceVersion: \"17\", generation: 2, "
      "creationTimestamp: \"2026-01-31T12:00:00Z\", finalizers: [foregroundDeletion], "
      "managedFields: [{manager: kubectl, fieldsV1: {\"f:spec\": {}}}]}"));
  EXPECT_EQ(to_string(result.errors), "");
  EXPECT_EQ(result.job.metadata.resource_version, "17");
  EXPECT_EQ(result.job.metadata.managed_fields.at(0)["manager"], "kubectl");
}

TEST(Parse, TheSampleOfTheDesignIsValid) {
  EXPECT_EQ(errors_of(read_file(OUTRIGGER_SOURCE_DIR "/tests/unit/api/every_field.yaml")), "");
}

TEST(LoadTrainingJob, NamesTheFileBeforeEveryError) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "bad.yaml";
  std::ofstream(path) << sample_with("batchSize: 64", "batchSize: 0");
  try {
    load_training_job(path);
    FAIL() << "a batch of nothing was taken";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(std::string(error.what()),
              path.string() + ":11:16: spec.training.batchSize: 0 is too small; at least 1");
  }
}

TEST(LoadTrainingJob, TakesANameOfNoFileForAMistakeOfTheUser) {
  const TemporaryDirectory folder("outrigger-parse");
  for (const auto& name :
       {folder.path() / "absent.yaml", folder.path() / "no" / "job.yaml", folder.path()}) {
    try {
      load_training_job(name);
      FAIL() << name << " was read";
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(name.string()));
    }
  }
}

}  // namespace
}  // namespace outrigger::api

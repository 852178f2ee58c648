#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "api/parse.h"
#include "api/schema.h"
#include "common/file.h"
#include "fields_markdown.h"

namespace outrigger::api {
namespace {

using schema::Field;
using schema::Kind;

void expect_page(const std::string& name, const std::string& wanted) {
  const auto path = std::filesystem::path(OUTRIGGER_SOURCE_DIR) / "docs" / name;
  if (std::getenv("OUTRIGGER_UPDATE_DOCS") != nullptr) write_file_atomically(path, wanted);
  EXPECT_EQ(read_file(path), wanted)
      << "run this test with OUTRIGGER_UPDATE_DOCS=1 to write the page anew";
}

TEST(Docs, TheFieldsAreThoseOfTheTables) { expect_page("fields.md", fields_markdown()); }

TEST(Docs, TheExitCodesAreThoseOfTheTable) { expect_page("exit-codes.md", exit_codes_markdown()); }

TEST(Docs, TheExamplesAreJobsThatCanBeRead) {
  int jobs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(OUTRIGGER_SOURCE_DIR) / "manifests/examples")) {
    const std::string text = read_file(entry.path());
    if (text.find("kind: TrainingJob") == std::string::npos) continue;
    ++jobs;
    const auto errors = resolve_training_job(text).errors;
    EXPECT_TRUE(errors.empty()) << to_string(errors, entry.path().string());
  }
  EXPECT_GT(jobs, 4);
}

template <typename Visit>
void for_each_field(const schema::Object& object, const std::string& path, const Visit& visit) {
  for (const Field& field : object.fields) {
    visit(path + "." + field.name, field);
    if (field.object != nullptr) for_each_field(*field.object, path + "." + field.name, visit);
  }
}

TEST(Schema, EveryFieldIsDocumentedAndBounded) {
  int fields = 0;
  for_each_field(schema::training_job(), "", [&](const std::string& path, const Field& field) {
    ++fields;
    EXPECT_TRUE(!field.doc.empty() && field.doc.back() == '.') << path;
    const Kind kind = field.kind == Kind::kList ? field.item : field.kind;
    if (kind == Kind::kText || kind == Kind::kTextMap) {
      EXPECT_GT(field.longest_text, 0u) << path;
    }
    if (kind == Kind::kObject) {
      EXPECT_NE(field.object, nullptr) << path;
    }
    if (kind == Kind::kEnum) {
      EXPECT_FALSE(field.values.empty()) << path;
    }
    if (field.default_value) {
      EXPECT_FALSE(field.required) << path;
    }
  });
  EXPECT_GT(fields, 200);
}

TEST(Schema, AFieldOfTheSpecThatMayBeAbsentSaysWhatThatMeans) {
  const Field* spec = schema::training_job().find("spec");
  ASSERT_NE(spec, nullptr);
  for_each_field(*spec->object, "spec", [](const std::string& path, const Field& field) {
    const bool leaf = field.kind != Kind::kObject;
    if (leaf && !field.required && !field.alternative) {
      EXPECT_TRUE(field.default_value.has_value() || !field.absent.empty()) << path;
    }
  });
}

}  // namespace
}  // namespace outrigger::api

#include "fields_markdown.h"

#include "api/exit_codes.h"
#include "api/schema.h"
#include "api/schema/scalar.h"

namespace outrigger::api {
namespace {

using schema::Change;
using schema::Field;
using schema::Kind;
using schema::Object;

std::string words(const Field& field) {
  std::string result;
  for (const auto& value : field.values) result += (result.empty() ? "`" : ", `") + value + "`";
  return result;
}

std::string type_of(const Field& field) {
  if (field.kind != Kind::kList) return std::string(to_string(field.kind));
  return "list of " + std::string(to_string(field.item)) + (field.item == Kind::kText ? "s" : "");
}

std::string bounds_of(const Field& field) {
  if (!field.values.empty()) return words(field);
  std::string bounds;
  const auto add = [&](const std::string& text) { bounds += (bounds.empty() ? "" : ", ") + text; };
  if (field.minimum)
    add((field.above_minimum ? "> " : ">= ") + schema::format_number(*field.minimum));
  if (field.maximum)
    add((field.below_maximum ? "< " : "<= ") + schema::format_number(*field.maximum));
  const bool text =
      field.kind == Kind::kText || (field.kind == Kind::kList && field.item == Kind::kText);
  if (text && field.text_rule != nullptr) add(std::string(field.text_rule->meaning));
  if (text) add("at most " + std::to_string(field.longest_text) + " bytes");
  if (field.kind == Kind::kList) add("at most " + std::to_string(field.most_items) + " items");
  return bounds;
}

std::string default_of(const Field& field) {
  if (field.required) return "**required**";
  if (field.default_value) return "`" + field.default_value->dump() + "`";
  return field.absent;
}

void add_row(const Field& field, const std::string& path, Change change, std::string& text) {
  const std::string what = field.alternative ? " (one of)" : "";
  text += "| `" + path + "`" + what + " | " + type_of(field) + " | " + default_of(field) + " | " +
          bounds_of(field) + " | " + std::string(to_string(change)) + " | " + field.doc + " |\n";
}

void add_rows(const Object& object, const std::string& path, Change inherited, std::string& text) {
  for (const Field& field : object.fields) {
    const std::string inner = path.empty() ? field.name : path + "." + field.name;
    const Change change = field.change.value_or(inherited);
    add_row(field, inner, change, text);
    if (field.object != nullptr) {
      add_rows(*field.object, field.kind == Kind::kList ? inner + "[]" : inner, change, text);
    }
  }
}

}  // namespace

std::string fields_markdown() {
  std::string text =
      "# Every field of a TrainingJob\n\n"
      "Made from the tables in `api/schema/fields_*.cc`; `make test` fails where this page "
      "differs, and\n"
      "`OUTRIGGER_UPDATE_DOCS=1 <build>/tests/unit/api/api_docs_test` writes it anew.\n\n"
      "What is unset is absent, never null. A field \"(one of)\" is an alternative: exactly one of "
      "its kind is given.\n"
      "*Changes* says when a field of a job that exists may be changed on a cluster, until the job "
      "has ended.\n";
  for (const Field& part : schema::training_job().fields) {
    if (part.object == nullptr) continue;
    text +=
        "\n## " + part.name + "\n\n| field | type | default | allowed | changes | what it is |\n";
    text += "|---|---|---|---|---|---|\n";
    add_rows(*part.object, part.name, part.change.value_or(Change::kNever), text);
  }
  return text;
}

std::string exit_codes_markdown() {
  std::string text =
      "# Exit codes\n\n"
      "How `outrigger-gpu-server`, `outrigger-worker` and `outrigger` end; made from "
      "`api/exit_codes.cc`. *Retryable*:\n"
      "starting again may help, and the operator does it. *Counted*: the restart counts against\n"
      "`failurePolicy.maxRestarts`.\n\n"
      "| code | name | retryable | counted | what happened |\n|---|---|---|---|---|\n";
  for (const ExitCodeInfo& row : exit_code_table()) {
    text += "| " + std::to_string(static_cast<int>(row.code)) + " | " + std::string(row.name) +
            " | " + (row.retryable ? "yes" : "no") + " | " + (row.counted ? "yes" : "no") + " | " +
            std::string(row.text) + " |\n";
  }
  text +=
      "\n`128 + N` is none of ours: signal N ended the program, so it could write no word of it. "
      "137 "
      "is `SIGKILL`, mostly of a kernel or a\n"
      "container that had no memory left. `outrigger run` ends with such a status of its server, "
      "having said so; the last checkpoint is\n"
      "kept, and `--resume` goes on from it.\n";
  return text;
}

}  // namespace outrigger::api

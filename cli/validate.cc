#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/exit_codes.h"
#include "api/parse.h"
#include "api/support.h"
#include "api/write.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "common/file.h"
#include "gpu-server/device/device.h"

namespace outrigger::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ValidateOptions {
  std::vector<std::string> files;
  std::string format = "text";
  bool resolved = false;
};

struct Verdict {
  std::string file;
  api::ParseResult result;
  std::vector<api::FieldError> not_built;  // of a valid job: what this build cannot do yet

  bool valid() const { return result.errors.empty(); }
};

Verdict judge(const std::string& file) {
  Verdict verdict{file, api::resolve_training_job(read_file(file)), {}};
  if (verdict.valid())
    verdict.not_built =
        api::check_supported(verdict.result.job, {.gpu = gpu_server::is_built_for_gpus()});
  return verdict;
}

Json to_json(const std::vector<api::FieldError>& errors) {
  Json list = Json::array();
  for (const api::FieldError& error : errors) {
    Json item{{"path", error.path}, {"message", error.message}};
    if (error.line > 0) {
      item["line"] = error.line;
      item["column"] = error.column;
    }
    list.push_back(item);
  }
  return list;
}

void tell_json(const std::vector<Verdict>& verdicts, bool resolved) {
  Json list = Json::array();
  for (const Verdict& verdict : verdicts) {
    Json item{{"file", verdict.file},
              {"valid", verdict.valid()},
              {"errors", to_json(verdict.result.errors)},
              {"notBuiltYet", to_json(verdict.not_built)}};
    if (resolved && verdict.valid()) item["job"] = api::to_json(verdict.result.job);
    list.push_back(item);
  }
  std::cout << json_text(list, 2) << "\n";
}

void tell_text(const Verdict& verdict, bool resolved) {
  if (!verdict.valid()) {
    std::cerr << api::to_string(verdict.result.errors, verdict.file) << "\n";
    return;
  }
  // What is refused with every capability is refused by a cluster too.
  const auto everywhere = api::check_supported(verdict.result.job, {.cluster = true, .gpu = true});
  for (const api::FieldError& error : verdict.not_built) {
    const bool by_all = std::ranges::find(everywhere, error) != everywhere.end();
    std::cerr << verdict.file << ": " << (by_all ? "a cluster refuses it, and " : "")
              << "`outrigger run` refuses it here: " << api::to_string(error) << "\n";
  }
  if (resolved) {
    std::cout << "---\n" << api::to_yaml(verdict.result.job);
  } else {
    std::cout << verdict.file << ": valid\n";
  }
}

void validate(const ValidateOptions& options) {
  std::vector<Verdict> verdicts;
  bool all_valid = true;
  for (const std::string& file : options.files) {
    verdicts.push_back(judge(file));
    all_valid = all_valid && verdicts.back().valid();
  }
  if (options.format == "json") {
    tell_json(verdicts, options.resolved);
  } else {
    for (const Verdict& verdict : verdicts) tell_text(verdict, options.resolved);
  }
  if (!all_valid) throw CLI::RuntimeError(static_cast<int>(api::ExitCode::kInvalidSpec));
}

}  // namespace

void add_validate(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "validate", "Check job files, and say everything that is wrong with them");
  const auto options = std::make_shared<ValidateOptions>();
  command->add_option("files", options->files, "TrainingJobs, YAML or JSON")->required();
  command->add_flag("--resolved", options->resolved, "Print each job with its defaults filled in");
  command->add_option("-o,--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Each error names file, line, column and field, the value and what is allowed:\n"
      "  faces.yaml:12:16: spec.training.batchSize: 0 is too small; at least 1\n"
      "Exit status: 0 all valid, 10 at least one is not (docs/exit-codes.md).\n"
      "Examples:\n"
      "  outrigger validate job.yaml\n"
      "  outrigger validate --resolved job.yaml > resolved.yaml\n"
      "  outrigger validate -o json jobs/*.yaml | jq '.[] | select(.valid | not)'\n"
      "Every field: docs/fields.md.");
  command->callback([options] { validate(*options); });
}

}  // namespace outrigger::cli

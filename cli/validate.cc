#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/exit_codes.h"
#include "api/parse.h"
#include "api/support.h"
#include "api/write.h"
#include "cli/commands.h"
#include "cli/job_file.h"
#include "cli/output.h"
#include "common/error.h"
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
  std::vector<api::FieldError> not_built = {};  // of a valid job: what this build cannot do yet
  // What a cluster refuses, whatever it has; it alone knows whether its image can use GPUs.
  std::vector<api::FieldError> refused_by_cluster = {};
  std::string unreadable = {};  // why the file could not be read; else empty

  bool valid() const { return result.errors.empty() && unreadable.empty(); }
};

/// A file that cannot be read is told beside the others, which are judged all the same.
Verdict judge(const std::string& file) {
  constexpr size_t kMostBytes = size_t{16} << 20;  // as api::load_training_job
  Verdict verdict{file, {}};
  try {
    verdict.result = api::resolve_training_job(read_file(file, kMostBytes));
  } catch (const IoError& error) {
    verdict.unreadable = error.what();
  }
  if (!verdict.valid()) return verdict;
  verdict.not_built =
      api::check_supported(verdict.result.job, {.gpu = gpu_server::is_built_for_gpus()});
  verdict.refused_by_cluster =
      api::check_supported(verdict.result.job, {.cluster = true, .gpu = true});
  if (auto fault = network_fault(verdict.result.job))
    verdict.result.errors.push_back(api::located(std::move(*fault), verdict.result.places));
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
              {"notBuiltYet", to_json(verdict.not_built)},
              {"refusedByClusters", to_json(verdict.refused_by_cluster)}};
    if (!verdict.unreadable.empty()) item["unreadable"] = verdict.unreadable;
    if (resolved && verdict.valid()) item["job"] = api::to_json(verdict.result.job);
    list.push_back(item);
  }
  std::cout << json_text(list, 2) << "\n";
}

/// A valid job need not be one that can be run: who refuses it, and what.
void tell_refusals(const Verdict& verdict) {
  const auto& [here, cluster] = std::tie(verdict.not_built, verdict.refused_by_cluster);
  const auto has = [](const auto& errors, const api::FieldError& error) {
    return std::ranges::find(errors, error) != errors.end();
  };
  for (const api::FieldError& error : here) {
    std::cerr << verdict.file << ": " << (has(cluster, error) ? "a cluster refuses it, and " : "")
              << "`outrigger run` refuses it here: " << api::to_string(error) << "\n";
  }
  for (const api::FieldError& error : cluster) {
    if (!has(here, error))
      std::cerr << verdict.file << ": a cluster refuses it: " << api::to_string(error) << "\n";
  }
}

void tell_text(const Verdict& verdict, bool resolved) {
  if (!verdict.unreadable.empty()) {
    std::cerr << verdict.unreadable << "\n";
    return;
  }
  if (!verdict.valid()) {
    std::cerr << api::to_string(verdict.result.errors, verdict.file) << "\n";
    return;
  }
  tell_refusals(verdict);
  if (resolved) {
    std::cout << "---\n" << api::to_yaml(verdict.result.job);
  } else {
    std::cout << verdict.file << ": valid\n";
  }
}

/// What is not known weighs more than what is known to be wrong.
api::ExitCode code_of(const std::vector<Verdict>& verdicts) {
  const auto unreadable = [](const Verdict& verdict) { return !verdict.unreadable.empty(); };
  if (std::ranges::any_of(verdicts, unreadable)) return api::ExitCode::kIoFailure;
  return std::ranges::all_of(verdicts, &Verdict::valid) ? api::ExitCode::kDone
                                                        : api::ExitCode::kInvalidSpec;
}

void validate(const ValidateOptions& options) {
  std::vector<Verdict> verdicts;
  for (const std::string& file : options.files) verdicts.push_back(judge(file));
  if (options.format == "json") {
    tell_json(verdicts, options.resolved);
  } else {
    for (const Verdict& verdict : verdicts) tell_text(verdict, options.resolved);
  }
  const api::ExitCode code = code_of(verdicts);
  if (code != api::ExitCode::kDone) throw CLI::RuntimeError(static_cast<int>(code));
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
      "A network or a cut that there is none of is an error, too, though an API server, which "
      "knows "
      "no networks, takes it.\n"
      "What a valid job asks for that a cluster or `outrigger run` refuses all the same is told "
      "beside.\n"
      "Exit status: 0 all valid, 10 at least one is not, 22 one cannot be read "
      "(docs/exit-codes.md).\n"
      "Examples:\n"
      "  outrigger validate job.yaml\n"
      "  outrigger validate --resolved job.yaml > resolved.yaml\n"
      "  outrigger validate -o json jobs/*.yaml | jq '.[] | select(.valid | not)'\n"
      "Every field: docs/fields.md.");
  command->callback([options] { validate(*options); });
}

}  // namespace outrigger::cli

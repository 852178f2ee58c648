#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "common/thread_pool.h"
#include "data/synthetic/faces.h"

namespace outrigger::cli {
namespace {

struct GenerateOptions {
  std::string folder;
  std::string format = "text";
  data::FacesOptions faces;
};

void generate(const GenerateOptions& options) {
  const data::FacesSummary made = data::generate_faces(options.faces, options.folder);
  if (options.format == "json") {
    const nlohmann::json told{
        {"folder", options.folder}, {"images", made.images}, {"bytes", made.bytes}};
    std::cout << json_text(told) << "\n";
    return;
  }
  std::cout << "drew " << made.images << " photos of " << options.faces.identities << " people, "
            << (made.bytes >> 20) << " MiB:\n"
            << "  " << options.folder << "/train  to train with\n";
  if (options.faces.validation_per_identity > 0) {
    std::cout << "  " << options.folder
              << "/val    to evaluate with: the same people, other photos\n";
  }
}

}  // namespace

void add_generate(CLI::App& program) {
  CLI::App* group = program.add_subcommand("generate", "Make a data set to try things with");
  group->require_subcommand(1);
  CLI::App* command = group->add_subcommand("faces",
                                            "Draw faces of people who do not exist, as JPEG files "
                                            "in a folder per person (train/ and val/)");
  const auto options = std::make_shared<GenerateOptions>();
  options->faces.threads = available_cores();
  command
      ->add_option("folder,--out", options->folder,
                   "Folder to write to; must not hold such a data set yet (given once: as the "
                   "argument or with --out)")
      ->required()
      ->check(not_empty());
  command->add_option("--identities", options->faces.identities, "People")
      ->check(CLI::Range(2, 10'000))
      ->capture_default_str();
  command
      ->add_option("--train", options->faces.train_per_identity, "Photos of each person in train/")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command
      ->add_option("--validation", options->faces.validation_per_identity,
                   "Photos of each person in val/")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command->add_option("--size", options->faces.size, "Height and width in pixels")
      ->check(CLI::Range(16, 1024))
      ->capture_default_str();
  command->add_option("--seed", options->faces.seed, "The same seed gives the same files")
      ->capture_default_str();
  command->add_option("--threads", options->faces.threads, "Threads that draw")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("-o,--format", options->format, "How to print the result")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer("Example: outrigger generate faces demo/faces");
  command->callback([options] { generate(*options); });
}

}  // namespace outrigger::cli

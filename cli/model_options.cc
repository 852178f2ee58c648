#include "cli/model_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "cli/option_checks.h"
#include "common/error.h"
#include "common/log.h"
#include "common/thread_pool.h"

namespace outrigger::cli {

namespace {

/// Reads "112x112x3"; false if the text is anything else.
bool read_size(const std::string& text, ModelHints& hints) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int64_t* number : {&hints.height, &hints.width, &hints.channels}) {
    if (number != &hints.height) {
      if (at == end || *at != 'x') return false;
      ++at;
    }
    const auto [stop, fault] = std::from_chars(at, end, *number);
    if (fault != std::errc{}) return false;
    at = stop;
  }
  return at == end;
}

}  // namespace

TrainedModel ModelArguments::load() const {
  ModelHints said = hints;
  if (!size.empty() && !read_size(size, said)) {
    throw CLI::ValidationError("--size",
                               size + ": wanted is height x width x channels, as in 112x112x3");
  }
  return load_trained_model(weights, said);
}

void add_model_options(CLI::App& command, ModelArguments& arguments) {
  arguments.threads = available_cores();
  command
      .add_option("run,--weights", arguments.weights,
                  "Output directory of a run, directory of its checkpoints, or a .safetensors file "
                  "(given once: as the argument or with --weights)")
      ->required()
      ->check(not_empty());
  command.add_option("--model", arguments.hints.name,
                     "Model of weights that were not written by Outrigger: " +
                         CLI::detail::join(nn::model_names(), ", "));
  command.add_option("--size", arguments.size,
                     "Height x width x channels of its input, as in 112x112x3");
  command.add_option("--embedding", arguments.hints.embedding,
                     "Size of its embedding, where that can be chosen");
  command.add_option("--threads", arguments.threads, "Threads to work with")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--batch", arguments.batch, "Images that go through the network at once")
      ->check(CLI::Range(1, kMostThreads))
      ->capture_default_str();
}

ImageOutputs run_with_progress(const ModelArguments& arguments, const TrainedModel& model,
                               const ImageList& images) {
  const bool live = ::isatty(::fileno(stderr)) == 1;
  const auto show = [&](size_t done) {
    if (live) std::fprintf(stderr, "\r%zu/%zu images\x1b[K", done, images.samples.size());
  };
  ImageOutputs outputs = run_images(model, images.root, images.samples,
                                    {.threads = arguments.threads,
                                     .batch = arguments.batch,
                                     .classify = images.classify,
                                     .progress = show});
  if (live) std::fputs("\r\x1b[K", stderr);
  for (const std::string& reason : outputs.broken) log::warning("left out {}", reason);
  if (outputs.images.empty()) {
    throw InvalidInput("none of the " + std::to_string(images.samples.size()) +
                       " images could be decoded");
  }
  return outputs;
}

}  // namespace outrigger::cli

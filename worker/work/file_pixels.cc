#include "worker/work/file_pixels.h"

#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/error.h"
#include "common/file.h"

namespace outrigger::worker {
namespace {

using OfOneFile = std::vector<const data::Sample*>;

std::vector<OfOneFile> by_file(std::span<const feed::LeaseSample> samples) {
  std::map<std::string_view, OfOneFile> by_path;
  for (const auto& sample : samples) by_path[sample.sample.path].push_back(&sample.sample);
  std::vector<OfOneFile> files;
  for (auto& entry : by_path) files.push_back(std::move(entry.second));
  return files;
}

/// False: the file cannot be opened; whoever reads it says why.
bool read_ahead(const std::filesystem::path& root, const OfOneFile& samples) {
  const auto path = root / samples.front()->path;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  for (const data::Sample* sample : samples) {
    ::posix_fadvise(file.get(), static_cast<off_t>(sample->offset),
                    static_cast<off_t>(sample->length), POSIX_FADV_WILLNEED);
  }
  return true;
}

}  // namespace

struct FilePixels::Tools {
  Tools(const std::filesystem::path& train_root, const std::filesystem::path& validation_root)
      : train(train_root), validation(validation_root) {}
  data::SampleReader train;
  data::SampleReader validation;
  data::Pipeline::Scratch scratch;
};

FilePixels::FilePixels(data::PipelineOptions options, std::filesystem::path train,
                       std::filesystem::path validation)
    : pipeline_(std::move(options)), train_(std::move(train)), validation_(std::move(validation)) {}

FilePixels::~FilePixels() = default;

std::unique_ptr<FilePixels::Tools> FilePixels::borrow() {
  {
    const std::scoped_lock lock(mutex_);
    if (!free_.empty()) {
      auto tools = std::move(free_.back());
      free_.pop_back();
      return tools;
    }
  }
  return std::make_unique<Tools>(train_, validation_);
}

Duration FilePixels::make(const feed::LeaseSample& sample, bool evaluation,
                          std::span<std::byte> pixels) {
  auto tools = borrow();
  const auto give_back = [&] {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(tools));
  };
  Duration read{0};
  try {
    const auto begin = std::chrono::steady_clock::now();
    const auto encoded = (evaluation ? tools->validation : tools->train).read(sample.sample);
    read = std::chrono::steady_clock::now() - begin;
    if (evaluation) {
      pipeline_.evaluate(encoded, tools->scratch, pixels);
    } else {
      pipeline_.train(encoded, sample.slot, tools->scratch, pixels);
    }
  } catch (const Error&) {
    give_back();
    throw;
  }
  give_back();
  return read;
}

Duration FilePixels::prefetch(std::span<const feed::LeaseSample> samples, bool evaluation,
                              ThreadPool& threads) {
  const TimePoint begin = system_now();
  const auto files = by_file(samples);
  const std::filesystem::path& root = evaluation ? validation_ : train_;
  std::atomic<bool> failed = false;
  threads.parallel_for(static_cast<int>(files.size()), [&](int file) {
    if (!failed && !read_ahead(root, files[static_cast<size_t>(file)])) failed = true;
  });
  return system_now() - begin;
}

}  // namespace outrigger::worker

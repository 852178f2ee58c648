#include "worker/work/file_pixels.h"

#include <fcntl.h>

#include <chrono>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::worker {

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

void FilePixels::prefetch(std::span<const feed::LeaseSample> samples, bool evaluation) {
  for (const auto& sample : samples) {
    const auto path = (evaluation ? validation_ : train_) / sample.sample.path;
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) continue;  // make() says what is wrong
    ::posix_fadvise(file.get(), static_cast<off_t>(sample.sample.offset),
                    static_cast<off_t>(sample.sample.length), POSIX_FADV_WILLNEED);
  }
}

}  // namespace outrigger::worker

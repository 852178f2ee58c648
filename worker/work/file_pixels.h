#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "data/pipeline.h"
#include "data/sample_reader.h"
#include "worker/work/pixel_source.h"

namespace outrigger::worker {

/// Pixels of samples that lie in files. Thread-safe: each call borrows a reader and a scratch, made
/// once per thread that works at the same time.
class FilePixels final : public PixelSource {
 public:
  /// Roots of the training and of the validation set; the latter is empty where the job has none.
  FilePixels(data::PipelineOptions options, std::filesystem::path train,
             std::filesystem::path validation);
  ~FilePixels() override;

  Duration make(const feed::LeaseSample& sample, bool evaluation,
                std::span<std::byte> pixels) override;
  /// Tells the kernel to read ahead, so that a slow disk is waited for once. Opens each file once,
  /// on all threads, and no more once one cannot be opened.
  Duration prefetch(std::span<const feed::LeaseSample> samples, bool evaluation,
                    ThreadPool& threads) override;

 private:
  struct Tools;
  std::unique_ptr<Tools> borrow();

  const data::Pipeline pipeline_;
  const std::filesystem::path train_;
  const std::filesystem::path validation_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Tools>> free_;
};

}  // namespace outrigger::worker

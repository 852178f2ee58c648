#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "nn/cuda/engine.h"

namespace outrigger::nn::cuda {

/// Which of the library's plans was the fastest for each convolution, on one kind of device: a
/// file, so that they are timed once and a job that resumes computes as before. Text: a version,
/// the device, a line a convolution, and a checksum. A file that is damaged, or of another device
/// or version, is left aside with a message and written anew. Not thread-safe.
class PlanCache {
 public:
  /// `device`: all that a plan's speed depends on but the shape (the GPU, driver and libraries,
  /// what is allowed), in one line. The file need not be there yet.
  PlanCache(std::filesystem::path file, std::string device);

  /// The library's name for the plan; nothing where none was timed.
  std::optional<std::string> find(const ConvolutionRequest& request) const;
  /// Writes the file, once its folder is there: a run that begins makes it later than the first
  /// plans, who only measures a job never. A file that cannot be written costs a warning and is not
  /// tried again. Names have no line ends.
  void put(const ConvolutionRequest& request, const std::string& plan);
  size_t size() const { return plans_.size(); }

 private:
  void read();
  std::string text() const;

  const std::filesystem::path file_;
  const std::string device_;
  std::map<std::string, std::string> plans_;  // by the request, as it stands in the file
  bool writable_ = true;
};

}  // namespace outrigger::nn::cuda

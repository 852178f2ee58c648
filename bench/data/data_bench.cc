// How fast encoded images become training tensors, one pass for every line on standard input:
// prints images per second. So a script can take turns with another program
// (compare_torchvision.py). Without --folder it draws faces; --passes N needs no input.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/file.h"
#include "common/thread_pool.h"
#include "data/pipeline.h"
#include "data/sample_reader.h"
#include "data/synthetic/faces.h"

namespace {

using namespace outrigger;

struct Arguments {
  std::filesystem::path folder;
  int size = 224;
  int threads = 1;
  int passes = 0;  // 0: one for every line
  int copies = 1;  // of the list, so that a pass is long enough
  bool read_files = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] {
      if (++i == argc) throw InvalidInput(name + " wants a value");
      return std::string(argv[i]);
    };
    if (name == "--folder")
      arguments.folder = value();
    else if (name == "--size")
      arguments.size = std::stoi(value());
    else if (name == "--threads")
      arguments.threads = std::stoi(value());
    else if (name == "--passes")
      arguments.passes = std::stoi(value());
    else if (name == "--copies")
      arguments.copies = std::stoi(value());
    else if (name == "--read-files")
      arguments.read_files = true;
    else
      throw InvalidInput(name + ": unknown; see the top of data_bench.cc");
  }
  return arguments;
}

/// x * scale + shift for every byte of a row, both {width * 3}: what the network's layer 0 does,
/// here so that the result is the same float tensor that the other side makes.
class Normalizer {
 public:
  explicit Normalizer(int width) {
    constexpr float kMean[] = {0.485F, 0.456F, 0.406F};
    constexpr float kDeviation[] = {0.229F, 0.224F, 0.225F};
    for (int i = 0; i < 3 * width; ++i) {
      scale_.push_back(1 / (255 * kDeviation[i % 3]));
      shift_.push_back(-kMean[i % 3] / kDeviation[i % 3]);
    }
  }
  void run(const std::byte* pixels, size_t count, float* out) const {
    const size_t row = scale_.size();
    for (size_t i = 0; i < count; i += row) {
      for (size_t k = 0; k < row; ++k)
        out[i + k] = std::to_integer<uint8_t>(pixels[i + k]) * scale_[k] + shift_[k];
    }
  }

 private:
  std::vector<float> scale_;
  std::vector<float> shift_;
};

struct Worker {
  explicit Worker(const std::filesystem::path& root) : reader(root) {}
  data::Pipeline::Scratch scratch;
  data::SampleReader reader;
  std::vector<std::byte> pixels;
};

class Bench {
 public:
  Bench(const Arguments& arguments, const std::filesystem::path& folder)
      : arguments_(arguments),
        pipeline_(options(arguments)),
        normalizer_(arguments.size),
        pool_(arguments.threads) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file())
        paths_.push_back(std::filesystem::relative(entry.path(), folder).string());
    }
    std::sort(paths_.begin(), paths_.end());
    for (const std::string& path : paths_)
      contents_.push_back(arguments.read_files ? "" : read_file(folder / path));
    for (int i = 0; i < arguments.threads; ++i)
      workers_.emplace_back(folder).pixels.resize(pipeline_.pixels_size());
    batch_.resize(kBatch * pipeline_.pixels_size());
  }

  /// Images per second of one pass over the list.
  double pass() {
    const auto start = std::chrono::steady_clock::now();
    const int images = static_cast<int>(paths_.size()) * arguments_.copies;
    for (int first = 0; first < images; first += kBatch) {
      const int count = std::min(kBatch, images - first);
      // Each thread takes its share in turn: contiguous shares of a batch differ in cost.
      pool_.parallel_for(arguments_.threads, [&](int t) {
        for (int i = t; i < count; i += arguments_.threads)
          one(workers_[static_cast<size_t>(t)], first + i, i);
      });
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return images / seconds.count();
  }

 private:
  static constexpr int kBatch = 64;

  static data::PipelineOptions options(const Arguments& arguments) {
    data::PipelineOptions result;
    result.height = result.width = arguments.size;
    result.augment = {data::RandomResizedCrop{}, data::RandomHorizontalFlip{}};
    return result;
  }

  void one(Worker& worker, int image, int place) {
    const size_t index = static_cast<size_t>(image) % paths_.size();
    const std::string& content = contents_[index];
    const auto encoded = arguments_.read_files
                             ? worker.reader.read({paths_[index], 0, 0, 0})
                             : std::as_bytes(std::span(content.data(), content.size()));
    pipeline_.train(encoded, slot_of(image), worker.scratch, worker.pixels);
    const size_t size = worker.pixels.size();
    normalizer_.run(worker.pixels.data(), size, batch_.data() + static_cast<size_t>(place) * size);
  }
  uint64_t slot_of(int image) const { return static_cast<uint64_t>(image); }

  Arguments arguments_;
  data::Pipeline pipeline_;
  Normalizer normalizer_;
  ThreadPool pool_;
  std::vector<std::string> paths_;
  std::vector<std::string> contents_;
  std::vector<Worker> workers_;
  std::vector<float> batch_;
};

}  // namespace

int main(int argc, char** argv) try {
  Arguments arguments = parse(argc, argv);
  std::unique_ptr<TemporaryDirectory> drawn;
  if (arguments.folder.empty()) {
    drawn = std::make_unique<TemporaryDirectory>("outrigger-bench");
    data::generate_faces(
        {.identities = 8, .train_per_identity = 8, .validation_per_identity = 0, .size = 256},
        drawn->path());
    arguments.folder = drawn->path();
  }
  Bench bench(arguments, arguments.folder);
  std::string line;
  for (int pass = 0; arguments.passes > 0 ? pass < arguments.passes
                                          : static_cast<bool>(std::getline(std::cin, line));
       ++pass) {
    std::printf("%.1f\n", bench.pass());
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

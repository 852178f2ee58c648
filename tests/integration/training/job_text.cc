#include "tests/integration/training/job_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <vector>

#include "common/file.h"
#include "data/synthetic/faces.h"

namespace outrigger::integration {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSmallNet = R"(
    layers:
      - {name: conv1, convolution: {channels: 8, kernel: 3, stride: 2, padding: 1}}
      - {name: bn1, batchNorm: {}}
      - {name: relu1, relu: {}}
      - {name: conv2, convolution: {channels: 16, kernel: 3, stride: 2, padding: 1}}
      - {name: bn2, batchNorm: {}}
      - {name: relu2, relu: {}}
      - {name: drop2, dropout: {rate: 0.2}}
      - {name: conv3, convolution: {channels: 16, kernel: 3, padding: 1}}
      - {name: bn3, batchNorm: {}}
      - {name: add3, add: {}, inputs: [bn3, drop2]}
      - {name: relu3, relu: {}}
      - {name: pool, globalAveragePool: {}}
      - {name: flat, flatten: {}}
      - {name: drop, dropout: {rate: 0.3}}
      - {name: classifier, linear: {features: 12}}
)";

/// One member of a tar: its header (POSIX ustar) and its bytes, padded.
std::string tar_member(const std::string& name, const std::string& content) {
  std::array<char, 512> header{};
  const auto put = [&](size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  char size[13] = {};
  std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(content.size()));
  put(0, name);
  put(100, "0000644");
  put(124, size);
  put(148, "        ");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  char checksum[8] = {};
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  put(148, std::string(checksum) + '\0' + ' ');
  std::string member(header.data(), header.size());
  member += content;
  member.resize((member.size() + 511) / 512 * 512, '\0');
  return member;
}

template <typename Iterator>
std::vector<fs::path> sorted(const Iterator& entries) {
  std::vector<fs::path> paths;
  for (const auto& entry : entries) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

/// Writes the images below `folder` into `count` tar files in `to`, one after another.
void write_shards(const fs::path& folder, const fs::path& to, size_t count) {
  const std::vector<fs::path> people = sorted(fs::directory_iterator(folder));
  std::vector<std::string> shards(count);
  size_t written = 0;
  for (size_t person = 0; person < people.size(); ++person) {
    for (const auto& image : sorted(fs::directory_iterator(people[person]))) {
      const std::string key = people[person].filename().string() + "-" + image.stem().string();
      std::string& shard = shards[written++ % count];
      shard += tar_member(key + ".jpg", read_file(image));
      shard += tar_member(key + ".cls", std::to_string(person));
    }
  }
  fs::create_directories(to);
  for (size_t i = 0; i < count; ++i) {
    write_file_atomically(to / ("shard-" + std::to_string(i) + ".tar"),
                          shards[i] + std::string(1024, '\0'));
  }
}

void write_data(const JobText& job, std::ostream& text) {
  const char* format = job.shards ? "WebDataset" : "ImageFolder";
  text << "  data:\n    volumeClaimName: faces\n"
       << "    train: {path: /data/train, format: " << format << "}\n";
  if (job.validation) text << "    validation: {path: /data/val, format: " << format << "}\n";
  text << "    image: {height: " << job.side << ", width: " << job.side << ", channels: 3}\n"
       << "    maxBadFraction: " << job.max_bad_fraction << "\n"
       << "    augment: [{randomHorizontalFlip: {}}, {randomResizedCrop: {minScale: 0.7, maxScale: "
          "1.0}}]\n"
       << job.more_data;
}

void write_training(const JobText& job, std::ostream& text) {
  text << "  training:\n    steps: " << job.steps << "\n    batchSize: " << job.batch
       << "\n    microBatchSize: " << job.micro_batch << "\n    loss: " << job.loss
       << "\n    optimizer: {sgd: {momentum: 0.9, weightDecay: 0.0005}}\n"
       << "    schedule: {constant: {base: " << job.rate << "}}\n    clipGradientNorm: " << job.clip
       << "\n"
       << "    precision: " << job.precision << "\n    staleness: " << job.staleness
       << "\n    seed: " << job.seed << "\n"
       << job.more_training;
}

}  // namespace

std::string small_net() { return kSmallNet; }

std::string job_text(const JobText& job, const fs::path& output) {
  std::ostringstream text;
  text << "apiVersion: outrigger.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: test}\nspec:\n"
       << "  model:" << (job.model.empty() ? kSmallNet : job.model + "\n");
  write_data(job, text);
  write_training(job, text);
  text << "  split: {cut: " << job.cut
       << (job.share < 0 ? "" : ", sharePercent: " + std::to_string(job.share))
       << (job.wire.empty() ? "" : ", wire: " + job.wire) << job.more_split << "}\n"
       << "  server: {replicas: " << job.replicas
       << ", gpus: 0}\n  workers: {replicas: 0}\n  output: {path: " << output.string() << "}\n"
       << "  checkpoint: {everySteps: " << job.checkpoint_every << ", keep: " << job.keep
       << (job.checkpoint_path.empty() ? "" : ", path: " + job.checkpoint_path) << "}\n"
       << job.more_spec;
  return text.str();
}

const fs::path& faces() {
  static const TemporaryDirectory folder("outrigger-faces");
  static const fs::path path = [] {
    data::FacesOptions options;
    options.identities = 12;
    options.train_per_identity = 7;
    options.validation_per_identity = 3;
    options.size = 40;
    data::generate_faces(options, folder.path() / "faces");
    return folder.path() / "faces";
  }();
  return path;
}

const fs::path& face_shards() {
  static const TemporaryDirectory folder("outrigger-shards");
  static const fs::path path = [] {
    write_shards(faces() / "train", folder.path() / "train", 5);
    write_shards(faces() / "val", folder.path() / "val", 2);
    return folder.path();
  }();
  return path;
}

void break_images(const fs::path& folder, int count) {
  std::vector<fs::path> images = sorted(fs::recursive_directory_iterator(folder));
  std::erase_if(images, [](const fs::path& path) { return !fs::is_regular_file(path); });
  for (int i = 0; i < count; ++i) fs::resize_file(images.at(static_cast<size_t>(i)), 40);
}

}  // namespace outrigger::integration

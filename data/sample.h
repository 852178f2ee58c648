#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/hash.h"

namespace outrigger::data {

/// Where the bytes of one encoded image lie, and what it shows. Small and self-contained: a lease
/// carries it.
struct Sample {
  /// Relative to the data set's root (or absolute, where the listing was made from absolute names).
  std::string path;
  /// First byte inside `path`; not 0 only inside a shard.
  uint64_t offset = 0;
  /// Bytes; 0 means the whole file.
  uint64_t length = 0;
  /// Index into Dataset::classes(); -1 where unknown.
  int32_t label = -1;

  bool operator==(const Sample&) const = default;
};

/// The listing of a data set: 20 bytes a sample, plus the file's name where each sample is a file
/// of its own, so that ten million samples fit in the server's memory. Append-only while listed,
/// then constant and safe to share among threads. Fewer than 2^32 samples.
class Dataset {
 public:
  void set_classes(std::vector<std::string> classes) { classes_ = std::move(classes); }
  /// Starts a container: a folder (`is_shard` false: samples are files in it) or a shard (samples
  /// are byte ranges). Samples added from now on belong to it. `path` as in Sample::path; empty for
  /// the root itself.
  void begin_container(std::string path, bool is_shard);
  void add_file(std::string_view name, int32_t label);
  void add_range(uint64_t offset, uint64_t length, int32_t label);
  /// Gives back what the vectors reserved too much.
  void finish();

  uint32_t size() const { return static_cast<uint32_t>(labels_.size()); }
  const std::vector<std::string>& classes() const { return classes_; }
  int32_t label(uint32_t index) const { return labels_[index]; }
  Sample at(uint32_t index) const;

  /// First sample of every container (folder or shard), in order, starting with 0; containers
  /// without samples are left out. The blocks of windowed order.
  std::span<const uint32_t> block_starts() const { return block_starts_; }
  /// What the listing takes, class and container names left out.
  size_t memory_bytes() const;
  bool is_sharded() const { return !containers_.empty() && containers_.front().is_shard; }

  /// SHA-256 over classes and all samples in order; the same on every machine that lists the same
  /// data.
  Sha256 fingerprint() const;

 private:
  struct Container {
    std::string path;
    bool is_shard;
  };
  void add(uint64_t position, uint32_t length, int32_t label);

  std::vector<std::string> classes_;
  std::vector<Container> containers_;
  std::vector<uint32_t> block_starts_;
  std::vector<uint32_t> container_of_;
  std::vector<int32_t> labels_;
  std::vector<uint64_t> positions_;  // byte offset in the shard, or where the name starts in names_
  std::vector<uint32_t> lengths_;
  std::string names_;  // each ended by a zero byte
};

/// `count` different samples (or all, when there are fewer) drawn from `seed`: what a worker must
/// hash to prove that it sees the same data. Always the same for the same listing and seed.
std::vector<Sample> choose_probe(const Dataset& dataset, uint64_t seed, uint32_t count = 8);

/// SHA-256 over the bytes of `samples` under `root`, in order. Throws IoError with the path when
/// one cannot be read.
Sha256 probe(const std::filesystem::path& root, std::span<const Sample> samples);

}  // namespace outrigger::data

#include "data/sample.h"

#include <algorithm>
#include <limits>

#include "common/bytes.h"
#include "common/error.h"
#include "common/random.h"
#include "data/sample_reader.h"

namespace outrigger::data {
namespace {

/// Digests are chained over pieces of this many bytes, so that a long listing is never held twice.
constexpr size_t kPiece = size_t{1} << 20;

}  // namespace

void Dataset::begin_container(std::string path, bool is_shard) {
  containers_.push_back({std::move(path), is_shard});
}

void Dataset::add(uint64_t position, uint32_t length, int32_t label) {
  ensure(!containers_.empty(), "a sample lies in a container");
  if (labels_.size() >= std::numeric_limits<uint32_t>::max())
    throw InvalidInput("more than 2^32 - 1 samples");
  const auto container = static_cast<uint32_t>(containers_.size() - 1);
  if (container_of_.empty() || container_of_.back() != container) block_starts_.push_back(size());
  container_of_.push_back(container);
  positions_.push_back(position);
  lengths_.push_back(length);
  labels_.push_back(label);
}

void Dataset::add_file(std::string_view name, int32_t label) {
  const uint64_t position = names_.size();
  names_.append(name);
  names_.push_back('\0');
  add(position, 0, label);
}

void Dataset::add_range(uint64_t offset, uint64_t length, int32_t label) {
  if (length == 0 || length > std::numeric_limits<uint32_t>::max()) {
    throw InvalidInput(containers_.back().path + ": an image of " + std::to_string(length) +
                       " bytes at offset " + std::to_string(offset) + "; allowed is 1 to 2^32 - 1");
  }
  add(offset, static_cast<uint32_t>(length), label);
}

void Dataset::finish() {
  block_starts_.shrink_to_fit();
  container_of_.shrink_to_fit();
  labels_.shrink_to_fit();
  positions_.shrink_to_fit();
  lengths_.shrink_to_fit();
  names_.shrink_to_fit();
}

size_t Dataset::memory_bytes() const {
  const auto bytes = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  return bytes(block_starts_) + bytes(container_of_) + bytes(labels_) + bytes(positions_) +
         bytes(lengths_) + names_.capacity();
}

Sample Dataset::at(uint32_t index) const {
  ensure(index < size(), "the sample's index is below the data set's size");
  const Container& container = containers_[container_of_[index]];
  if (container.is_shard)
    return {container.path, positions_[index], lengths_[index], labels_[index]};
  const char* name = names_.c_str() + positions_[index];
  return {container.path.empty() ? std::string(name) : container.path + "/" + name, 0, 0,
          labels_[index]};
}

Sha256 Dataset::fingerprint() const {
  Sha256 digest{};
  ByteWriter piece;
  const auto chain = [&] {
    const Bytes bytes = piece.take();
    piece = ByteWriter();
    digest = sha256(bytes);
    piece.raw(digest.data(), digest.size());
  };
  piece.number(static_cast<uint32_t>(classes_.size()));
  for (const std::string& name : classes_) piece.text(name);
  piece.number(size());
  for (uint32_t i = 0; i < size(); ++i) {
    const Sample sample = at(i);
    piece.text(sample.path);
    piece.number(sample.offset);
    piece.number(sample.length);
    piece.number(sample.label);
    if (piece.size() >= kPiece) chain();
  }
  chain();
  return digest;
}

std::vector<Sample> choose_probe(const Dataset& dataset, uint64_t seed, uint32_t count) {
  // Use and key of their own: no other draw of a run is at epoch 2^64 - 1.
  RandomStream random(seed, RandomUse::kEpochOrder, std::numeric_limits<uint64_t>::max());
  std::vector<uint32_t> indexes;
  const uint32_t wanted = std::min(count, dataset.size());
  while (indexes.size() < wanted) {
    const uint32_t index = random.below(dataset.size());
    if (std::find(indexes.begin(), indexes.end(), index) == indexes.end()) indexes.push_back(index);
  }
  std::vector<Sample> samples;
  for (const uint32_t index : indexes) samples.push_back(dataset.at(index));
  return samples;
}

Sha256 probe(const std::filesystem::path& root, std::span<const Sample> samples) {
  SampleReader reader(root);
  Bytes digests;
  for (const Sample& sample : samples) {
    const Sha256 digest = sha256(reader.read(sample));
    digests.insert(digests.end(), digest.begin(), digest.end());
  }
  return sha256(digests);
}

}  // namespace outrigger::data

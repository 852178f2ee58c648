#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/tensor.h"

/// The safetensors format, version 0.3 and later (github.com/huggingface/safetensors): 8 bytes of
/// header length, a JSON header, and the tensors' bytes without holes.
namespace outrigger::nn {

/// One tensor of a file. `type` is the format's word: "F32", "BF16", "F16", "F64", "I64", "U8", ….
struct StoredTensor {
  std::string name;
  std::string type;
  Shape shape;
  uint64_t begin = 0;  // in the data that follows the header
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Reads a header from anybody's bytes. Every tensor's size is checked against its shape and type,
/// and all of them must fill `data_size` bytes without hole or overlap. Throws InvalidInput that
/// names `file` and the tensor.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> json, uint64_t data_size,
                                           const std::string& file);

/// An open file. Reads what is asked for; keeps nothing but the header in memory. Not thread-safe
/// to move, else is.
class SafetensorsReader {
 public:
  /// IoError where the file cannot be read, InvalidInput where it is not of the format.
  explicit SafetensorsReader(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Null where there is none.
  const StoredTensor* find(const std::string& name) const;

  /// All values of a tensor as float32, from F32, F16, BF16 or F64 (rounded). `values` has the
  /// tensor's element count. InvalidInput for another type.
  void read(const StoredTensor& tensor, std::span<float> values) const;
  std::vector<float> read(const StoredTensor& tensor) const;
  /// From I64 or I32.
  std::vector<int64_t> read_integers(const StoredTensor& tensor) const;

 private:
  std::vector<std::byte> read_bytes(const StoredTensor& tensor, uint64_t first,
                                    uint64_t size) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  uint64_t data_start_ = 0;
  SafetensorsHeader header_;
};

/// A tensor to be written.
struct PlannedTensor {
  std::string name;
  ElementType type = ElementType::kFloat32;
  Shape shape;
};

/// Writes a file tensor by tensor, in the planned order, holding none of them. Not atomic: whoever
/// needs that writes to a name beside and renames. IoError, also for a full disk. Put 8-byte types
/// before 4-byte ones: readers map the file and want each tensor aligned to its type.
class SafetensorsWriter {
 public:
  SafetensorsWriter(std::filesystem::path path, std::vector<PlannedTensor> plan,
                    const std::map<std::string, std::string>& metadata);
  /// The next tensor's bytes, whole.
  void write(std::span<const std::byte> bytes);
  /// After the last tensor: syncs the file to disk.
  void finish();

 private:
  void append(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  FileDescriptor file_;
  std::vector<PlannedTensor> plan_;
  size_t next_ = 0;
};

}  // namespace outrigger::nn

#include "nn/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/error.h"

namespace outrigger::nn {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors stores little-endian numbers");

constexpr uint64_t kLengthBytes = 8;
// The format's own limit.
constexpr uint64_t kHeaderLimit = 100'000'000;
// Tensors are converted in pieces, so that a large one needs no second copy of itself.
constexpr uint64_t kPieceBytes = 1 << 20;

float from_float16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

void read_all(int fd, std::span<std::byte> bytes, uint64_t offset,
              const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("reading " + path.string(), errno);
    if (got == 0)
      throw IoError("reading " + path.string() + ": it ended at byte " + std::to_string(offset) +
                    ", though it was longer when it was opened");
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

template <typename Stored, typename Value, typename Convert>
void convert(std::span<const std::byte> bytes, std::span<Value> values, const Convert& function) {
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    values[i] = function(stored);
  }
}

uint64_t bytes_per_value(const StoredTensor& tensor) {
  const auto count = static_cast<uint64_t>(element_count(tensor.shape));
  return count == 0 ? 1 : (tensor.end - tensor.begin) / count;
}

const char* format_name(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "U8";
    case ElementType::kInt8:
      return "I8";
    case ElementType::kFloat32:
      return "F32";
    case ElementType::kBFloat16:
      return "BF16";
    case ElementType::kInt32:
      return "I32";
    case ElementType::kInt64:
      return "I64";
  }
  impossible("element type " + std::to_string(static_cast<int>(type)));
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::filesystem::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!file_) throw_errno("opening " + path_.string(), errno);
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) throw_errno("reading " + path_.string(), errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t header_size = 0;
  if (S_ISREG(info.st_mode) && size >= kLengthBytes) {
    read_all(file_.get(), std::as_writable_bytes(std::span(&header_size, 1)), 0, path_);
  }
  if (header_size == 0 || header_size > kHeaderLimit || header_size > size - kLengthBytes) {
    throw InvalidInput(path_.string() + ": this is no safetensors file, or one cut short (" +
                       std::to_string(size) + " bytes, of which a header would take " +
                       std::to_string(header_size) + ")");
  }
  std::vector<std::byte> header(header_size);
  read_all(file_.get(), header, kLengthBytes, path_);
  data_start_ = kLengthBytes + header_size;
  header_ = parse_safetensors_header(header, size - data_start_, path_.string());
}

const StoredTensor* SafetensorsReader::find(const std::string& name) const {
  const auto found = std::find_if(header_.tensors.begin(), header_.tensors.end(),
                                  [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == header_.tensors.end() ? nullptr : &*found;
}

std::vector<std::byte> SafetensorsReader::read_bytes(const StoredTensor& tensor, uint64_t first,
                                                     uint64_t size) const {
  std::vector<std::byte> bytes(size);
  read_all(file_.get(), bytes, data_start_ + tensor.begin + first, path_);
  return bytes;
}

void SafetensorsReader::read(const StoredTensor& tensor, std::span<float> values) const {
  ensure(values.size() == static_cast<size_t>(element_count(tensor.shape)),
         "a place for every value of a tensor");
  const uint64_t stride = bytes_per_value(tensor);
  const uint64_t piece = kPieceBytes / stride;
  for (uint64_t first = 0; first < values.size(); first += piece) {
    const auto part = values.subspan(first, std::min<uint64_t>(piece, values.size() - first));
    const std::vector<std::byte> bytes = read_bytes(tensor, first * stride, part.size() * stride);
    if (tensor.type == "F32") {
      std::memcpy(part.data(), bytes.data(), bytes.size());
    } else if (tensor.type == "BF16") {
      convert<uint16_t>(bytes, part, from_bfloat16);
    } else if (tensor.type == "F16") {
      convert<uint16_t>(bytes, part, from_float16);
    } else if (tensor.type == "F64") {
      convert<double>(bytes, part, [](double value) { return static_cast<float>(value); });
    } else {
      throw InvalidInput(path_.string() + ": tensor \"" + tensor.name + "\" is " + tensor.type +
                         "; weights are F32, BF16, F16 or F64");
    }
  }
}

std::vector<float> SafetensorsReader::read(const StoredTensor& tensor) const {
  std::vector<float> values(static_cast<size_t>(element_count(tensor.shape)));
  read(tensor, values);
  return values;
}

std::vector<int64_t> SafetensorsReader::read_integers(const StoredTensor& tensor) const {
  std::vector<int64_t> values(static_cast<size_t>(element_count(tensor.shape)));
  const std::vector<std::byte> bytes = read_bytes(tensor, 0, tensor.end - tensor.begin);
  if (tensor.type == "I64") {
    convert<int64_t>(bytes, std::span(values), [](int64_t value) { return value; });
  } else if (tensor.type == "I32") {
    convert<int32_t>(bytes, std::span(values), [](int32_t value) { return int64_t{value}; });
  } else {
    throw InvalidInput(path_.string() + ": tensor \"" + tensor.name + "\" is " + tensor.type +
                       "; whole numbers are I64 or I32");
  }
  return values;
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::vector<PlannedTensor> plan,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
      plan_(std::move(plan)) {
  if (!file_) throw_errno("creating " + path_.string(), errno);
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const PlannedTensor& tensor : plan_) {
    const uint64_t end =
        offset + static_cast<uint64_t>(element_count(tensor.shape)) * element_size(tensor.type);
    ensure(!header.contains(tensor.name), "tensors of a file have different names");
    header[tensor.name] = {{"dtype", format_name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data starts aligned
  const uint64_t size = text.size();
  append(std::as_bytes(std::span(&size, 1)));
  append(std::as_bytes(std::span(text)));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  ensure(next_ < plan_.size(), "no more tensors than planned");
  const PlannedTensor& tensor = plan_[next_++];
  ensure(
      bytes.size() == static_cast<size_t>(element_count(tensor.shape)) * element_size(tensor.type),
      "a tensor has the planned size");
  append(bytes);
}

void SafetensorsWriter::finish() {
  ensure(next_ == plan_.size(), "every planned tensor is written");
  if (::fsync(file_.get()) != 0) throw_errno("syncing " + path_.string(), errno);
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno("writing " + path_.string(), errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

}  // namespace outrigger::nn

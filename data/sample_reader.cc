#include "data/sample_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <string>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::data {
namespace {

struct OpenShard {
  std::string path;
  FileDescriptor file;
};

bool leads_out(const std::string& path) {
  const std::filesystem::path parts(path);
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

}  // namespace

struct SampleReader::State {
  std::filesystem::path root;
  ReaderOptions options;
  std::list<OpenShard> shards;  // the last used first
  std::unique_ptr<std::byte[]> buffer;
  uint64_t capacity = 0;

  FileDescriptor open_file(const std::string& path) const;
  int shard(const std::string& path);
  std::span<const std::byte> read(int file, const Sample& sample, uint64_t length);
  uint64_t file_size(int file, const std::string& path) const;
};

FileDescriptor SampleReader::State::open_file(const std::string& path) const {
  const std::string full = (root / path).string();
  FileDescriptor file(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_errno("cannot open " + full, errno);
  return file;
}

int SampleReader::State::shard(const std::string& path) {
  const auto known =
      std::find_if(shards.begin(), shards.end(), [&](const auto& s) { return s.path == path; });
  if (known != shards.end()) {
    shards.splice(shards.begin(), shards, known);
  } else {
    FileDescriptor file = open_file(path);
    while (shards.size() >= std::max(1U, options.open_shards)) shards.pop_back();
    shards.push_front({path, std::move(file)});
  }
  return shards.front().file.get();
}

uint64_t SampleReader::State::file_size(int file, const std::string& path) const {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw_errno("cannot look at " + (root / path).string(), errno);
  if (!S_ISREG(status.st_mode)) throw IoError((root / path).string() + " is no regular file");
  return static_cast<uint64_t>(status.st_size);
}

std::span<const std::byte> SampleReader::State::read(int file, const Sample& sample,
                                                     uint64_t length) {
  if (length > options.max_image_bytes) {
    throw InvalidInput(sample.path + ": an image of " + std::to_string(length) +
                       " bytes; at most " + std::to_string(options.max_image_bytes) + " are read");
  }
  if (length > capacity) {
    capacity = std::max(length, 2 * capacity);
    buffer = std::make_unique<std::byte[]>(capacity);
  }
  uint64_t done = 0;
  while (done < length) {
    const ssize_t n =
        ::pread(file, buffer.get() + done, length - done, static_cast<off_t>(sample.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("cannot read " + (root / sample.path).string(), errno);
    if (n == 0) {
      throw IoError((root / sample.path).string() + " is cut short: at offset " +
                    std::to_string(sample.offset) + " it has " + std::to_string(done) + " of the " +
                    std::to_string(length) + " bytes of a sample");
    }
    done += static_cast<uint64_t>(n);
  }
  return {buffer.get(), length};
}

SampleReader::SampleReader(std::filesystem::path root, ReaderOptions options)
    : state_(std::make_unique<State>()) {
  state_->root = std::move(root);
  state_->options = options;
}
SampleReader::~SampleReader() = default;
SampleReader::SampleReader(SampleReader&&) noexcept = default;
SampleReader& SampleReader::operator=(SampleReader&&) noexcept = default;

std::span<const std::byte> SampleReader::read(const Sample& sample) {
  if (leads_out(sample.path))
    throw InvalidInput(sample.path + ": a sample's path must not contain \"..\"");
  if (sample.length > 0) return state_->read(state_->shard(sample.path), sample, sample.length);
  const FileDescriptor file = state_->open_file(sample.path);
  return state_->read(file.get(), sample, state_->file_size(file.get(), sample.path));
}

}  // namespace outrigger::data

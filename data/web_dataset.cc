#include "data/web_dataset.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include "common/error.h"
#include "common/file.h"
#include "common/thread_pool.h"
#include "data/names.h"
#include "data/passed_over.h"
#include "data/shard_names.h"
#include "data/tar.h"

namespace outrigger::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLabelText = 32;
/// One class name is kept for each label up to the largest.
constexpr int32_t kMaxLabel = 1 << 24;
/// A header is read only when it is known where the one before it ends: over a network that is all
/// waiting, which shards can do side by side.
constexpr int kListedAtOnce = 16;

struct Shard {
  std::string path;  // as in Sample::path
  FileDescriptor file;
  uint64_t size = 0;

  size_t read(uint64_t offset, std::span<std::byte> to) const {
    size_t done = 0;
    while (done < to.size()) {
      const ssize_t n = ::pread(file.get(), to.data() + done, to.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw_errno("cannot read " + path, errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }
};

Shard open_shard(const fs::path& root, const std::string& path) {
  const fs::path full = root / path;
  Shard shard{path, FileDescriptor(::open(full.c_str(), O_RDONLY | O_CLOEXEC)), 0};
  struct stat status {};
  if (!shard.file || ::fstat(shard.file.get(), &status) != 0)
    throw_errno("cannot open shard " + full.string(), errno);
  if (!S_ISREG(status.st_mode)) throw InvalidInput(full.string() + " is no regular file");
  shard.size = static_cast<uint64_t>(status.st_size);
  return shard;
}

/// The members of one key, which stand next to each other.
struct Group {
  std::string key;
  std::vector<TarMember> images;
  std::vector<std::string> others;  // names of what is neither image nor label
  std::optional<int32_t> label;
};

/// An image in a shard.
struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;
  int32_t label = 0;
};

/// What one of many shards that are listed at once gave.
struct Listed {
  std::vector<Range> images;
  PassedOver passed_over;
  std::exception_ptr failure;
};

class ShardLister {
 public:
  ShardLister(const Shard& shard, int32_t classes) : shard_(shard), classes_(classes) {}

  Listed list() {
    TarWalker walker(shard_.path, shard_.size, [this](uint64_t offset, std::span<std::byte> to) {
      return shard_.read(offset, to);
    });
    while (const auto member = walker.next()) take(*member);
    flush();
    return std::move(listed_);
  }

 private:
  void take(const TarMember& member) {
    const size_t slash = member.name.rfind('/');
    const size_t base = slash == std::string::npos ? 0 : slash + 1;
    const size_t dot = member.name.find('.', base);
    if (dot == std::string::npos || dot == base) return;
    std::string key = member.name.substr(0, dot);
    if (key != group_.key) {
      flush();
      group_.key = std::move(key);
    }
    const std::string extension = member.name.substr(dot + 1);
    if (extension == "cls") {
      group_.label = read_label(member);
    } else if (extension.find('.') == std::string::npos && is_image_name(member.name)) {
      group_.images.push_back(member);
    } else {
      group_.others.push_back(member.name);
    }
  }

  [[noreturn]] void fail(const TarMember& member, const std::string& what) const {
    throw InvalidInput(shard_.path + ": " + member.name + " at offset " +
                       std::to_string(member.offset) + " " + what);
  }

  int32_t read_label(const TarMember& member) const {
    char text[kMaxLabelText];
    if (member.size > kMaxLabelText) fail(member, "is too long for a label");
    const size_t size =
        shard_.read(member.offset, std::as_writable_bytes(std::span(text, member.size)));
    const char* end = text + size;
    while (end > text && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' ')) --end;
    int32_t label = 0;
    const auto parsed = std::from_chars(text, end, label);
    if (text == end || parsed.ec != std::errc() || parsed.ptr != end) {
      fail(member, "says \"" + std::string(text, static_cast<size_t>(end - text)) +
                       "\"; a label is a decimal number");
    }
    if (label < 0 || label >= classes_) {
      fail(member, "has label " + std::to_string(label) + "; allowed is 0 to " +
                       std::to_string(classes_ - 1));
    }
    return label;
  }

  void flush() {
    for (const TarMember& image : group_.images) {
      if (!group_.label)
        fail(image, "has no label: no member " + group_.key + ".cls stands next to it");
      listed_.images.push_back({image.offset, image.size, *group_.label});
    }
    if (group_.images.empty()) {
      for (const std::string& name : group_.others)
        listed_.passed_over.add(name.substr(group_.key.size() + 1), shard_.path + ": " + name);
    }
    group_ = {};
  }

  const Shard& shard_;
  int32_t classes_;
  Listed listed_;
  Group group_;
};

std::vector<Listed> list_all(const fs::path& root, const std::vector<std::string>& shards,
                             int32_t classes) {
  std::vector<Listed> listed(shards.size());
  const int count = static_cast<int>(shards.size());
  ThreadPool threads(std::clamp(count, 1, kListedAtOnce));
  threads.parallel_for(count, [&](int i) {
    const auto at = static_cast<size_t>(i);
    try {
      listed[at] = ShardLister(open_shard(root, shards[at]), classes).list();
    } catch (const Error&) {
      listed[at].failure = std::current_exception();
    }
  });
  return listed;
}

}  // namespace

Dataset list_web_dataset(const fs::path& root, std::string_view pattern,
                         const std::vector<std::string>& classes, UnknownClass unknown) {
  return list_shards(root, find_shards(root, pattern), classes, unknown);
}

Dataset list_shards(const fs::path& root, const std::vector<std::string>& shards,
                    const std::vector<std::string>& classes, UnknownClass unknown) {
  Dataset dataset;
  const auto known = static_cast<int32_t>(classes.size());
  const bool any = classes.empty() || unknown == UnknownClass::kAppended;
  const int32_t allowed = any ? std::max(known, kMaxLabel) : known;
  int32_t largest = -1;
  PassedOver passed_over;
  std::vector<Listed> listed = list_all(root, shards, allowed);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (listed[i].failure) std::rethrow_exception(listed[i].failure);
    dataset.begin_container(shards[i], true);
    for (const Range& image : std::exchange(listed[i].images, {})) {
      // Of an empty one the byte behind it, which is there and no image: the sample is broken, as
      // an empty file is.
      dataset.add_range(image.offset, std::max<uint64_t>(image.size, 1), image.label);
      largest = std::max(largest, image.label);
    }
    passed_over.add(std::exchange(listed[i].passed_over, {}));
  }
  passed_over.warn(root);
  if (dataset.size() == 0)
    throw InvalidInput(root.string() + ": no image in " + std::to_string(shards.size()) +
                       " shards");
  std::vector<std::string> names = classes;
  for (int32_t i = known; i <= largest; ++i) names.push_back(std::to_string(i));
  dataset.set_classes(std::move(names));
  dataset.finish();
  return dataset;
}

}  // namespace outrigger::data

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
#include "data/tar.h"

namespace outrigger::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNames = 1000000;
constexpr uint64_t kMaxLabelText = 32;
/// One class name is kept for each label up to the largest.
constexpr int32_t kMaxLabel = 1 << 24;
/// A header is read only when it is known where the one before it ends: over a network that is all
/// waiting, which shards can do side by side.
constexpr int kListedAtOnce = 16;

/// What stands in one pair of braces.
std::vector<std::string> choices(std::string_view inside, std::string_view pattern) {
  std::vector<std::string> names;
  const size_t dots = inside.find("..");
  if (dots == std::string_view::npos) {
    for (size_t from = 0; from <= inside.size();) {
      const size_t comma = std::min(inside.find(',', from), inside.size());
      names.emplace_back(inside.substr(from, comma - from));
      from = comma + 1;
    }
    return names;
  }
  const auto number = [&](std::string_view text) {
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      throw InvalidInput(std::string(pattern) + ": \"" + std::string(text) +
                         "\" is no number; a range is {000..123}");
    }
    return value;
  };
  const std::string_view low = inside.substr(0, dots);
  const uint64_t first = number(low);
  const uint64_t last = number(inside.substr(dots + 2));
  if (last < first || last - first >= kMaxNames) {
    throw InvalidInput(std::string(pattern) + ": the range {" + std::string(inside) +
                       "} must run up, over at most " + std::to_string(kMaxNames) + " names");
  }
  for (uint64_t i = first; i <= last; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    names.push_back(std::move(digits));
  }
  return names;
}

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
  std::optional<int32_t> label;
};

/// An image in a shard.
struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;
  int32_t label = 0;
};

class ShardLister {
 public:
  ShardLister(const Shard& shard, int32_t classes) : shard_(shard), classes_(classes) {}

  std::vector<Range> list() {
    TarWalker walker(shard_.path, shard_.size, [this](uint64_t offset, std::span<std::byte> to) {
      return shard_.read(offset, to);
    });
    while (const auto member = walker.next()) take(*member);
    flush();
    return std::move(images_);
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
      images_.push_back({image.offset, image.size, *group_.label});
    }
    group_ = {};
  }

  const Shard& shard_;
  int32_t classes_;
  std::vector<Range> images_;
  Group group_;
};

/// What one of many that are listed at once gave.
struct Listed {
  std::vector<Range> images;
  std::exception_ptr failure;
};

std::vector<Listed> list_all(const fs::path& root, const std::vector<std::string>& shards,
                             int32_t classes) {
  std::vector<Listed> listed(shards.size());
  const int count = static_cast<int>(shards.size());
  ThreadPool threads(std::clamp(count, 1, kListedAtOnce));
  threads.parallel_for(count, [&](int i) {
    const auto at = static_cast<size_t>(i);
    try {
      listed[at].images = ShardLister(open_shard(root, shards[at]), classes).list();
    } catch (const Error&) {
      listed[at].failure = std::current_exception();
    }
  });
  return listed;
}

std::vector<std::string> find_shards(const fs::path& root, std::string_view pattern) {
  if (pattern.find("://") != std::string_view::npos) {
    throw InvalidInput(std::string(pattern) +
                       ": shards behind URLs cannot be read yet; give a path");
  }
  const fs::path folder = pattern.empty() ? root : root / pattern;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return expand_braces(pattern);
  std::vector<std::string> shards;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".tar") continue;
    shards.push_back((fs::path(pattern) / it->path().filename()).string());
  }
  if (error) throw IoError("cannot list " + folder.string() + ": " + error.message());
  if (shards.empty()) throw InvalidInput(folder.string() + ": no shard (*.tar) in it");
  std::sort(shards.begin(), shards.end());
  return shards;
}

}  // namespace

std::vector<std::string> expand_braces(std::string_view pattern) {
  std::vector<std::string> names{""};
  size_t from = 0;
  while (from < pattern.size()) {
    const size_t open = std::min(pattern.find('{', from), pattern.size());
    for (std::string& name : names) name += pattern.substr(from, open - from);
    if (open == pattern.size()) break;
    const size_t close = pattern.find('}', open);
    if (close == std::string_view::npos)
      throw InvalidInput(std::string(pattern) + ": \"{\" without \"}\"");
    const std::vector<std::string> parts =
        choices(pattern.substr(open + 1, close - open - 1), pattern);
    if (names.size() * parts.size() > kMaxNames) {
      throw InvalidInput(std::string(pattern) + ": more than " + std::to_string(kMaxNames) +
                         " names");
    }
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& part : parts) longer.push_back(name + part);
    }
    names = std::move(longer);
    from = close + 1;
  }
  return names;
}

Dataset list_web_dataset(const fs::path& root, std::string_view pattern,
                         const std::vector<std::string>& classes) {
  return list_shards(root, find_shards(root, pattern), classes);
}

Dataset list_shards(const fs::path& root, const std::vector<std::string>& shards,
                    const std::vector<std::string>& classes) {
  Dataset dataset;
  const int32_t allowed = classes.empty() ? kMaxLabel : static_cast<int32_t>(classes.size());
  int32_t largest = -1;
  std::vector<Listed> listed = list_all(root, shards, allowed);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (listed[i].failure) std::rethrow_exception(listed[i].failure);
    dataset.begin_container(shards[i], true);
    for (const Range& image : std::exchange(listed[i].images, {})) {
      dataset.add_range(image.offset, image.size, image.label);
      largest = std::max(largest, image.label);
    }
  }
  if (dataset.size() == 0)
    throw InvalidInput(root.string() + ": no image in " + std::to_string(shards.size()) +
                       " shards");
  std::vector<std::string> names = classes;
  if (names.empty()) {
    for (int32_t i = 0; i <= largest; ++i) names.push_back(std::to_string(i));
  }
  dataset.set_classes(std::move(names));
  dataset.finish();
  return dataset;
}

}  // namespace outrigger::data

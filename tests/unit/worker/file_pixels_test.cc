#include "worker/work/file_pixels.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <string>

#include "common/error.h"
#include "common/file.h"

namespace outrigger::worker {
namespace {

/// Sees how often a file is opened.
class OpeningsOf {
 public:
  explicit OpeningsOf(const std::filesystem::path& file)
      : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    // Closings too: of neighbours that are alike the kernel tells one.
    EXPECT_GE(::inotify_add_watch(inotify_.get(), file.c_str(), IN_OPEN | IN_CLOSE), 0);
  }
  /// Since the last call.
  int count() {
    alignas(inotify_event) std::array<char, 4096> events;
    const ssize_t size = ::read(inotify_.get(), events.data(), events.size());
    int opened = 0;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      if ((event->mask & IN_OPEN) != 0) ++opened;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return opened;
  }

 private:
  FileDescriptor inotify_;
};

class FilePixelsTest : public testing::Test {
 protected:
  FilePixelsTest() {
    for (const char* shard : {"a.tar", "b.tar"})
      write_file_atomically(folder_.path() / shard, std::string(4096, 'x'));
  }
  static feed::LeaseSample part_of(const std::string& file, uint64_t part) {
    return {part, 0, {file, part * 512, 512, 0}};
  }

  TemporaryDirectory folder_;
  FilePixels pixels_{{.height = 1, .width = 1}, folder_.path(), ""};
  ThreadPool threads_{1};
};

TEST_F(FilePixelsTest, PrefetchingOpensEachFileOfALeaseOnce) {
  OpeningsOf a(folder_.path() / "a.tar");
  OpeningsOf b(folder_.path() / "b.tar");
  const std::vector<feed::LeaseSample> lease{part_of("b.tar", 4), part_of("a.tar", 1),
                                             part_of("b.tar", 2), part_of("a.tar", 0),
                                             part_of("a.tar", 3)};
  EXPECT_GT(pixels_.prefetch(lease, false, threads_), Duration{0});
  EXPECT_EQ(a.count(), 1);
  EXPECT_EQ(b.count(), 1);
}

TEST_F(FilePixelsTest, PrefetchingOpensNoMoreFilesOnceOneCannotBeOpened) {
  OpeningsOf a(folder_.path() / "a.tar");
  // Whichever end it begins at.
  const std::vector<feed::LeaseSample> lease{part_of("0-missing.tar", 0), part_of("a.tar", 1),
                                             part_of("z-missing.tar", 0)};
  static_cast<void>(pixels_.prefetch(lease, false, threads_));
  EXPECT_EQ(a.count(), 0);
  std::array<std::byte, 3> pixels;
  EXPECT_THROW(pixels_.make(lease[0], false, pixels), IoError) << "this says what is wrong";
}

}  // namespace
}  // namespace outrigger::worker

#include "common/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "common/error.h"

namespace outrigger {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A disk that is full after `bytes`: no file of this process can grow beyond that while this lives.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &previous_limit_);
    const rlimit limit{bytes, previous_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &previous_limit_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_limit_{};
  void (*previous_handler_)(int);
};

TEST(File, ReadsBackWhatWasWritten) {
  const TemporaryDirectory folder;
  const std::string content("with\0zero\n", 10);
  write_file_atomically(folder.path() / "a", content);
  EXPECT_EQ(read_file(folder.path() / "a"), content);
}

TEST(File, AMissingFileIsNamed) {
  EXPECT_THAT([] { read_file("/no/such/file"); },
              ThrowsMessage<IoError>(HasSubstr("opening /no/such/file: No such file")));
}

TEST(File, AFileLargerThanTheLimitIsRefused) {
  const TemporaryDirectory folder;
  write_file_atomically(folder.path() / "a", "12345");
  EXPECT_EQ(read_file(folder.path() / "a", 5), "12345");
  EXPECT_THAT([&] { read_file(folder.path() / "a", 4); },
              ThrowsMessage<IoError>(HasSubstr("limit of 4 bytes")));
}

TEST(File, AFullDiskLeavesTheFormerContentAndNothingBeside) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "weights";
  write_file_atomically(path, "former");
  {
    const FullDisk full(1000);
    EXPECT_THAT([&] { write_file_atomically(path, std::string(5000, 'x')); },
                ThrowsMessage<IoError>(HasSubstr("writing " + path.string())));
  }
  EXPECT_EQ(read_file(path), "former");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, AFolderThatIsNotThereFailsWithItsName) {
  EXPECT_THAT([] { write_file_atomically("/no/such/folder/a", "x"); },
              ThrowsMessage<IoError>(HasSubstr("/no/such/folder/a")));
  EXPECT_THROW(sync_directory("/no/such/folder"), IoError);
}

TEST(File, ATemporaryDirectoryGoesWithAllItHolds) {
  std::filesystem::path path;
  {
    const TemporaryDirectory folder("prefix");
    path = folder.path();
    std::filesystem::create_directories(path / "a" / "b");
    write_file_atomically(path / "a" / "b" / "c", "x");
    EXPECT_NO_THROW(sync_directory(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(File, WithoutAFolderForTemporaryFilesTheVariableIsNamed) {
  const char* told = std::getenv("TMPDIR");
  const std::string former = told == nullptr ? "/tmp" : told;
  ::setenv("TMPDIR", "/nope", 1);
  EXPECT_THAT([] { TemporaryDirectory(); }, ThrowsMessage<IoError>(HasSubstr("TMPDIR (/nope)")));
  ::setenv("TMPDIR", former.c_str(), 1);
}

TEST(FileDescriptor, ClosesWhatItHolds) {
  FileDescriptor fd(::dup(0));
  const int number = fd.get();
  FileDescriptor moved(std::move(fd));
  EXPECT_EQ(moved.get(), number);
  moved.reset();
  EXPECT_FALSE(moved);
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace outrigger

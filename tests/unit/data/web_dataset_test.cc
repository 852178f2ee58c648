#include "data/web_dataset.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/file.h"
#include "data/decode.h"
#include "data/sample_reader.h"
#include "data/shard_names.h"
#include "data/tar.h"

namespace outrigger::data {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Member {
  std::string name;
  std::string content;
};

enum class TarKind { kUstar, kGnu, kPax };

/// A tar written by libarchive, so that our walker is held to somebody else's idea of the format.
void write_tar(const fs::path& path, const std::vector<Member>& members,
               TarKind kind = TarKind::kUstar) {
  archive* tar = archive_write_new();
  if (kind == TarKind::kUstar) archive_write_set_format_ustar(tar);
  if (kind == TarKind::kGnu) archive_write_set_format_gnutar(tar);
  if (kind == TarKind::kPax) archive_write_set_format_pax(tar);
  ASSERT_EQ(archive_write_open_filename(tar, path.c_str()), ARCHIVE_OK);
  for (const Member& member : members) {
    archive_entry* entry = archive_entry_new();
    const bool folder = member.name.back() == '/';
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(member.content.size()));
    archive_entry_set_filetype(entry, folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    ASSERT_EQ(archive_write_header(tar, entry), ARCHIVE_OK);
    archive_write_data(tar, member.content.data(), member.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(tar);
  archive_write_free(tar);
}

class Shards : public ::testing::Test {
 protected:
  void expect_error(std::string_view pattern, const char* text,
                    const std::vector<std::string>& classes = {}) {
    EXPECT_THAT([&] { list_web_dataset(root(), pattern, classes); },
                ThrowsMessage<InvalidInput>(HasSubstr(text)));
  }
  const fs::path& root() const { return temporary_.path(); }

  TemporaryDirectory temporary_;
};

TEST(Braces, AreWrittenOut) {
  EXPECT_THAT(expand_braces("a-{08..11}.tar"),
              ElementsAre("a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"));
  EXPECT_THAT(expand_braces("{x,y}-{0..1}"), ElementsAre("x-0", "x-1", "y-0", "y-1"));
  EXPECT_THAT(expand_braces("plain.tar"), ElementsAre("plain.tar"));
  for (const char* bad : {"a{0..", "a{5..2}", "a{x..y}", "a{0..99999999}", "{0..9999}{0..9999}"}) {
    EXPECT_THROW(expand_braces(bad), InvalidInput) << bad;
  }
}

TEST_F(Shards, AreListedWithOffsetsLabelsAndBlocks) {
  write_tar(root() / "t-0.tar", {{"dir/", ""},
                                 {"dir/a.jpg", "AAAA"},
                                 {"dir/a.cls", "3\n"},
                                 {"dir/a.txt", "no"},
                                 {"dir/b.cls", "0"},
                                 {"dir/b.PNG", "BB"}});
  write_tar(root() / "t-1.tar", {{"c.jpeg", std::string(1000, 'C')}, {"c.cls", "1"}});
  const Dataset dataset = list_web_dataset(root(), "t-{0..1}.tar");
  ASSERT_EQ(dataset.size(), 3U);
  EXPECT_THAT(dataset.classes(), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(dataset.block_starts(), ElementsAre(0, 2));
  EXPECT_TRUE(dataset.is_sharded());
  EXPECT_EQ(dataset.label(0), 3);
  EXPECT_EQ(dataset.label(1), 0);
  SampleReader reader(root());
  const auto text = [&](uint32_t i) {
    const auto bytes = reader.read(dataset.at(i));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text(0), "AAAA");
  EXPECT_EQ(text(1), "BB");
  EXPECT_EQ(text(2), std::string(1000, 'C'));
}

TEST_F(Shards, OfAFolderAreTakenInOrderOfTheirNames) {
  fs::create_directories(root() / "set");
  for (const char* name : {"b.tar", "a.tar"})
    write_tar(root() / "set" / name, {{"x.jpg", name}, {"x.cls", "0"}});
  const Dataset dataset = list_web_dataset(root(), "set");
  EXPECT_EQ(dataset.at(0).path, "set/a.tar");
  EXPECT_EQ(dataset.at(1).path, "set/b.tar");
  EXPECT_EQ(list_web_dataset(root() / "set", "").size(), 2U);
}

TEST_F(Shards, ManyAreTakenInOrderAndTheFirstThatIsWrongIsNamed) {
  for (int i = 100; i < 200; ++i)
    write_tar(root() / (std::to_string(i) + ".tar"),
              {{"a.jpg", "A"}, {"a.cls", std::to_string(i)}});
  const Dataset dataset = list_web_dataset(root(), "{100..199}.tar");
  ASSERT_EQ(dataset.size(), 100U);
  for (uint32_t i = 0; i < dataset.size(); ++i) {
    EXPECT_EQ(dataset.label(i), static_cast<int32_t>(100 + i));
    EXPECT_EQ(dataset.at(i).path, std::to_string(100 + i) + ".tar");
  }
  for (const char* wrong : {"177.tar", "123.tar", "150.tar"})
    write_tar(root() / wrong, {{"a.jpg", "A"}});
  expect_error("{100..199}.tar", "123.tar: a.jpg at offset 512 has no label");
}

TEST_F(Shards, MayHaveClassesBehindTheKnownOnesWhereWanted) {
  write_tar(root() / "t.tar", {{"a.jpg", "A"}, {"a.cls", "4"}, {"b.jpg", "B"}, {"b.cls", "1"}});
  const std::vector<std::string> known{"zero", "one"};
  expect_error("t.tar", "has label 4; allowed is 0 to 1", known);
  const Dataset dataset = list_web_dataset(root(), "t.tar", known, UnknownClass::kAppended);
  EXPECT_THAT(dataset.classes(), ElementsAre("zero", "one", "2", "3", "4"));
  EXPECT_EQ(dataset.label(0), 4);
  EXPECT_EQ(dataset.label(1), 1);
}

TEST_F(Shards, MayHaveNamesLongerThanAHeaderHolds) {
  const std::string folder(90, 'f');
  const std::string name = folder + "/" + folder + "/" + std::string(120, 'n');
  for (const TarKind kind : {TarKind::kGnu, TarKind::kPax}) {
    write_tar(
        root() / "t.tar",
        {{name + ".jpg", "one"}, {name + ".cls", "0"}, {"short.jpg", "two"}, {"short.cls", "1"}},
        kind);
    const Dataset dataset = list_web_dataset(root(), "t.tar");
    ASSERT_EQ(dataset.size(), 2U);
    EXPECT_EQ(dataset.label(1), 1);
    SampleReader reader(root());
    EXPECT_EQ(reader.read(dataset.at(0)).size(), 3U);
  }
  write_tar(root() / "t.tar",
            {{folder + "/" + folder + ".jpg", "one"}, {folder + "/" + folder + ".cls", "0"}});
  EXPECT_EQ(list_web_dataset(root(), "t.tar").size(), 1U);
}

TEST_F(Shards, MayHoldAnEmptyImageWhichIsBroken) {
  write_tar(root() / "t.tar", {{"a.jpg", ""},
                               {"a.cls", "1"},
                               {"b.cls", "0"},
                               {"b.jpg", "B"},
                               {"c.cls", "1"},
                               {"c.jpg", ""}});
  const Dataset dataset = list_web_dataset(root(), "t.tar");
  ASSERT_EQ(dataset.size(), 3U);
  SampleReader reader(root());
  Decoder decoder;
  for (const uint32_t empty : {0U, 2U}) {
    EXPECT_EQ(dataset.label(empty), 1);
    EXPECT_THROW(decoder.inspect(reader.read(dataset.at(empty))), BrokenImage) << empty;
  }
}

TEST_F(Shards, TellOnceOfKeysWithoutAnImage) {
  write_tar(root() / "0.tar", {{"a.cls", "0"},
                               {"a.jpg", "A"},
                               {"a.json", "{}"},
                               {"b.cls", "0"},
                               {"b.json", "{}"},
                               {"b.webp", "B"}});
  write_tar(root() / "1.tar", {{"c.cls", "0"}, {"c.webp", "C"}, {"d.left.jpg", "D"}});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(list_web_dataset(root(), "").size(), 1U);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("; passed over are 2 *.webp (0.tar: b.webp), 1 *.json (0.tar: b.json), 1 "
                        "*.left.jpg (1.tar: d.left.jpg)\n"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1);
}

TEST_F(Shards, CutShortNameShardAndOffset) {
  write_tar(root() / "t.tar", {{"a.jpg", std::string(600, 'A')}, {"a.cls", "3"}});
  // Header at 0, 600 bytes up to 1536 with padding, header at 1536, label at 2048, end marker from
  // 2560.
  for (const auto& [size, text] : std::vector<std::pair<size_t, const char*>>{
           {300, "t.tar: broken tar at offset 0: cut short"},
           {900,
            "t.tar: broken tar at offset 0: cut short: a.jpg has 600 bytes, the tar ends at 900"},
           {1700, "t.tar: broken tar at offset 1536: cut short"},
           {2560, "t.tar: broken tar at offset 2560: cut short"}}) {
    fs::resize_file(root() / "t.tar", 0);
    write_tar(root() / "t.tar", {{"a.jpg", std::string(600, 'A')}, {"a.cls", "3"}});
    fs::resize_file(root() / "t.tar", size);
    expect_error("t.tar", text);
  }
}

TEST_F(Shards, NameTheMemberThatIsWrong) {
  write_tar(root() / "t.tar", {{"a.jpg", "A"}, {"b.cls", "3"}});
  expect_error("t.tar", "a.jpg at offset 512 has no label: no member a.cls stands next to it");
  write_tar(root() / "t.tar", {{"a.jpg", "A"}, {"a.cls", "cat"}});
  expect_error("t.tar", "a.cls at offset 1536 says \"cat\"; a label is a decimal number");
  write_tar(root() / "t.tar", {{"a.jpg", "A"}, {"a.cls", "7"}});
  expect_error("t.tar", "has label 7; allowed is 0 to 1", {"zero", "one"});
  write_tar(root() / "t.tar", {{"a.txt", "A"}});
  expect_error("t.tar", "no image in 1 shards");
  write_file_atomically(root() / "t.tar", std::string(2048, 'x'));
  expect_error("t.tar", "broken tar at offset 0: no tar header");
  write_file_atomically(root() / "t.tar", "\x1F\x8B" + std::string(2048, 'x'));
  expect_error("t.tar", "it is compressed; unpack it first");
  expect_error("https://example.org/{0..9}.tar", "shards behind URLs cannot be read yet");
  fs::create_directories(root() / "empty");
  expect_error("empty", "no shard (*.tar) in it");
  for (const char* wrong : {"typo", "t.tar"}) {
    EXPECT_THAT([&] { list_web_dataset(root() / wrong, ""); },
                ThrowsMessage<InvalidInput>(
                    HasSubstr(std::string(wrong) + ": no such folder; a folder of .tar shards")))
        << wrong;
  }
  EXPECT_THAT([&] { list_web_dataset(root(), "none.tar"); },
              ThrowsMessage<IoError>(HasSubstr("none.tar")));
}

}  // namespace
}  // namespace outrigger::data

#include "data/synthetic/faces.h"

#include <atomic>
#include <cstdio>
#include <string>

#include "common/error.h"
#include "common/file.h"
#include "common/thread_pool.h"
#include "data/codec/jpeg_writer.h"
#include "data/synthetic/face_model.h"
#include "data/synthetic/painter.h"

namespace outrigger::data {
namespace {

void check(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw InvalidInput(std::string(name) + " is " + std::to_string(value) + "; allowed is " +
                     std::to_string(least) + " to " + std::to_string(most));
}

std::string padded(const char* format, int number) {
  char text[32];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

/// Writes without syncing: a data set that a crash cut short is simply drawn again.
void write_plainly(const std::filesystem::path& path, const Bytes& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw_errno("cannot write " + path.string(), errno);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) throw_errno("cannot write " + path.string(), errno);
}

/// Draws all pictures of one person; pictures from `first` on go to the set of that name.
uint64_t draw_person(const FacesOptions& options, const std::filesystem::path& folder, int index) {
  const auto person = static_cast<uint32_t>(index);
  const synthetic::Identity identity = synthetic::draw_identity(options.seed, person);
  Image image;
  uint64_t bytes = 0;
  const int all = options.train_per_identity + options.validation_per_identity;
  for (int i = 0; i < all; ++i) {
    const bool train = i < options.train_per_identity;
    const synthetic::Shot shot =
        synthetic::draw_shot(options.seed, person, static_cast<uint32_t>(i));
    synthetic::paint_face(identity, shot, options.size, image);
    const Bytes encoded = codec::write_jpeg(image, shot.quality);
    const int number = train ? i : i - options.train_per_identity;
    write_plainly(
        folder / (train ? "train" : "val") / padded("%04d", index) / padded("%03d.jpg", number),
        encoded);
    bytes += encoded.size();
  }
  return bytes;
}

}  // namespace

FacesSummary generate_faces(const FacesOptions& options, const std::filesystem::path& folder) {
  check("identities", options.identities, 2, 10000);
  check("images per identity", options.train_per_identity, 1, 100000);
  check("validation images per identity", options.validation_per_identity, 0, 100000);
  check("size", options.size, 16, 1024);
  check("threads", options.threads, 1, 1024);
  namespace fs = std::filesystem;
  std::error_code error;
  for (const char* set : {"train", "val"}) {
    if (fs::exists(folder / set))
      throw InvalidInput((folder / set).string() + " exists already; give an empty folder");
    if (std::string(set) == "val" && options.validation_per_identity == 0) continue;
    for (int i = 0; i < options.identities && !error; ++i)
      fs::create_directories(folder / set / padded("%04d", i), error);
  }
  if (error) throw IoError("cannot make folders in " + folder.string() + ": " + error.message());
  std::atomic<uint64_t> bytes = 0;
  ThreadPool pool(options.threads);
  pool.parallel_for(options.identities,
                    [&](int index) { bytes += draw_person(options, folder, index); });
  return {options.identities * (options.train_per_identity + options.validation_per_identity),
          bytes};
}

}  // namespace outrigger::data

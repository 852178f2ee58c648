#pragma once

#include <cstdint>
#include <filesystem>

namespace outrigger::data {

/// A data set of drawn faces. Each identity has its own head, eyes, brows, nose, mouth, skin, hair
/// and so on; each picture its own light, pose, expression, occlusion, background, noise and JPEG
/// quality.
struct FacesOptions {
  /// 2 to 10,000.
  int identities = 40;
  int train_per_identity = 60;
  /// 0: no validation folder.
  int validation_per_identity = 15;
  /// Height and width in pixels, 16 to 1024.
  int size = 112;
  uint64_t seed = 1;
  /// Threads that draw.
  int threads = 1;
};

struct FacesSummary {
  int images = 0;
  uint64_t bytes = 0;
};

/// Writes `folder`/train/NNNN/NNN.jpg and `folder`/val/NNNN/NNN.jpg, an ImageFolder each with the
/// same classes. The same options give the same files on the same build, however many threads draw.
/// The faces are of nobody. Throws InvalidInput that names the option, or `folder` when it holds
/// such a data set already, and IoError.
FacesSummary generate_faces(const FacesOptions& options, const std::filesystem::path& folder);

}  // namespace outrigger::data

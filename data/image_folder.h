#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/sample.h"
#include "data/unknown_class.h"

namespace outrigger::data {

struct ListOptions {
  /// A class with fewer images is refused by name. Verification and identification want 2.
  uint32_t min_images_per_class = 1;
  /// Where given (training's classes, for a validation set): labels are indexes into this list.
  /// Classes without a folder are allowed then.
  std::vector<std::string> classes;
  /// A folder whose name is not in `classes`; sorted bytewise like the others.
  UnknownClass unknown = UnknownClass::kRefused;
};

/// Lists a folder that holds one folder per class. Classes are sorted bytewise by name, files by
/// path; a class's folder may hold folders, which belong to the class. Images are *.jpg, *.jpeg,
/// *.png, *.pgm and *.ppm in any case; other files are passed over with one warning, and all names
/// that start with a dot without. Links are followed, a folder is entered once along any path.
///
/// Sample::path is relative to `root`. Throws InvalidInput that names the folder: no such folder,
/// no class, a class without an image or with too few, one that `options` refuse; IoError when a
/// folder cannot be read.
Dataset list_image_folder(const std::filesystem::path& root, const ListOptions& options = {});

}  // namespace outrigger::data

#include "data/image_folder.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/error.h"
#include "data/names.h"
#include "data/passed_over.h"

namespace outrigger::data {
namespace {

namespace fs = std::filesystem;

struct Listing {
  std::vector<std::string> images;
  std::vector<std::string> others;
  std::vector<std::string> folders;
};

/// The names in a folder, sorted bytewise, without those that start with a dot.
Listing list_names(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.empty() || name.front() == '.') continue;
    std::error_code ignored;  // a dangling link is neither a file nor a folder
    if (it->is_directory(ignored)) {
      listing.folders.push_back(std::move(name));
    } else if (it->is_regular_file(ignored)) {
      (is_image_name(name) ? listing.images : listing.others).push_back(std::move(name));
    }
  }
  if (error) throw IoError("cannot list " + folder.string() + ": " + error.message());
  std::sort(listing.images.begin(), listing.images.end());
  std::sort(listing.others.begin(), listing.others.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return listing;
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

/// Adds the images of a class: those in the folder itself, then those of the folders in it. `above`
/// holds the real paths of the folders that lead here, so that a link back to one of them is not
/// followed for ever.
void add_images(const fs::path& root, const std::string& folder, int32_t label,
                std::set<fs::path>& above, Dataset& dataset, PassedOver& passed_over) {
  std::error_code error;
  const fs::path real = fs::canonical(root / folder, error);
  if (error) throw IoError("cannot enter " + (root / folder).string() + ": " + error.message());
  if (!above.insert(real).second) return;
  const Listing listing = list_names(root / folder);
  if (!listing.images.empty()) dataset.begin_container(folder, false);
  for (const std::string& name : listing.images) dataset.add_file(name, label);
  for (const std::string& name : listing.others)
    passed_over.add(suffix_of(name), join(folder, name));
  for (const std::string& name : listing.folders)
    add_images(root, join(folder, name), label, above, dataset, passed_over);
  above.erase(real);
}

/// Labels by the names of their classes: there may be a hundred thousand.
class Labels {
 public:
  explicit Labels(std::span<const std::string> classes) {
    for (size_t i = 0; i < classes.size(); ++i)
      by_name_.emplace(classes[i], static_cast<int32_t>(i));
  }
  int32_t of(const std::string& name, const fs::path& root) const {
    const auto known = by_name_.find(name);
    if (known != by_name_.end()) return known->second;
    throw InvalidInput((root / name).string() + ": \"" + name + "\" is not one of the " +
                       std::to_string(by_name_.size()) + " classes of the training data");
  }

 private:
  std::unordered_map<std::string_view, int32_t> by_name_;
};

/// Those that labels index.
std::vector<std::string> classes_of(const std::vector<std::string>& folders,
                                    const ListOptions& options) {
  if (options.classes.empty()) return folders;
  std::vector<std::string> classes = options.classes;
  if (options.unknown == UnknownClass::kRefused) return classes;
  const std::unordered_set<std::string_view> known(options.classes.begin(), options.classes.end());
  std::ranges::copy_if(folders, std::back_inserter(classes),
                       [&](const std::string& name) { return !known.contains(name); });
  return classes;
}

}  // namespace

Dataset list_image_folder(const fs::path& root, const ListOptions& options) {
  std::error_code error;
  if (!fs::is_directory(root, error)) {
    throw InvalidInput(
        root.string() +
        ": no such folder; a folder that holds one folder of images per class is wanted");
  }
  const std::vector<std::string> folders = list_names(root).folders;
  if (folders.empty())
    throw InvalidInput(root.string() +
                       ": no class in it; one folder of images per class is wanted");
  Dataset dataset;
  dataset.set_classes(classes_of(folders, options));
  const Labels labels(dataset.classes());
  PassedOver passed_over;
  for (const std::string& name : folders) {
    const int32_t label = labels.of(name, root);
    const uint32_t before = dataset.size();
    std::set<fs::path> above;
    add_images(root, name, label, above, dataset, passed_over);
    const uint32_t count = dataset.size() - before;
    if (count == 0) {
      throw InvalidInput((root / name).string() + ": class \"" + name +
                         "\" has no image (*.jpg, *.jpeg, *.png, *.pgm, *.ppm)");
    }
    if (count < options.min_images_per_class) {
      throw InvalidInput((root / name).string() + ": class \"" + name + "\" has " +
                         std::to_string(count) + " image" + (count == 1 ? "" : "s") +
                         "; at least " + std::to_string(options.min_images_per_class) +
                         " are wanted");
    }
  }
  passed_over.warn(root);
  dataset.finish();
  return dataset;
}

}  // namespace outrigger::data

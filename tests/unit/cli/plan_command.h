#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/file.h"
#include "data/synthetic/faces.h"
#include "tests/unit/cli/run_command.h"

namespace outrigger::cli {

/// A small job over a few drawn faces, and what `plan` prints of it.
class PlanCommand : public testing::Test {
 protected:
  PlanCommand() {
    data::FacesOptions faces;
    faces.identities = 3;
    faces.train_per_identity = 6;
    faces.validation_per_identity = 1;
    faces.size = 32;
    data::generate_faces(faces, folder_.path() / "faces");
  }

  std::string plan(const std::string& split, std::vector<std::string> more) const {
    std::ofstream(job_) << "apiVersion: outrigger.dev/v1alpha1\nkind: TrainingJob\n"
                           "metadata: {name: faces}\nspec:\n  model: {name: lenet5}\n"
                           "  data:\n    volumeClaimName: faces\n    train: {path: /data/train}\n"
                           "    image: {height: 28, width: 28, channels: 1}\n"
                           "  training: {epochs: 3, batchSize: 16, microBatchSize: 2, schedule: "
                           "{constant: {base: 0.1}}}\n  output: {path: runs}\n  split: "
                        << split << "\n";
    more.insert(more.begin(),
                {job_.string(), "--mount", "faces=" + (folder_.path() / "faces").string()});
    return run(std::move(more));
  }

  static std::string run(std::vector<std::string> more) {
    more.insert(more.begin(), "plan");
    return output_of(std::move(more));
  }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }

  TemporaryDirectory folder_{"outrigger-plan"};
  const std::filesystem::path job_ = folder_.path() / "job.yaml";
};

}  // namespace outrigger::cli

#pragma once

#include <filesystem>
#include <string>

/// The jobs of these tests, as text, and the small data sets that they train on.
namespace outrigger::integration {

struct JobText {
  std::string cut = "Input";
  int share = 100;  // −1: left to the planner
  int steps = 12;
  int batch = 16;
  int micro_batch = 4;
  int checkpoint_every = 1000;
  std::string checkpoint_path;  // empty: with the output
  int keep = 2;
  int staleness = 0;
  std::string precision = "Float32";
  std::string more_training;  // further lines of spec.training, indented by four
  std::string more_data;      // likewise of spec.data
  std::string more_spec;      // further lines of spec, indented by two
  std::string wire;           // "{activations: …}" or empty
  std::string more_split;     // further fields of spec.split, each with a comma before it
  std::string model;  // a spec.model of its own; empty: a small net with strides, norms and dropout
  std::string loss = "{softmaxCrossEntropy: {labelSmoothing: 0.1}}";
  std::string seed = "3";
  int side = 32;
  int replicas = 1;  // 1 or 2
  std::string rate = "0.05";
  std::string clip = "5";
  int port = 0;             // of the server; 0: any
  bool shards = false;      // WebDataset: the same images in tar files
  bool validation = false;  // evaluate too
  int broken_images = 0;    // of a copy of the data
  std::string max_bad_fraction = "0.01";
  std::filesystem::path data;  // instead of faces() or face_shards()
  bool copy_data = false;      // so that the test may change it
};

/// spec.model of the small net, for jobs that say more about it.
std::string small_net();
/// The whole job; its data is a claim named faces.
std::string job_text(const JobText& job, const std::filesystem::path& output);

/// Folders train/ and val/, drawn once for all tests of the process: 12 people, 40x40.
const std::filesystem::path& faces();
/// The same images, in the same two folders, as five and two tar files; people are mixed in them.
const std::filesystem::path& face_shards();

/// Cuts the first `count` images of a folder short, so that they cannot be decoded.
void break_images(const std::filesystem::path& folder, int count);

}  // namespace outrigger::integration

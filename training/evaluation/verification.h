#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "training/evaluation/labelled_rows.h"

/// Whether two images show one person, told from their embeddings. Pure functions, deterministic,
/// one thread.
namespace outrigger::training {

/// Two rows that a verification compares.
struct Pair {
  int64_t first = 0;
  int64_t second = 0;
  bool same = false;  // whether they show one person
};

struct PairOptions {
  int64_t pairs = 6000;  // at most, half of them of one person; the number that LFW's protocol uses
  int folds = 10;
  uint64_t seed = 1;
};

/// Draws pairs for verification from labels alone: all different, half of them of one person, the
/// same number in each fold, which lie one after another. Fewer than asked where the labels do not
/// give them. Throws InvalidInput where there is not one pair of either kind for every fold.
std::vector<Pair> draw_pairs(std::span<const int32_t> labels, const PairOptions& options = {});

struct Verification {
  double accuracy = 0;  // mean over folds
  double deviation =
      0;  // standard deviation over folds (population, as the usual face benchmarks print it)
  double threshold = 0;  // mean over folds: pairs whose cosine is above are called one person
  /// True accept rate at a false accept rate of 1/1000; absent with fewer than 1000 pairs of
  /// different people.
  std::optional<double> true_accept_rate;
  int64_t pairs = 0;
};

/// Face verification by the protocol of LFW (Huang et al., "Labeled Faces in the Wild", 2007, view
/// 2): `pairs` are cut into `folds` runs of equal length (what is left over at the end is not
/// used); each fold is judged with the threshold that is best on the others. Throws InvalidInput
/// for fewer pairs than folds, or folds below 2.
Verification verify(const LabelledRows& embeddings, std::span<const Pair> pairs, int folds = 10);

}  // namespace outrigger::training

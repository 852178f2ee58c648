#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// How good a model is, from its logits or embeddings. Pure functions, deterministic, one thread.
namespace outrigger::training {

/// Rows of one evaluation. values: {N, F}, row after row; labels: N, any integers.
struct LabelledRows {
  std::span<const float> values;
  int64_t features = 0;
  std::span<const int32_t> labels;

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  std::span<const float> row(int64_t index) const {
    return values.subspan(static_cast<size_t>(index * features), static_cast<size_t>(features));
  }
};

/// Part of the rows whose largest value is at their label (first of equals); 0 for no rows. `rows`
/// are logits. Throws InvalidInput for a label outside [0, features).
double top1(const LabelledRows& logits);

/// Rows scaled to length 1, so that their products are cosines; a row of zeros stays. {N, F}.
/// Throws InvalidInput that names the first row with a value that is not finite.
std::vector<float> normalized(std::span<const float> values, int64_t features);

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

/// Which rows are known people and which are to be identified.
struct GallerySplit {
  std::vector<int64_t> gallery;
  std::vector<int64_t> probes;
};

/// The first `per_person` rows of each label are the gallery, the others probes; who has no more
/// only adds to the gallery.
GallerySplit split_gallery(std::span<const int32_t> labels, int per_person = 1);

/// Part of the probes whose nearest row of the gallery by cosine (first of equals) has their label;
/// 0 for no probes.
double rank1(const LabelledRows& embeddings, const GallerySplit& split);

/// The same with gallery and probes from different sets (both with the same number of features).
double rank1(const LabelledRows& gallery, const LabelledRows& probes);

}  // namespace outrigger::training

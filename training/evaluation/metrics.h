#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/thread_pool.h"
#include "training/evaluation/labelled_rows.h"

/// How good a model is, from its embeddings; training/evaluation/verification.h has the
/// pairs. Pure functions, deterministic; one thread where no others are given.
namespace outrigger::training {

/// Which rows are known people and which are to be identified.
struct GallerySplit {
  std::vector<int64_t> gallery;
  std::vector<int64_t> probes;
};

/// The first `per_person` rows of each label are the gallery, the others probes; who has no more
/// only adds to the gallery.
GallerySplit split_gallery(std::span<const int32_t> labels, int per_person = 1);

/// Part of the probes whose nearest row of the gallery by cosine (first of equals) has their label;
/// 0 for no probes. Each probe is compared with the whole gallery.
double rank1(const LabelledRows& embeddings, const GallerySplit& split);
double rank1(const LabelledRows& embeddings, const GallerySplit& split, ThreadPool& threads);

/// The same with gallery and probes from different sets (both with the same number of features).
double rank1(const LabelledRows& gallery, const LabelledRows& probes);
double rank1(const LabelledRows& gallery, const LabelledRows& probes, ThreadPool& threads);

}  // namespace outrigger::training

#pragma once

#include "nn/cuda/kernels/scalar.h"

/// Work on the columns of a matrix whose rows come in groups. f works on kWidth columns side by
/// side and is told once which ones, so that what they share is read once:
///   Column column(group, first) const       what it needs of columns from `first` on
/// A launcher's columns(size, groups, f) then calls, for every row of the group,
///   void term(column, row, sums) const       adds to sums[s * kWidth + j], s < kSums: sum s of
///                                            column first + j
/// and once the group's rows are done, for one group after the other, in order,
///   void finish(group, column, sums) const   sums[s] in double, of one column
/// Its rows_of_columns(size, groups, f) sums nothing and calls
///   void apply(column, row) const
/// Rows are counted from the first group's first one.
namespace outrigger::nn::cuda {

/// Columns of which no more is needed than where they are.
struct PlainColumn {
  uint32_t at;
};

}  // namespace outrigger::nn::cuda

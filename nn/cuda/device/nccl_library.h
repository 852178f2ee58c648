#pragma once

#include <nccl.h>

#include <string>

namespace outrigger::nn::cuda {

/// NCCL's functions, from the library that is found when they are first wanted: a server with one
/// GPU needs none of its 200 MB.
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
};

/// Null where it cannot be loaded or is older than what this build was made with; `why` says why.
/// Loaded once and kept.
const NcclLibrary* load_nccl(std::string& why);

}  // namespace outrigger::nn::cuda

#include "nn/cuda/device/nccl_library.h"

#include <dlfcn.h>

#include "nn/cuda/device/nccl_version.h"

namespace outrigger::nn::cuda {
namespace {

constexpr const char* kName = "libnccl.so.2";

/// Fills `functions`; an empty text where all went well.
std::string load_into(NcclLibrary& functions) {
  void* library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  std::string missing;
  const auto find = [&]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (function == nullptr) missing = std::string(kName) + " has no " + name;
  };
  find(functions.get_version, "ncclGetVersion");
  find(functions.get_unique_id, "ncclGetUniqueId");
  find(functions.init_rank, "ncclCommInitRankConfig");
  find(functions.get_async_error, "ncclCommGetAsyncError");
  find(functions.all_reduce, "ncclAllReduce");
  find(functions.finalize, "ncclCommFinalize");
  find(functions.destroy, "ncclCommDestroy");
  find(functions.abort, "ncclCommAbort");
  find(functions.error_string, "ncclGetErrorString");
  find(functions.last_error, "ncclGetLastError");
  if (!missing.empty()) return missing;
  int version = 0;
  if (functions.get_version(&version) != ncclSuccess || version < NCCL_VERSION_CODE) {
    return std::string(kName) + " is version " + std::to_string(version) +
           ", and this build needs " + std::to_string(NCCL_VERSION_CODE) + " or newer";
  }
  return "";
}

}  // namespace

const NcclLibrary* load_nccl(std::string& why) {
  struct Loaded {
    NcclLibrary functions;
    std::string why;
  };
  static const Loaded loaded = [] {
    Loaded result;
    result.why = load_into(result.functions);
    return result;
  }();
  why = loaded.why;
  return why.empty() ? &loaded.functions : nullptr;
}

int nccl_version(std::string& why) {
  int version = 0;
  const NcclLibrary* nccl = load_nccl(why);
  if (nccl != nullptr) nccl->get_version(&version);
  return version;
}

}  // namespace outrigger::nn::cuda

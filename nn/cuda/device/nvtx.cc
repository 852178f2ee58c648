#include "nn/cuda/device/nvtx.h"

#include <dlfcn.h>

#include <initializer_list>

namespace outrigger::nn::cuda {
namespace {

// The C interface of NVTX, which has stayed the same since its first version.
using PushRange = int (*)(const char* name);
using PopRange = int (*)();

struct Nvtx {
  PushRange push = nullptr;
  PopRange pop = nullptr;
};

// Version 3 as a library for who has no headers, then what toolkits up to 12 brought.
Nvtx load() {
  for (const char* library : {"libnvtx3interop.so", "libnvToolsExt.so.1"}) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    Nvtx nvtx;
    nvtx.push = reinterpret_cast<PushRange>(dlsym(handle, "nvtxRangePushA"));
    nvtx.pop = reinterpret_cast<PopRange>(dlsym(handle, "nvtxRangePop"));
    if (nvtx.push != nullptr && nvtx.pop != nullptr) return nvtx;
    dlclose(handle);
  }
  return {};
}

const Nvtx& nvtx() {
  static const Nvtx loaded = load();
  return loaded;
}

}  // namespace

void begin_range(const char* name) {
  if (nvtx().push != nullptr) nvtx().push(name);
}

void end_range() {
  if (nvtx().pop != nullptr) nvtx().pop();
}

}  // namespace outrigger::nn::cuda

#include "nn/cuda/device_facts.h"

#include <array>

namespace outrigger::nn::cuda {
namespace {

constexpr int kFirstWithBfloat16 = 80;

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}
std::string dotted(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

// Machine code runs on its own and later minors of one major; portable code on all that is newer.
bool has_code(int capability) {
  const auto built = built_capabilities();
  for (const int code : built) {
    if (code / 10 == capability / 10 && code <= capability) return true;
  }
  return capability > built.back();
}

std::string device_word(int number) { return "GPU " + std::to_string(number); }

}  // namespace

std::span<const int> built_capabilities() {
  static constexpr std::array kBuilt{OUTRIGGER_CUDA_CAPABILITIES};
  return kBuilt;
}

std::optional<std::string> why_unusable(const DeviceFacts& facts) {
  if (facts.driver_version == 0) {
    return "no NVIDIA driver answers (libcuda.so.1 is not there or does not load): install the "
           "driver, or give the container a GPU (server.gpus, or docker run --gpus all); or train "
           "on the CPU with --device cpu";
  }
  // CUDA promises that a driver runs what any minor version of its own major was built with.
  if (facts.driver_version / 1000 < facts.runtime_version / 1000) {
    return "the NVIDIA driver is too old: it speaks CUDA " + cuda_version(facts.driver_version) +
           ", and this build needs " + std::to_string(facts.runtime_version / 1000) +
           ".0 or newer; update the driver, or train on the CPU with --device cpu";
  }
  if (!facts.count_error.empty() && facts.device_count == 0) {
    return "CUDA finds no GPU (" + facts.count_error +
           "): give this process one (server.gpus, or CUDA_VISIBLE_DEVICES), or train on the CPU "
           "with --device cpu";
  }
  if (facts.wanted >= facts.device_count) {
    return device_word(facts.wanted) + " is not there: this process sees " +
           std::to_string(facts.device_count) + " of them, numbered from 0";
  }
  if (facts.wants_bfloat16 && facts.capability < kFirstWithBfloat16) {
    return device_word(facts.wanted) + " (" + facts.name + ") has compute capability " +
           dotted(facts.capability) + ", and bfloat16 needs " + dotted(kFirstWithBfloat16) +
           "; write spec.training.precision: Float32";
  }
  if (has_code(facts.capability)) return std::nullopt;
  std::string built;
  for (const int code : built_capabilities()) built += (built.empty() ? "" : ", ") + dotted(code);
  return device_word(facts.wanted) + " (" + facts.name + ") has compute capability " +
         dotted(facts.capability) + ", for which this build has no code; it has " + built +
         " and newer";
}

}  // namespace outrigger::nn::cuda

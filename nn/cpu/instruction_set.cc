#include "nn/cpu/instruction_set.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>

#include "common/error.h"
#include "nn/cpu/kernels/tables.h"

namespace outrigger::nn::cpu {
namespace {

struct InstructionSet {
  const char* name;
  dnnl::cpu_isa limit;
  const Kernels& (*kernels)();
};
constexpr std::array kSets{
    InstructionSet{"baseline", dnnl::cpu_isa::sse41, baseline_kernels},
    InstructionSet{"avx2", dnnl::cpu_isa::avx2, avx2_kernels},
    InstructionSet{"avx512", dnnl::cpu_isa::avx512_core, avx512_kernels},
    InstructionSet{"avx512_bf16", dnnl::cpu_isa::avx512_core_bf16, avx512_bf16_kernels},
    InstructionSet{"amx", dnnl::cpu_isa::avx512_core_amx, avx512_bf16_kernels},
};
constexpr size_t kBFloat16 = 3;

// oneDNN's own answer (dnnl_get_effective_cpu_isa) would fix for good what it may use.
bool has_tiles() {
  // Intel's manual, CPUID leaf 7, EDX: what oneDNN asks for to use any of it.
  constexpr uint32_t kBFloat16Tiles = 1U << 22, kFloat16 = 1U << 23, kTiles = 1U << 24,
                     kInt8Tiles = 1U << 25;
  constexpr uint32_t kAll = kBFloat16Tiles | kFloat16 | kTiles | kInt8Tiles;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kAll) != kAll) return false;
  // The kernel must grant their state too: https://docs.kernel.org/arch/x86/xstate.html
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool machine_has(size_t set) {
  switch (set) {
    case 0:
      return __builtin_cpu_supports("sse4.1");
    case 1:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case 2:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    case 3:
      return machine_has(2) && __builtin_cpu_supports("avx512vnni") &&
             __builtin_cpu_supports("avx512bf16");
    default:
      return machine_has(3) && has_tiles();
  }
}

size_t find_best() {
  size_t best = 0;
  for (size_t i = 0; i < kSets.size() && machine_has(i); ++i) best = i;
  return best;
}
size_t best() {
  static const size_t index = find_best();
  return index;
}

size_t index_of(const std::string& name) {
  const auto found =
      std::find_if(kSets.begin(), kSets.end(), [&](const auto& set) { return set.name == name; });
  if (found != kSets.end()) return static_cast<size_t>(found - kSets.begin());
  std::string names;
  for (const auto& set : kSets) names += (names.empty() ? "" : ", ") + std::string(set.name);
  throw InvalidInput("instruction set \"" + name + "\" is none of " + names);
}

void limit_onednn(const InstructionSet& set) {
  if (dnnl::set_max_cpu_isa(set.limit) != dnnl::status::success)
    throw Error(std::string("oneDNN was used before instruction set \"") + set.name +
                "\" was settled");
}

// A property of the process, as it is one of oneDNN's: free until the first program.
class InForce {
 public:
  static InForce& instance() {
    static InForce in_force;
    return in_force;
  }
  void set(size_t index) {
    const std::scoped_lock lock(mutex_);
    if (settled_ && index != chosen_) {
      throw InvalidInput(std::string("instruction set \"") + kSets[index].name +
                         "\" cannot be imposed: \"" + kSets[chosen_].name + "\" is in use already");
    }
    chosen_ = index;
  }
  size_t get() const {
    const std::scoped_lock lock(mutex_);
    return chosen_;
  }
  size_t settle() {
    const std::scoped_lock lock(mutex_);
    if (!settled_) limit_onednn(kSets[chosen_]);
    settled_ = true;
    return chosen_;
  }

 private:
  mutable std::mutex mutex_;
  size_t chosen_ = best();
  bool settled_ = false;
};

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const auto& set : kSets) names.emplace_back(set.name);
  return names;
}

std::string best_instruction_set() { return kSets[best()].name; }

bool has_instruction_set(const std::string& name) { return index_of(name) <= best(); }

void set_instruction_set(const std::string& name) {
  const size_t index = index_of(name);
  if (index > best()) {
    throw InvalidInput("instruction set \"" + name +
                       "\" is more than this machine has, which is \"" + kSets[best()].name + "\"");
  }
  InForce::instance().set(index);
}

std::string instruction_set() { return kSets[InForce::instance().get()].name; }

void settle_instruction_set() { InForce::instance().settle(); }

bool computes_bfloat16() { return InForce::instance().get() >= kBFloat16; }

const Kernels& kernels() { return kSets[InForce::instance().settle()].kernels(); }

}  // namespace outrigger::nn::cpu

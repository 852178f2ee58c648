#include "nn/cpu/instruction_set.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

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
      // The kernel must have granted the tiles too, which oneDNN asks for.
      return machine_has(3) && dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core_amx;
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

// A property of the process, as it is one of oneDNN's: set at most once, never changed.
class InForce {
 public:
  static InForce& instance() {
    static InForce in_force;
    return in_force;
  }
  void impose(size_t index) {
    const std::scoped_lock lock(mutex_);
    if (index_ && *index_ != index) {
      throw InvalidInput(std::string("instruction set \"") + kSets[index].name +
                         "\" cannot be imposed: \"" + kSets[*index_].name + "\" is in use already");
    }
    settle(index);
  }
  size_t get() {
    const std::scoped_lock lock(mutex_);
    if (!index_) settle(best());
    return *index_;
  }

 private:
  void settle(size_t index) {
    if (index_) return;
    // Refused only where a primitive exists already, which none of ours does.
    dnnl::set_max_cpu_isa(kSets[index].limit);
    index_ = index;
  }
  std::mutex mutex_;
  std::optional<size_t> index_;
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
  InForce::instance().impose(index);
}

std::string instruction_set() { return kSets[InForce::instance().get()].name; }

bool computes_bfloat16() { return InForce::instance().get() >= kBFloat16; }

const Kernels& kernels() { return kSets[InForce::instance().get()].kernels(); }

}  // namespace outrigger::nn::cpu

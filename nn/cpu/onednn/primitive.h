#pragma once

#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

/// oneDNN on one thread, without allocating while it runs. Its exceptions are translated here.
namespace outrigger::nn::cpu::onednn {

/// Makes oneDNN use the calling thread alone (its OpenMP would start a team of its own inside each
/// of our threads). Cheap; call it before anything else here, on every thread.
void use_one_thread();

const dnnl::engine& engine();

dnnl::memory::data_type data_type(bool bfloat16);

/// A oneDNN primitive with its memory handles made beforehand, one set a slot.
class Primitive {
 public:
  /// An argument's number (DNNL_ARG_…) and its layout.
  using Argument = std::pair<int, dnnl::memory::desc>;

  Primitive() = default;
  /// `primitive` made from a descriptor with a scratchpad of the caller's, laid out as
  /// `scratchpad`.
  Primitive(const dnnl::primitive& primitive, const std::vector<Argument>& arguments,
            const dnnl::memory::desc& scratchpad, int slots);

  explicit operator bool() const { return !slots_.empty(); }
  size_t scratchpad_bytes() const { return scratchpad_bytes_; }

  /// One pointer per argument, in the constructor's order. Not for two threads with the same slot.
  void execute(int slot, std::byte* scratchpad, std::initializer_list<const void*> data) const;

 private:
  struct Slot {
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
    dnnl::stream stream;
  };
  dnnl::primitive primitive_;
  size_t scratchpad_bytes_ = 0;
  std::vector<Slot> slots_;
};

/// Attributes that every primitive here is made with.
dnnl::primitive_attr attributes();

/// Copies between two layouts or types; made and run at once, so not for a step.
void reorder(const dnnl::memory::desc& from_layout, const void* from,
             const dnnl::memory::desc& to_layout, void* to);

/// Runs `make` (which calls oneDNN) and turns what it throws into Error with `what` before it.
template <typename Make>
auto translated(const char* what, const Make& make) -> decltype(make());

[[noreturn]] void throw_translated(const char* what, const dnnl::error& error);

template <typename Make>
auto translated(const char* what, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    throw_translated(what, error);
  }
}

}  // namespace outrigger::nn::cpu::onednn

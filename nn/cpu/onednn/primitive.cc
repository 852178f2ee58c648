#include "nn/cpu/onednn/primitive.h"

#include <string>

#include "common/error.h"
#include "nn/cpu/instruction_set.h"
#include "nn/cpu/onednn/allocation_guard.h"

// GNU OpenMP's, which the oneDNN we link is built with; omp.h belongs to whatever compiler runs.
extern "C" void omp_set_num_threads(int threads);

namespace outrigger::nn::cpu::onednn {
namespace {

thread_local int inside_onednn = 0;

}  // namespace

InsideOneDnn::InsideOneDnn() { ++inside_onednn; }
InsideOneDnn::~InsideOneDnn() { --inside_onednn; }
bool is_inside_onednn() { return inside_onednn > 0; }

void use_one_thread() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu = [] {
    settle_instruction_set();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return cpu;
}

dnnl::memory::data_type data_type(bool bfloat16) {
  return bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

Primitive::Primitive(const dnnl::primitive& primitive, const std::vector<Argument>& arguments,
                     const dnnl::memory::desc& scratchpad, int slots)
    : primitive_(primitive),
      scratchpad_bytes_(scratchpad.get_size()),
      slots_(static_cast<size_t>(slots)) {
  for (Slot& slot : slots_) {
    slot.stream = dnnl::stream(engine());
    for (const auto& [number, layout] : arguments) {
      slot.memories.push_back(dnnl::memory(layout, engine(), DNNL_MEMORY_NONE));
      slot.arguments.push_back({number, slot.memories.back().get()});
    }
    slot.memories.push_back(dnnl::memory(scratchpad, engine(), DNNL_MEMORY_NONE));
    slot.arguments.push_back({DNNL_ARG_SCRATCHPAD, slot.memories.back().get()});
  }
}

void Primitive::execute(int slot_number, std::byte* scratchpad,
                        std::initializer_list<const void*> data) const {
  const Slot& slot = slots_[static_cast<size_t>(slot_number)];
  ensure(data.size() + 1 == slot.memories.size(),
         "a primitive gets a pointer for each of its arguments");
  const InsideOneDnn guard;
  // oneDNN's handles are not const, its primitives do not write to what they read.
  size_t i = 0;
  dnnl_status_t status = dnnl_success;
  for (const void* pointer : data) {
    if (status == dnnl_success)
      status = dnnl_memory_set_data_handle(slot.memories[i].get(), const_cast<void*>(pointer));
    ++i;
  }
  if (status == dnnl_success)
    status = dnnl_memory_set_data_handle(slot.memories[i].get(), scratchpad);
  if (status == dnnl_success) {
    status = dnnl_primitive_execute(primitive_.get(), slot.stream.get(),
                                    static_cast<int>(slot.arguments.size()), slot.arguments.data());
  }
  if (status != dnnl_success)
    throw Error("oneDNN failed to run a primitive: status " + std::to_string(status));
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

void reorder(const dnnl::memory::desc& from_layout, const void* from,
             const dnnl::memory::desc& to_layout, void* to) {
  translated("packing weights", [&] {
    const dnnl::memory source(from_layout, engine(), const_cast<void*>(from));
    const dnnl::memory target(to_layout, engine(), to);
    dnnl::stream stream(engine());
    dnnl::reorder(source, target).execute(stream, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
    stream.wait();
  });
}

void throw_translated(const char* what, const dnnl::error& error) {
  throw Error(std::string("oneDNN failed: ") + what + " (" + instruction_set() +
              "): " + error.what());
}

}  // namespace outrigger::nn::cpu::onednn

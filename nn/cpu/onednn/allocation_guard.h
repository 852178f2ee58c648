#pragma once

/// oneDNN allocates a few small nodes for every primitive it runs. The test that our own code
/// allocates nothing in a step tells the two apart by this.
namespace outrigger::nn::cpu::onednn {

class InsideOneDnn {
 public:
  InsideOneDnn();
  ~InsideOneDnn();
  InsideOneDnn(const InsideOneDnn&) = delete;
  InsideOneDnn& operator=(const InsideOneDnn&) = delete;
};

/// Whether the calling thread is in a call of oneDNN.
bool is_inside_onednn();

}  // namespace outrigger::nn::cpu::onednn

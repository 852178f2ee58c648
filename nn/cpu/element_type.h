#pragma once

#include <cstdint>

namespace outrigger::nn::cpu {

/// Calls function(T{}) with the type that a value is stored in.
template <typename Function>
void with_type(bool bfloat16, const Function& function) {
  if (bfloat16) {
    function(uint16_t{});
  } else {
    function(float{});
  }
}

}  // namespace outrigger::nn::cpu

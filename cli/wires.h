#pragma once

#include <array>
#include <map>

#include "common/wire_format.h"
#include "training/planner/model/costs.h"

namespace outrigger::cli {

/// How the tensors at a cut travel.
struct Wires {
  WireFormat activations = WireFormat::kFloat32;
  WireFormat gradients = WireFormat::kFloat32;
  bool operator==(const Wires&) const = default;
};

/// What a user may narrow them to.
inline constexpr std::array kNarrowWires{WireFormat::kBFloat16, WireFormat::kInt8};

/// Each of them in that format, where that is narrower.
inline Wires narrowed(Wires wires, WireFormat format) {
  for (WireFormat* wire : {&wires.activations, &wires.gradients}) {
    if (bytes_an_element(format) < bytes_an_element(*wire)) *wire = format;
  }
  return wires;
}

/// What links take of cores with wires that are narrowed to a format, where that narrows any.
using NarrowedWork = std::map<WireFormat, training::LinkWork>;

}  // namespace outrigger::cli

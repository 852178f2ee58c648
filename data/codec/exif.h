#pragma once

#include <cstddef>
#include <span>

namespace outrigger::data::codec {

/// The orientation (1 to 8) in the payload of a JPEG's APP1 marker, which starts with "Exif\0\0"; 1
/// where there is none or where the payload is not well formed. (CIPA DC-008, tag 0x0112 of the 0th
/// IFD.)
int exif_orientation(std::span<const std::byte> app1);

}  // namespace outrigger::data::codec

#include "common/tensor.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "common/error.h"
#include "common/memory_source.h"

namespace outrigger {

size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kInt64:
      return 8;
  }
  impossible("element type " + std::to_string(static_cast<int>(type)));
}

const char* to_string(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kBFloat16:
      return "bfloat16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
  }
  return "unknown";
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "{";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "}";
}

Tensor::Tensor(ElementType type, Shape shape) : Tensor(type, std::move(shape), nullptr) {}

Tensor::Tensor(ElementType type, Shape shape, MemorySource* source)
    : type_(type), shape_(std::move(shape)) {
  constexpr size_t kAlignment = 64;
  const size_t wanted = static_cast<size_t>(element_count(shape_)) * element_size(type_);
  const size_t rounded = std::max(kAlignment, (wanted + kAlignment - 1) / kAlignment * kAlignment);
  if (source != nullptr) {
    if (auto given = source->acquire(rounded)) {
      std::byte* data = given.get();
      data_ = {data, Free{std::move(given)}};
      return;
    }
  }
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  data_.reset(static_cast<std::byte*>(memory));
}

std::shared_ptr<const Tensor> Tensor::in_place(const ConstTensorView& elements,
                                               std::shared_ptr<const void> owner) {
  ensure(owner != nullptr && elements.data != nullptr, "what a tensor has in place is somebody's");
  auto tensor = std::make_shared<Tensor>();
  tensor->type_ = elements.type;
  tensor->shape_ = elements.shape;
  // Only ever handed out as const.
  tensor->data_ = {const_cast<std::byte*>(elements.data), Free{std::move(owner)}};
  return tensor;
}

void Tensor::Free::operator()(std::byte* p) const {
  if (owner == nullptr) std::free(p);
}

uint16_t to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace outrigger

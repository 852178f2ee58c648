#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace outrigger {

class MemorySource;

/// How one element is stored.
enum class ElementType : uint8_t {
  kUint8 = 0,
  kFloat32 = 1,
  kBFloat16 = 2,
  kInt8 = 3,
  kInt32 = 4,
  kInt64 = 5
};

size_t element_size(ElementType type);
const char* to_string(ElementType type);

/// Sizes of a tensor, outermost first. Images and activations between processes are {N, H, W, C} or
/// {N, F}.
using Shape = std::vector<int64_t>;

/// Number of elements: the product of the sizes (1 for an empty shape).
int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);

/// A dense read-only tensor that somebody else owns.
struct ConstTensorView {
  ElementType type = ElementType::kFloat32;
  Shape shape;
  const std::byte* data = nullptr;

  size_t bytes() const { return static_cast<size_t>(element_count(shape)) * element_size(type); }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data), static_cast<size_t>(element_count(shape))};
  }
  std::span<const std::byte> raw() const { return {data, bytes()}; }
};

/// A dense writable tensor that somebody else owns.
struct TensorView {
  ElementType type = ElementType::kFloat32;
  Shape shape;
  std::byte* data = nullptr;

  size_t bytes() const { return static_cast<size_t>(element_count(shape)) * element_size(type); }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data), static_cast<size_t>(element_count(shape))};
  }
  operator ConstTensorView() const { return {type, shape, data}; }
};

/// A dense tensor that owns its memory, aligned to 64 bytes and not initialised. Movable, not
/// copyable.
class Tensor {
 public:
  Tensor() = default;
  Tensor(ElementType type, Shape shape);
  /// In memory of the source, if it has any; else, and where it is null, in ordinary memory.
  Tensor(ElementType type, Shape shape, MemorySource* source);
  /// Elements that are somewhere already, to be read: they must not change as long as `owner` is
  /// held. Aligned to 64 bytes.
  static std::shared_ptr<const Tensor> in_place(const ConstTensorView& elements,
                                                std::shared_ptr<const void> owner);

  bool empty() const { return data_ == nullptr; }
  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  size_t bytes() const { return empty() ? 0 : view().bytes(); }
  TensorView view() { return {type_, shape_, data_.get()}; }
  ConstTensorView view() const { return {type_, shape_, data_.get()}; }
  template <typename T>
  std::span<T> as() {
    return view().as<T>();
  }
  template <typename T>
  std::span<const T> as() const {
    return view().as<T>();
  }

 private:
  struct Free {
    std::shared_ptr<const void> owner;  // null: the memory is this tensor's alone
    void operator()(std::byte* p) const;
  };
  ElementType type_ = ElementType::kFloat32;
  Shape shape_;
  std::unique_ptr<std::byte[], Free> data_;
};

/// bfloat16 as its 16 bits: the upper half of a float32, rounded to nearest even; NaN stays NaN.
uint16_t to_bfloat16(float value);
float from_bfloat16(uint16_t bits);

}  // namespace outrigger

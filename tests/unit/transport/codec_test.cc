#include "transport/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "common/random.h"
#include "link_pairs.h"
#include "transport/internal/codec_kernels.h"

namespace outrigger::transport {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor normal(const Shape& shape, uint64_t seed, bool relu = false) {
  Tensor tensor(ElementType::kFloat32, shape);
  RandomStream stream(seed, RandomUse::kSyntheticData, 0);
  for (float& value : tensor.as<float>()) {
    value = stream.normal();
    if (relu) value = std::max(value, 0.0F);
  }
  return tensor;
}

/// Through describe and read_encoded, as between two processes.
EncodedTensor travel(const EncodedTensor& tensor) {
  ByteWriter writer;
  describe(tensor, writer);
  const Bytes message = writer.take();
  ByteReader reader(message);
  EncodedTensor result = read_encoded(reader, tensor.data);
  reader.expect_end();
  return result;
}

/// The awkward sizes: less than a vector, a vector and a bit, nothing.
const std::vector<Shape> kShapes = {{2, 5, 3, 64}, {1, 7, 7, 3}, {4, 10}, {3, 1, 1, 37},
                                    {1},           {0, 4, 4, 8}, {5, 33}};

TEST(CodecTest, Float32IsLosslessAndNotCopied) {
  for (const Shape& shape : kShapes) {
    Tensor tensor = normal(shape, 1);
    const std::vector<float> values(tensor.as<float>().begin(), tensor.as<float>().end());
    const std::byte* memory = tensor.view().data;
    const EncodedTensor encoded = travel(encode(std::move(tensor), WireFormat::kFloat32));
    const Tensor decoded = decode(encoded, ElementType::kFloat32);
    EXPECT_EQ(std::vector<float>(decoded.as<float>().begin(), decoded.as<float>().end()), values);
    EXPECT_TRUE(values.empty() || encoded.data.bytes.data() == memory);
  }
}

TEST(CodecTest, PixelsTravelAsTheyAre) {
  Tensor tensor(ElementType::kUint8, {2, 3, 3, 3});
  uint8_t next = 250;
  for (uint8_t& value : tensor.as<uint8_t>()) value = next++;
  const EncodedTensor encoded = travel(encode(tensor.view(), WireFormat::kUint8));
  const auto view = view_of(encoded);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->shape, tensor.shape());
  const auto pixels = view->as<uint8_t>();
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), tensor.as<uint8_t>().begin()));
}

TEST(CodecTest, BFloat16RoundsAsTheScalarDefinitionDoes) {
  std::vector<float> values = {0.0F,
                               -0.0F,
                               1.0F,
                               -1.0F,
                               kInfinity,
                               -kInfinity,
                               kNan,
                               -kNan,
                               3.3895e38F,
                               1e-40F,
                               1.00390625F,
                               1.01171875F,
                               std::bit_cast<float>(0x7F800001),
                               std::bit_cast<float>(0x7FFFFFFF),
                               std::bit_cast<float>(0xFF7FFFFF)};
  RandomStream stream(5, RandomUse::kSyntheticData, 0);
  while (values.size() < 5003) values.push_back(std::bit_cast<float>(stream.next_u32()));
  const ConstTensorView view{ElementType::kFloat32,
                             {static_cast<int64_t>(values.size())},
                             reinterpret_cast<const std::byte*>(values.data())};
  const EncodedTensor encoded = encode(view, WireFormat::kBFloat16);
  const auto bits = view_of(encoded)->as<uint16_t>();
  const Tensor decoded = decode(travel(encoded), ElementType::kFloat32);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(bits[i], to_bfloat16(values[i])) << values[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(decoded.as<float>()[i]),
              std::bit_cast<uint32_t>(from_bfloat16(to_bfloat16(values[i]))));
  }
}

TEST(CodecTest, BFloat16TensorsAreLosslessInBFloat16AndFloat32) {
  for (const WireFormat format : {WireFormat::kBFloat16, WireFormat::kFloat32}) {
    const Tensor wide = normal({3, 4, 4, 21}, 2);
    const EncodedTensor narrow = encode(wide.view(), WireFormat::kBFloat16);
    const auto view = view_of(narrow);
    const Tensor back = decode(travel(encode(*view, format)), ElementType::kBFloat16);
    EXPECT_TRUE(std::equal(back.as<uint16_t>().begin(), back.as<uint16_t>().end(),
                           view->as<uint16_t>().begin()));
  }
}

TEST(CodecTest, Int8IsWithinHalfAStepOfEachChannel) {
  for (const bool relu : {true, false}) {
    for (const Shape& shape : kShapes) {
      const Tensor tensor = normal(shape, 3, relu);
      const EncodedTensor encoded = travel(encode(tensor.view(), WireFormat::kInt8));
      const Tensor decoded = decode(encoded, ElementType::kFloat32);
      const auto values = tensor.as<float>();
      const auto channels = static_cast<size_t>(shape.back());
      std::vector<float> largest(channels);
      for (size_t i = 0; i < values.size(); ++i) {
        largest[i % channels] = std::max(largest[i % channels], std::fabs(values[i]));
      }
      const float steps = encoded.is_signed ? 127.0F : 255.0F;
      EXPECT_FALSE(relu && encoded.is_signed);
      for (size_t i = 0; i < values.size(); ++i) {
        const float step = largest[i % channels] / steps;
        // Half a step, and three roundings of float32 on the way there and back.
        ASSERT_NEAR(decoded.as<float>()[i], values[i],
                    step * 0.5F + 3 * 6e-8F * largest[i % channels]);
      }
    }
  }
}

TEST(CodecTest, Int8IsWholeNumbersTimesTheirChannelsScale) {
  for (const bool relu : {true, false}) {
    const EncodedTensor encoded =
        travel(encode(normal({3, 4, 4, 21}, 8, relu).view(), WireFormat::kInt8));
    const auto packed = packed_of(encoded);
    ASSERT_TRUE(packed);
    EXPECT_EQ(packed->elements.type, relu ? ElementType::kUint8 : ElementType::kInt8);
    EXPECT_EQ(packed->elements.shape, encoded.shape);
    ASSERT_EQ(packed->scales.shape, (Shape{21}));
    const Tensor decoded = decode(encoded, ElementType::kFloat32);
    for (size_t i = 0; i < decoded.as<float>().size(); ++i) {
      const int whole =
          relu ? int{packed->elements.as<uint8_t>()[i]} : int{packed->elements.as<int8_t>()[i]};
      ASSERT_EQ(decoded.as<float>()[i],
                static_cast<float>(whole) * packed->scales.as<float>()[i % 21]);
    }
  }
  EXPECT_FALSE(packed_of(encode(normal({2, 2}, 8).view(), WireFormat::kBFloat16)));
}

TEST(CodecTest, Int8KeepsTheLargestValueOfAChannelAndZero) {
  Tensor tensor(ElementType::kFloat32, {3, 2});
  const std::vector<float> values = {-3.0F, 0.0F, 3.0F, 100.0F, 0.0F, -50.0F};
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  const Tensor decoded = decode(encode(tensor.view(), WireFormat::kInt8), ElementType::kFloat32);
  for (const size_t i : {0U, 1U, 2U, 3U, 4U}) EXPECT_FLOAT_EQ(decoded.as<float>()[i], values[i]);
}

TEST(CodecTest, StochasticRoundingHasTheRightMeanAndDependsOnItsKeyOnly) {
  constexpr int64_t kRows = 20'000;
  Tensor tensor(ElementType::kFloat32, {kRows, 4});
  const std::vector<float> row = {127.0F, 10.25F, -3.75F, 0.5F};
  for (size_t i = 0; i < tensor.as<float>().size(); ++i) tensor.as<float>()[i] = row[i % 4];
  tensor.as<float>()[1] = tensor.as<float>()[2] = tensor.as<float>()[3] =
      127.0F;  // so that a step is 1
  const StochasticRounding key{.seed = 1, .a = 2, .b = 3};
  const EncodedTensor once = encode(tensor.view(), WireFormat::kInt8, key);
  const EncodedTensor again = encode(tensor.view(), WireFormat::kInt8, key);
  const EncodedTensor other =
      encode(tensor.view(), WireFormat::kInt8, StochasticRounding{.seed = 1, .a = 2, .b = 4});
  EXPECT_TRUE(std::equal(once.data.bytes.begin(), once.data.bytes.end(), again.data.bytes.begin()));
  EXPECT_FALSE(
      std::equal(once.data.bytes.begin(), once.data.bytes.end(), other.data.bytes.begin()));
  const Tensor decoded = decode(once, ElementType::kFloat32);
  for (size_t c = 1; c < 4; ++c) {
    double sum = 0;
    for (size_t r = 1; r < kRows; ++r) {
      const float value = decoded.as<float>()[r * 4 + c];
      ASSERT_TRUE(value == std::floor(row[c]) || value == std::ceil(row[c])) << value;
      sum += value;
    }
    // A rounding error has a deviation of at most a half; five of the mean's.
    EXPECT_NEAR(sum / (kRows - 1), row[c], 5 * 0.5 / std::sqrt(kRows));
  }
}

// Correlations of 65,536 numbers have a deviation of 1/256.
double correlation(const kernels::Noise& a, const kernels::Noise& b, uint32_t distance) {
  constexpr uint32_t kCount = 65536;
  double sum = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    sum += (kernels::noise_at(a, i) / 65536.0 - 0.5) *
           (kernels::noise_at(b, i + distance) / 65536.0 - 0.5);
  }
  return 12 * sum / kCount;
}

TEST(CodecTest, NoiseIsUniformAndUnlikeThatOfNeighboursAndOtherTensors) {
  const kernels::Noise noise{.key = {0xFFFFFFF0, 7}};
  std::array<int, 64> counts{};
  for (uint32_t i = 0; i < 65536; ++i) ++counts[kernels::noise_at(noise, i) / 1024];
  for (const int count : counts) EXPECT_NEAR(count, 1024, 5 * 32);
  for (const uint32_t distance : {1, 2, 3, 4, 8, 16, 31, 32, 64, 256, 4096})
    EXPECT_LT(std::fabs(correlation(noise, noise, distance)), 5.0 / 256) << distance;
  RandomStream keys(12, RandomUse::kSyntheticData, 0);
  for (int i = 0; i < 100; ++i) {
    const kernels::Noise other{.key = {keys.next_u32(), keys.next_u32()}};
    EXPECT_LT(std::fabs(correlation(noise, other, 0)), 5.0 / 256) << i;
  }
}

// Of a step of 1: to nearest, or with a number added that is rounded down.
int whole_of(float value, bool is_signed, std::optional<uint16_t> number) {
  const double whole = number
                           ? std::floor((std::nearbyint(double{value} * 65536) + *number) / 65536)
                           : std::nearbyint(double{value});
  return static_cast<int>(std::clamp(whole, is_signed ? -127.0 : 0.0, is_signed ? 127.0 : 255.0));
}

TEST(CodecTest, QuantisesAsTheScalarDefinitionDoes) {
  constexpr size_t kChannels = 133;  // whole vectors and a rest
  RandomStream stream(11, RandomUse::kSyntheticData, 0);
  const kernels::Noise noise{.key = {3, 4}};
  constexpr size_t kFirst = 0xFFFFFFF0;  // the index overflows on the way
  for (const bool is_signed : {true, false}) {
    std::vector<float> values = {0.5F,      1.5F,   -0.5F,  127.49F, -127.0001F,
                                 127.9999F, 255.0F, 256.0F, -1.0F};
    while (values.size() < 7 * kChannels)
      values.push_back((stream.uniform() * 2 - 1) * (is_signed ? 127.0F : 255.0F));
    for (const bool stochastic : {false, true}) {
      const std::vector<float> inverse(kChannels, stochastic ? 65536.0F : 1.0F);
      std::vector<uint8_t> bytes(values.size());
      kernels::quantise(values.data(), bytes.data(),
                        {.row_count = 7,
                         .channels = kChannels,
                         .inverse_scale = inverse.data(),
                         .is_signed = is_signed,
                         .is_stochastic = stochastic,
                         .noise = noise,
                         .first_element = kFirst});
      for (size_t i = 0; i < values.size(); ++i) {
        const auto element = static_cast<uint32_t>(kFirst + i);
        const auto number =
            stochastic ? std::optional(kernels::noise_at(noise, element)) : std::nullopt;
        const int got = is_signed ? int{static_cast<int8_t>(bytes[i])} : int{bytes[i]};
        ASSERT_EQ(got, whole_of(values[i], is_signed, number)) << values[i] << " at " << i;
      }
    }
  }
}

TEST(CodecTest, QuantisesWithTheLeastAndTheGreatestNumberAsTheScalarDefinitionDoes) {
  const kernels::Noise noise{.key = {3, 4}};
  const float inverse = 65536.0F;
  for (const uint16_t number : {0, 1, 65535}) {
    uint32_t element = 0;
    while (kernels::noise_at(noise, element) != number) ++element;
    for (const bool is_signed : {true, false}) {
      for (const float value : {0.5F, -0.5F, -127.0001F, 127.9999F, 255.0F, 256.0F, -1.0F}) {
        uint8_t byte = 0;
        kernels::quantise(&value, &byte,
                          {.row_count = 1,
                           .channels = 1,
                           .inverse_scale = &inverse,
                           .is_signed = is_signed,
                           .is_stochastic = true,
                           .noise = noise,
                           .first_element = element});
        const int got = is_signed ? int{static_cast<int8_t>(byte)} : int{byte};
        EXPECT_EQ(got, whole_of(value, is_signed, number)) << value << " with " << number;
      }
    }
  }
}

TEST(CodecTest, StochasticRoundingOfBFloat16AndFloat32Agree) {
  const Tensor wide = normal({100, 33}, 9);
  const EncodedTensor narrow = encode(wide.view(), WireFormat::kBFloat16);
  const Tensor widened = decode(narrow, ElementType::kFloat32);
  const StochasticRounding key{.seed = 7, .a = 1, .b = 1};
  const EncodedTensor a = encode(*view_of(narrow), WireFormat::kInt8, key);
  const EncodedTensor b = encode(widened.view(), WireFormat::kInt8, key);
  EXPECT_TRUE(std::equal(a.data.bytes.begin(), a.data.bytes.end(), b.data.bytes.begin(),
                         b.data.bytes.end()));
}

TEST(CodecTest, WhatIsNotFiniteStaysSoInItsChannel) {
  for (const float poison : {kNan, kInfinity, -kInfinity}) {
    Tensor tensor = normal({4, 20}, 4);
    tensor.as<float>()[25] = poison;
    for (const bool stochastic : {false, true}) {
      const auto rounding = stochastic ? std::optional(StochasticRounding{}) : std::nullopt;
      const Tensor decoded =
          decode(encode(tensor.view(), WireFormat::kInt8, rounding), ElementType::kFloat32);
      for (size_t i = 0; i < 80; ++i)
        EXPECT_EQ(std::isnan(decoded.as<float>()[i]), i % 20 == 5) << i;
    }
  }
}

TEST(CodecTest, ChannelsOfZerosAndOfTinyNumbersArriveAsZero) {
  Tensor tensor(ElementType::kFloat32, {2, 3});
  const std::vector<float> values = {0.0F, 1e-38F, 1.0F, 0.0F, 1e-45F, 0.5F};
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  const Tensor decoded = decode(encode(tensor.view(), WireFormat::kInt8), ElementType::kFloat32);
  for (const size_t i : {0U, 1U, 3U, 4U}) EXPECT_EQ(decoded.as<float>()[i], 0.0F);
  EXPECT_FLOAT_EQ(decoded.as<float>()[2], 1.0F);
}

TEST(CodecTest, TypesThatDoNotFitTheFormatAreRefused) {
  Tensor pixels(ElementType::kUint8, {4});
  Tensor floats(ElementType::kFloat32, {4});
  EXPECT_THROW(encode(pixels.view(), WireFormat::kFloat32), InvalidInput);
  EXPECT_THROW(encode(floats.view(), WireFormat::kUint8), InvalidInput);
  std::fill(floats.as<float>().begin(), floats.as<float>().end(), 1.0F);
  const EncodedTensor encoded = encode(floats.view(), WireFormat::kFloat32);
  EXPECT_THROW(decode(encoded, ElementType::kUint8), InvalidInput);
  Tensor five(ElementType::kFloat32, {5});
  EXPECT_THROW(decode(encoded, five.view()), InvalidInput);
}

TEST(CodecTest, DescriptionsThatLieAreRefused) {
  const Tensor tensor = normal({4, 4}, 1);
  const EncodedTensor good = encode(tensor.view(), WireFormat::kInt8);
  const auto expect_refused = [&](const auto& change) {
    EncodedTensor bad = good;
    change(bad);
    EXPECT_THROW(travel(bad), InvalidInput);
  };
  expect_refused([](EncodedTensor& t) { t.shape = {4, 5}; });
  expect_refused([](EncodedTensor& t) { t.shape = {-4, -4}; });
  expect_refused([](EncodedTensor& t) { t.shape = {int64_t{1} << 62, 8}; });
  expect_refused([](EncodedTensor& t) { t.shape = {0, int64_t{1} << 62}; });
  expect_refused([](EncodedTensor& t) {
    t.format = WireFormat::kFloat32;
    t.shape = {512, 23167818098802688, 0};
    t.data.bytes = {};
  });
  expect_refused([](EncodedTensor& t) { t.shape.assign(9, 1); });
  expect_refused([](EncodedTensor& t) { t.format = WireFormat::kFloat32; });
  expect_refused([](EncodedTensor& t) { t.format = static_cast<WireFormat>(9); });
  expect_refused([](EncodedTensor& t) { t.data.bytes = t.data.bytes.first(10); });
  EXPECT_NO_THROW(travel(good));
}

}  // namespace
}  // namespace outrigger::transport

#pragma once

#include <cstddef>

#include "nn/cpu/kernels/elementwise.inc.h"
#include "nn/cpu/kernels/kernels.h"
#include "nn/cpu/kernels/vector.h"

/// Windows and transposes over one sample's map.
namespace {

using outrigger::nn::cpu::Window;

// The part of a window that lies in the input, along one axis.
struct Span {
  int64_t start, begin, end;  // start may be negative
};
inline Span span_of(const Window& w, int64_t out, int64_t in_size) {
  const int64_t start = out * w.stride - w.padding;
  const int64_t end = start + w.kernel;
  return {start, start < 0 ? 0 : start, end > in_size ? in_size : end};
}

inline Bits load_places(const uint8_t* from, int64_t values) {
  if (values == kLanes) return widen(from);
#ifdef __AVX512F__
  constexpr __mmask16 kAll = 0xffff;
  return reinterpret_cast<Bits>(_mm512_maskz_cvtepu8_epi32(
      kAll, _mm_mask_loadu_epi8(_mm_set1_epi8(-1), first_lanes(values), from)));
#else
  uint8_t places[kLanes];
  __builtin_memset(places, -1, sizeof places);
  for (int64_t lane = 0; lane < values; ++lane) places[lane] = from[lane];
  return widen(places);
#endif
}
inline void store_places(uint8_t* to, int64_t values, Bits places) {
  if (values == kLanes) return narrow(to, places);
#ifdef __AVX512F__
  _mm_mask_storeu_epi8(to, first_lanes(values),
                       _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(places)));
#else
  uint8_t narrowed[kLanes];
  narrow(narrowed, places);
  for (int64_t lane = 0; lane < values; ++lane) to[lane] = narrowed[lane];
#endif
}

// The largest values of a window in `n` channels, the first of them at x, y and places.
template <typename T>
inline void max_pool_window(const Window& w, const Span& rows, const Span& columns, const T* x,
                            int64_t n, T* y, uint8_t* places) {
  Vector best{};
  Bits place{};
  bool first = true;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      const Vector value = take(x + (i * w.in_width + j) * w.channels, n);
      const auto number = static_cast<uint32_t>((i - rows.start) * w.kernel + j - columns.start);
      const Mask wins =
          first ? value == value || value != value : (value > best) | (value != value);
      const Bits bits = reinterpret_cast<Bits>(wins);
      best = select(wins, value, best);
      place = ((Bits{} + number) & bits) | (place & ~bits);
      first = false;
    }
  }
  put(y, n, best);
  store_places(places, n, place);
}

template <typename T>
void max_pool_forward(const Window& w, const T* x, T* y, uint8_t* places) {
  const int64_t ins = w.in_height * w.in_width * w.channels;
  const int64_t outs = w.out_height * w.out_width * w.channels;
  for (int64_t row = 0; row < w.out_height; ++row) {
    const Span rows = span_of(w, row, w.in_height);
    for (int64_t column = 0; column < w.out_width; ++column) {
      const Span columns = span_of(w, column, w.in_width);
      const int64_t out = (row * w.out_width + column) * w.channels;
      const int64_t last = ((rows.end - 1) * w.in_width + columns.end - 1) * w.channels;
      for_each_vector(w.channels, [&](int64_t c, int64_t n) {
        // Whole vectors are faster; what they write too much, later windows write over.
        const bool inside = last + c + kLanes <= ins && out + c + kLanes <= outs;
        max_pool_window(w, rows, columns, x + c, inside ? kLanes : n, y + out + c,
                        places + out + c);
      });
    }
  }
}

// The outputs whose windows hold an input, along one axis: [first, last].
struct Reach {
  int64_t first, last;
};
inline Reach reach_of(const Window& w, int64_t in, int64_t out_size) {
  const int64_t over = in + w.padding - w.kernel + 1;
  const int64_t first = over <= 0 ? 0 : (over + w.stride - 1) / w.stride;
  const int64_t last = (in + w.padding) / w.stride;
  return {first, last < out_size - 1 ? last : out_size - 1};
}

// The windows that hold one input value: for each, where its output lies and what number the value
// has in it.
struct Holders {
  static constexpr int kMost = 64;
  int64_t outputs[kMost];
  uint32_t numbers[kMost];
  int count = 0;
};
inline Holders holders_of(const Window& w, int64_t i, int64_t j, const Reach& rows,
                          const Reach& columns) {
  Holders holders;
  for (int64_t row = rows.first; row <= rows.last; ++row) {
    for (int64_t column = columns.first; column <= columns.last; ++column) {
      holders.outputs[holders.count] = (row * w.out_width + column) * w.channels;
      holders.numbers[holders.count++] = static_cast<uint32_t>(
          (i - row * w.stride + w.padding) * w.kernel + j - column * w.stride + w.padding);
    }
  }
  return holders;
}

// Where windows share no input, each output's gradient has one place to go to.
template <typename T>
void max_pool_scatter(const Window& w, const uint8_t* places, const T* dy, T* dx) {
  int64_t offsets[256];
  for (int64_t number = 0; number < w.kernel * w.kernel; ++number)
    offsets[number] = (number / w.kernel * w.in_width + number % w.kernel) * w.channels;
  __builtin_memset(dx, 0, sizeof(T) * static_cast<size_t>(w.in_height * w.in_width * w.channels));
  for (int64_t row = 0; row < w.out_height; ++row) {
    for (int64_t column = 0; column < w.out_width; ++column) {
      T* window = dx + (row * w.in_width + column) * w.stride * w.channels;
      for (int64_t c = 0; c < w.channels; ++c) window[offsets[*places++] + c] = *dy++;
    }
  }
}

// Gathers: each input value is written once, its windows in order, whatever the overlap.
template <typename T>
void max_pool_backward(const Window& w, const uint8_t* places, const T* dy, T* dx) {
  if (w.kernel <= w.stride && w.padding == 0) return max_pool_scatter(w, places, dy, dx);
  for (int64_t i = 0; i < w.in_height; ++i) {
    const Reach rows = reach_of(w, i, w.out_height);
    for (int64_t j = 0; j < w.in_width; ++j) {
      const Holders holders = holders_of(w, i, j, rows, reach_of(w, j, w.out_width));
      T* to = dx + (i * w.in_width + j) * w.channels;
      for_each_vector(w.channels, [&](int64_t c, int64_t n) {
        Vector sum{};
        for (int h = 0; h < holders.count; ++h) {
          const int64_t out = holders.outputs[h] + c;
          const Bits number = Bits{} + holders.numbers[h];
          const Mask mine = reinterpret_cast<Mask>(load_places(places + out, n) == number);
          sum += zero_unless(mine, take(dy + out, n));
        }
        put(to + c, n, sum);
      });
    }
  }
}

template <typename T>
void average_pool_forward(const Window& w, const T* x, T* y) {
  const float area = static_cast<float>(w.kernel * w.kernel);
  for (int64_t row = 0; row < w.out_height; ++row) {
    const Span rows = span_of(w, row, w.in_height);
    for (int64_t column = 0; column < w.out_width; ++column) {
      const Span columns = span_of(w, column, w.in_width);
      for_each_vector(w.channels, [&](int64_t c, int64_t n) {
        Vector sum{};
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          for (int64_t j = columns.begin; j < columns.end; ++j)
            sum += take(x + (i * w.in_width + j) * w.channels + c, n);
        }
        put(y + (row * w.out_width + column) * w.channels + c, n, sum / area);
      });
    }
  }
}
template <typename T>
void average_pool_backward(const Window& w, const T* dy, T* dx) {
  const float area = static_cast<float>(w.kernel * w.kernel);
  for (int64_t i = 0; i < w.in_height; ++i) {
    const Reach rows = reach_of(w, i, w.out_height);
    for (int64_t j = 0; j < w.in_width; ++j) {
      const Reach columns = reach_of(w, j, w.out_width);
      for_each_vector(w.channels, [&](int64_t c, int64_t n) {
        Vector sum{};
        for (int64_t row = rows.first; row <= rows.last; ++row) {
          for (int64_t column = columns.first; column <= columns.last; ++column)
            sum += take(dy + (row * w.out_width + column) * w.channels + c, n);
        }
        put(dx + (i * w.in_width + j) * w.channels + c, n, sum / area);
      });
    }
  }
}

template <typename T>
void global_average_forward(const T* x, int64_t places, int64_t channels, float* y) {
  for_each_vector(channels, [&](int64_t c, int64_t n) {
    Vector sum{};
    for (int64_t place = 0; place < places; ++place) sum += take(x + place * channels + c, n);
    put(y + c, n, sum / static_cast<float>(places));
  });
}
template <typename T>
void global_average_backward(const float* dy, int64_t places, int64_t channels, T* dx) {
  for (int64_t place = 0; place < places; ++place) {
    for_each_vector(channels, [&](int64_t c, int64_t n) {
      put(dx + place * channels + c, n, take(dy + c, n) / static_cast<float>(places));
    });
  }
}
template <typename T>
void flatten_forward(const T* x, int64_t places, int64_t channels, float* y) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t place = 0; place < places; ++place)
      y[c * places + place] = load_one(x + place * channels + c);
  }
}
template <typename T>
void flatten_backward(const float* dy, int64_t places, int64_t channels, T* dx) {
  for (int64_t place = 0; place < places; ++place) {
    for (int64_t c = 0; c < channels; ++c)
      store_one(dx + place * channels + c, dy[c * places + place]);
  }
}

}  // namespace

#include "cli/report/chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/log.h"

namespace outrigger::cli {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 230;
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 12;
constexpr double kBottom = 40;

struct Range {
  double low = 0;
  double high = 1;
};

/// A step of 1, 2 or 5 times a power of ten of which about `count` fill the range.
double tick_step(const Range& range, int count) {
  const double rough = (range.high - range.low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

/// The multiples of `step` within the range.
std::vector<double> ticks(const Range& range, double step) {
  const double first = std::ceil(range.low / step - 1e-9);
  const double last = std::floor(range.high / step + 1e-9);
  std::vector<double> values;
  for (int i = 0; i <= static_cast<int>(last - first); ++i) values.push_back((first + i) * step);
  return values;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:.4g}", std::abs(value) < 1e-12 ? 0.0 : value);
}

/// The frame of a picture: scales, grid and labels.
class Frame {
 public:
  Frame(const ChartOptions& options, Range x, Range y) : x_(x), y_(y) {
    if (x_.high <= x_.low) x_ = {x_.low - 0.5, x_.low + 0.5};
    if (y_.high <= y_.low) y_.high = y_.low + 1;
    text_ = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
        "xmlns=\"http://www.w3.org/2000/svg\">\n",
        kWidth, kHeight, escaped(options.label));
    grid(options);
  }
  double at_x(double x) const {
    return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double at_y(double y) const {
    return kHeight - kBottom - (y - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  void add(const std::string& text) { text_ += text; }
  std::string finish() { return text_ + "</svg>\n"; }

 private:
  void grid(const ChartOptions& options) {
    const double step = tick_step(y_, 4);
    for (const double y : ticks(y_, step))
      text_ += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}{6}</text>\n",
          kLeft, kWidth - kRight, at_y(y), kLeft - 6, at_y(y) + 4, short_number(y),
          escaped(options.unit));
    const double across = std::max(1.0, tick_step(x_, 8));  // steps and percents are whole
    for (const double x : ticks(x_, across))
      text_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                           at_x(x), kHeight - kBottom + 16, short_number(x));
    text_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kWidth - kRight,
                         kHeight - 6, escaped(options.x_label));
  }

  Range x_;
  Range y_;
  std::string text_;
};

Range range_of(std::span<const Series> series, std::vector<double> Series::*values) {
  Range range{1e300, -1e300};
  for (const Series& one : series) {
    for (const double value : one.*values) {
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    }
  }
  return range.low > range.high ? Range{} : range;
}

std::string legend(std::span<const Series> series) {
  std::string text = "<p class=\"legend\">";
  for (const Series& one : series) {
    if (!one.x.empty())
      text += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", one.color,
                          escaped(one.name));
  }
  return text + "</p>\n";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

Series thinned(const Series& series, size_t most) {
  const size_t group = (series.x.size() + most - 1) / std::max<size_t>(1, most);
  if (group <= 1) return series;
  Series thin{.name = series.name, .color = series.color, .points = series.points};
  for (size_t begin = 0; begin < series.x.size(); begin += group) {
    const size_t end = std::min(begin + group, series.x.size());
    double x = 0;
    double y = 0;
    for (size_t i = begin; i < end; ++i) {
      x += series.x[i];
      y += series.y[i];
    }
    thin.x.push_back(x / static_cast<double>(end - begin));
    thin.y.push_back(y / static_cast<double>(end - begin));
  }
  return thin;
}

std::string line_chart(const ChartOptions& options, std::span<const Series> series) {
  Range y = range_of(series, &Series::y);
  if (options.from_zero) y.low = std::min(0.0, y.low);
  y.high += 0.05 * (y.high - y.low);
  Frame frame(options, range_of(series, &Series::x), y);
  for (const Series& one : series) {
    const bool points = one.points || one.x.size() == 1;
    std::string path;
    for (size_t i = 0; i < one.x.size(); ++i) {
      if (points) {
        frame.add(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n",
                              frame.at_x(one.x[i]), frame.at_y(one.y[i]), one.color));
      } else {
        path += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "M" : " L", frame.at_x(one.x[i]),
                            frame.at_y(one.y[i]));
      }
    }
    if (!path.empty())
      frame.add(fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n",
                            path, one.color));
  }
  return frame.finish() + (series.size() > 1 ? legend(series) : "");
}

std::string stacked_chart(const ChartOptions& options, std::span<const Series> series) {
  const std::vector<double>& x = series.front().x;
  std::vector<double> top(x.size(), 0.0);
  for (const Series& one : series) {
    for (size_t i = 0; i < x.size(); ++i) top[i] += one.y[i];
  }
  const double highest = top.empty() ? 1 : *std::ranges::max_element(top);
  Frame frame(options, range_of(series, &Series::x), {0, std::max(1.0, 1.05 * highest)});
  const int edge = x.size() == 1 ? 7 : 0;  // one point's area has no width
  std::vector<double> floor(x.size(), 0.0);
  for (const Series& one : series) {
    std::string path;
    const std::vector<double> below = floor;
    for (size_t i = 0; i < x.size(); ++i) {
      floor[i] += one.y[i];
      path += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "M" : " L", frame.at_x(x[i]),
                          frame.at_y(floor[i]));
    }
    for (size_t i = x.size(); i > 0; --i)
      path += fmt::format(" L{:.1f},{:.1f}", frame.at_x(x[i - 1]), frame.at_y(below[i - 1]));
    frame.add(fmt::format("<path d=\"{0}Z\" fill=\"{1}\" stroke=\"{1}\" stroke-width=\"{2}\"/>\n",
                          path, one.color, edge));
  }
  return frame.finish() + legend(series);
}

std::string timeline(const ChartOptions& options, std::span<const Stretch> stretches) {
  constexpr double kRow = 34;
  double low = 1e300;
  double high = -1e300;
  for (const Stretch& one : stretches) {
    low = std::min(low, one.from);
    high = std::max(high, one.to);
  }
  const double scale = (kWidth - kLeft - kRight) / std::max(1e-9, high - low);
  std::string text = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n",
      kWidth, kRow + 22, escaped(options.label));
  for (const Stretch& one : stretches) {
    const double x = kLeft + (one.from - low) * scale;
    const double width = std::max(1.0, (one.to - one.from) * scale);
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"2\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" rx=\"3\">"
        "<title>{}</title></rect>\n",
        x, width, kRow - 4, one.color, escaped(one.text));
    if (width > 7.0 * static_cast<double>(one.text.size()))
      text += fmt::format("<text class=\"on\" x=\"{:.1f}\" y=\"22\">{}</text>\n", x + 6,
                          escaped(one.text));
  }
  return text +
         fmt::format(
             "<text x=\"{}\" y=\"{}\">{} {}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">"
             "{}</text></svg>\n",
             kLeft, kRow + 14, escaped(options.x_label), short_number(low), kWidth - kRight,
             kRow + 14, short_number(high));
}

}  // namespace outrigger::cli

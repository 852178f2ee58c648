#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace outrigger::telemetry {

/// What a metric is: its name by Prometheus' conventions (prometheus.io/docs/practices/naming), a
/// sentence, and the names of its labels. One constant per metric, shared by whoever counts and
/// whoever documents.
struct MetricInfo {
  std::string name;
  std::string help;
  std::vector<std::string> labels;
};

struct HistogramInfo {
  MetricInfo metric;
  /// Upper bounds of the buckets, rising; one more for infinity is implied.
  std::vector<double> bounds;
};

/// Label name -> value; exactly the labels that the metric declares.
using Labels = std::map<std::string, std::string>;

/// The value of one series.
struct Sample {
  Labels labels;
  double value = 0;
};

/// Only grows. Thread-safe; cheap enough for the hot path.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void add(double amount = 1) = 0;
  virtual double value() const = 0;
};

/// Goes up and down. Thread-safe.
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double value) = 0;
  virtual void add(double amount) = 0;
  virtual double value() const = 0;
  /// Off the page, until it is set again: nobody knows the value now.
  virtual void withdraw() = 0;
};

/// Counts observations by size. Thread-safe.
class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void observe(double value) = 0;
};

/// The metrics of one process. Asking again for the same metric and labels gives the same object;
/// references live as long as this. Thread-safe, but asking takes a lock: keep the reference.
/// Labels other than those declared abort.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter& counter(const MetricInfo& info, const Labels& labels = {});
  Gauge& gauge(const MetricInfo& info, const Labels& labels = {});
  Histogram& histogram(const HistogramInfo& info, const Labels& labels = {});
  /// A gauge whose series are asked for with each page and kept nowhere: for what is many, comes
  /// and goes. Once for a metric, which is not asked for otherwise. `samples` is called on any
  /// thread that asks for the page, as long as this lives; where it gives none, the metric is not
  /// on the page.
  void gauge_of(const MetricInfo& info, std::function<std::vector<Sample>()> samples);

  /// All metrics in Prometheus' text format 0.0.4, with this process's memory, CPU time and open
  /// files.
  std::string exposition();

 private:
  void update_process();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrigger::telemetry

#include "telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <tuple>
#include <utility>

#include "common/error.h"
#include "telemetry/process_metrics.h"

namespace outrigger::telemetry {
namespace {

class PrometheusCounter final : public Counter {
 public:
  explicit PrometheusCounter(prometheus::Counter& counter) : counter_(counter) {}
  void add(double amount) override {
    ensure(amount >= 0, "a counter only grows");
    counter_.Increment(amount);
  }
  double value() const override { return counter_.Value(); }

 private:
  prometheus::Counter& counter_;
};

class PrometheusGauge final : public Gauge {
 public:
  PrometheusGauge(prometheus::Family<prometheus::Gauge>& family, Labels labels)
      : family_(family), labels_(std::move(labels)), shown_(&family_.Add(labels_)) {}
  void set(double value) override {
    const std::scoped_lock lock(mutex_);
    shown().Set(value);
  }
  void add(double amount) override {
    const std::scoped_lock lock(mutex_);
    shown().Increment(amount);
  }
  double value() const override {
    const std::scoped_lock lock(mutex_);
    return shown_ == nullptr ? 0 : shown_->Value();
  }
  void withdraw() override {
    const std::scoped_lock lock(mutex_);
    if (shown_ != nullptr) family_.Remove(std::exchange(shown_, nullptr));
  }

 private:
  prometheus::Gauge& shown() {
    if (shown_ == nullptr) shown_ = &family_.Add(labels_);
    return *shown_;
  }

  prometheus::Family<prometheus::Gauge>& family_;
  const Labels labels_;
  mutable std::mutex mutex_;
  prometheus::Gauge* shown_;  // null: withdrawn
};

class PrometheusHistogram final : public Histogram {
 public:
  explicit PrometheusHistogram(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void observe(double value) override { histogram_.Observe(value); }

 private:
  prometheus::Histogram& histogram_;
};

struct Key {
  std::string name;
  Labels labels;
};
struct KeyView {
  const std::string& name;
  const Labels& labels;
};
// Keys are found without a copy of the labels.
struct KeyOrder {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return std::tie(a.name, a.labels) < std::tie(b.name, b.labels);
  }
};
template <typename Metric>
using Table = std::map<Key, std::unique_ptr<Metric>, KeyOrder>;

void check_labels(const MetricInfo& info, const Labels& labels) {
  const bool all = std::all_of(info.labels.begin(), info.labels.end(),
                               [&](const std::string& name) { return labels.contains(name); });
  ensure(all && labels.size() == info.labels.size(),
         "a metric's labels differ from those it declares");
}

// The object in `table` for info and labels, made by `make` if it is asked for the first time.
template <typename Metric, typename Make>
Metric& find_or_make(Table<Metric>& table, const MetricInfo& info, const Labels& labels,
                     const Make& make) {
  const auto found = table.find(KeyView{info.name, labels});
  if (found != table.end()) return *found->second;
  check_labels(info, labels);
  return *table.emplace(Key{info.name, labels}, make()).first->second;
}

/// A metric whose samples are not kept.
struct Source {
  MetricInfo info;
  std::function<std::vector<Sample>()> samples;
};

prometheus::MetricFamily family_of(const Source& source) {
  prometheus::MetricFamily family{
      source.info.name, source.info.help, prometheus::MetricType::Gauge, {}};
  for (Sample& sample : source.samples()) {
    check_labels(source.info, sample.labels);
    prometheus::ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    metric.gauge.value = sample.value;
  }
  return family;
}

const MetricInfo kResidentMemory{
    "process_resident_memory_bytes", "Memory of this process that is in RAM.", {}};
const MetricInfo kCpuSeconds{
    "process_cpu_seconds_total", "CPU time of all threads, user and system.", {}};
const MetricInfo kStartTime{
    "process_start_time_seconds", "When the process started, since the Unix epoch.", {}};
const MetricInfo kOpenFiles{"process_open_fds", "Open file descriptors.", {}};

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  std::mutex exposition_mutex;
  std::mutex mutex;  // of the tables
  Table<Counter> counters;
  Table<Gauge> gauges;
  Table<Histogram> histograms;
  std::vector<Source> sources;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) { update_process(); }

Metrics::~Metrics() = default;

Counter& Metrics::counter(const MetricInfo& info, const Labels& labels) {
  const std::scoped_lock lock(impl_->mutex);
  return find_or_make(impl_->counters, info, labels, [&] {
    auto& family =
        prometheus::BuildCounter().Name(info.name).Help(info.help).Register(impl_->registry);
    return std::make_unique<PrometheusCounter>(family.Add(labels));
  });
}

Gauge& Metrics::gauge(const MetricInfo& info, const Labels& labels) {
  const std::scoped_lock lock(impl_->mutex);
  return find_or_make(impl_->gauges, info, labels, [&] {
    auto& family =
        prometheus::BuildGauge().Name(info.name).Help(info.help).Register(impl_->registry);
    return std::make_unique<PrometheusGauge>(family, labels);
  });
}

void Metrics::gauge_of(const MetricInfo& info, std::function<std::vector<Sample>()> samples) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->sources.push_back({info, std::move(samples)});
}

Histogram& Metrics::histogram(const HistogramInfo& info, const Labels& labels) {
  const std::scoped_lock lock(impl_->mutex);
  return find_or_make(impl_->histograms, info.metric, labels, [&] {
    auto& family = prometheus::BuildHistogram()
                       .Name(info.metric.name)
                       .Help(info.metric.help)
                       .Register(impl_->registry);
    return std::make_unique<PrometheusHistogram>(family.Add(labels, info.bounds));
  });
}

void Metrics::update_process() {
  const ProcessUsage usage = process_usage();
  gauge(kResidentMemory).set(usage.resident_bytes);
  gauge(kStartTime).set(usage.start_seconds);
  gauge(kOpenFiles).set(usage.open_files);
  Counter& cpu = counter(kCpuSeconds);
  cpu.add(std::max(0.0, usage.cpu_seconds - cpu.value()));
}

std::string Metrics::exposition() {
  const std::scoped_lock lock(impl_->exposition_mutex);
  update_process();
  std::ostringstream text;
  const prometheus::TextSerializer serializer;
  auto families = impl_->registry.Collect();
  std::erase_if(families, [](const auto& family) { return family.metric.empty(); });
  serializer.Serialize(text, families);
  const auto sources = [&] {
    const std::scoped_lock tables_lock(impl_->mutex);
    return impl_->sources;
  }();
  for (const Source& source : sources) {
    if (auto family = family_of(source); !family.metric.empty())
      serializer.Serialize(text, {std::move(family)});
  }
  return std::move(text).str();
}

}  // namespace outrigger::telemetry

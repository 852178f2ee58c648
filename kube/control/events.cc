#include "kube/control/events.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/error.h"
#include "common/log.h"
#include "kube/client/retry.h"

namespace outrigger::kube {

const Resource kEvents{"events.k8s.io", "v1", "events", "Event"};

namespace {

// The API server's limits (validation of events.k8s.io/v1).
constexpr size_t kLongestNote = 1024;
constexpr size_t kLongestName = 253;

// At most `size` bytes, not cut in the middle of a character.
std::string cut(std::string text, size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  text.resize(size);
  return text;
}

std::string unique_suffix(uint64_t count) {
  const auto random = static_cast<uint32_t>(random_chance() * 4294967296.0);
  char text[32];
  std::snprintf(text, sizeof text, ".%08x%08x", random, static_cast<uint32_t>(count));
  return text;
}

}  // namespace

EventRecorder::EventRecorder(Client& client, EventRecorderOptions options)
    : client_(client),
      options_(std::move(options)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

EventRecorder::~EventRecorder() {
  thread_.request_stop();
  changed_.notify_all();
}

Json EventRecorder::make_event(const EventSubject& subject, const Event& event) const {
  // An event is in its object's namespace; of what has none, in "default".
  const std::string ns = subject.key.ns.empty() ? "default" : subject.key.ns;
  const std::string suffix = unique_suffix(made_);
  Json regarding{{"apiVersion", subject.api_version},
                 {"kind", subject.kind},
                 {"name", subject.key.name},
                 {"uid", subject.uid}};
  if (!subject.key.ns.empty()) regarding["namespace"] = subject.key.ns;
  if (!subject.resource_version.empty()) regarding["resourceVersion"] = subject.resource_version;
  return {
      {"apiVersion", kEvents.api_version()},
      {"kind", kEvents.kind},
      {"metadata",
       {{"name", cut(subject.key.name, kLongestName - suffix.size()) + suffix}, {"namespace", ns}}},
      {"eventTime", format_micro_time(wall_time())},
      {"reportingController", options_.controller},
      {"reportingInstance", options_.instance},
      {"type", event.type == EventType::kNormal ? "Normal" : "Warning"},
      {"reason", event.reason},
      {"action", event.action},
      {"note", cut(event.note, kLongestNote)},
      {"regarding", std::move(regarding)}};
}

bool EventRecorder::within_budget(const std::string& uid, TimePoint now) {
  // A full bucket says no more than a new one.
  if (budgets_.size() > options_.most_series)
    std::erase_if(budgets_, [now](const auto& entry) { return entry.second.full(now); });
  return budgets_.try_emplace(uid, options_.budget, now).first->second.try_take(now);
}

void EventRecorder::record(const EventSubject& subject, const Event& event) {
  const std::string id = subject.uid + '\n' + subject.kind + '\n' + subject.key.text() + '\n' +
                         (event.type == EventType::kNormal ? "N" : "W") + event.reason + '\n' +
                         event.action + '\n' + event.note;
  const TimePoint now = options_.timer->now();
  {
    const std::scoped_lock lock(mutex_);
    const auto known = series_.find(id);
    if (known != series_.end() && now - known->second.last_time < options_.series) {
      repeat(id, known->second, now);
    } else if (pending_.size() >= options_.most_pending || !within_budget(subject.uid, now)) {
      options_.observer->event_dropped();
      return;
    } else {
      ++made_;
      forget_old(now);
      Series& series = series_[id];
      series = {.object = make_event(subject, event), .pending = series.pending};
      series.last_seen = wall_time();
      series.last_time = series.last_written = now;
      queue(id, series);
    }
  }
  changed_.notify_all();
}

void EventRecorder::repeat(const std::string& id, Series& series, TimePoint now) {
  ++series.count;
  series.last_seen = wall_time();
  series.last_time = now;
  // The second one makes it a series at once; later ones are gathered.
  if (series.count == 2) {
    queue(id, series);
  } else if (!series.pending) {
    unwritten_.insert(id);
  }
}

void EventRecorder::forget_old(TimePoint now) {
  if (series_.size() < options_.most_series) return;
  std::erase_if(series_, [&](const auto& entry) {
    return !entry.second.pending && !unwritten_.contains(entry.first) &&
           now - entry.second.last_time >= options_.series;
  });
  while (series_.size() >= options_.most_series) {
    const auto oldest = std::min_element(
        series_.begin(), series_.end(),
        [](const auto& a, const auto& b) { return a.second.last_time < b.second.last_time; });
    unwritten_.erase(oldest->first);
    series_.erase(oldest);
  }
}

void EventRecorder::queue(const std::string& id, Series& series) {
  if (std::exchange(series.pending, true)) return;
  pending_.push_back(id);
}

void EventRecorder::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const TimePoint next = queue_due_updates(options_.timer->now());
    if (pending_.empty()) {
      changed_.notify_all();  // for flush()
      options_.timer->wait_until(lock, changed_, stop, next);
    } else {
      std::string id = std::move(pending_.front());
      pending_.pop_front();
      send(id, lock);
    }
  }
}

// When the next series is to be written again.
TimePoint EventRecorder::queue_due_updates(TimePoint now) {
  TimePoint next = TimePoint::max();
  std::erase_if(unwritten_, [&](const std::string& id) {
    Series& series = series_.at(id);
    const TimePoint due = series.last_written + options_.between_updates;
    if (due > now) next = std::min(next, due);
    if (due <= now) queue(id, series);
    return due <= now;
  });
  return next;
}

// Called and returns with the lock, which is not held while the server is asked.
void EventRecorder::send(const std::string& id, std::unique_lock<std::mutex>& lock) {
  const auto found = series_.find(id);
  if (found == series_.end()) return;  // forgotten meanwhile
  found->second.pending = false;
  found->second.last_written = options_.timer->now();
  unwritten_.erase(id);
  const Series snapshot = found->second;
  sending_ = true;
  lock.unlock();
  const bool delivered = deliver(snapshot);
  lock.lock();
  sending_ = false;
  if (!delivered) options_.observer->event_dropped();
  if (const auto still = series_.find(id); delivered && still != series_.end())
    still->second.created = true;
}

bool EventRecorder::deliver(const Series& series) {
  try {
    Json object = series.object;
    const Json count{{"count", series.count},
                     {"lastObservedTime", format_micro_time(series.last_seen)}};
    if (series.created) {
      const ObjectKey key{object["metadata"]["namespace"], object["metadata"]["name"]};
      const auto patched = client_.patch(kEvents, key, PatchType::kMerge, {{"series", count}},
                                         {.strict = false, .answer = Form::kMetadata});
      if (patched) return true;
      if (!patched.error().not_found()) throw ApiError(patched.error());
      // Events live for an hour on most servers; this one has ended.
    }
    if (series.count > 1) object["series"] = count;
    const auto created =
        client_.create(kEvents, object, {.strict = false, .answer = Form::kMetadata});
    if (!created && !created.error().already_exists()) throw ApiError(created.error());
    return true;
  } catch (const std::exception& error) {
    log::debug("an event was not sent: {}", error.what());
    return false;
  }
}

bool EventRecorder::flush(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  while (!pending_.empty() || sending_) {
    if (options_.timer->now() >= deadline) return false;
    options_.timer->wait_until(lock, changed_, {}, deadline);
  }
  return true;
}

}  // namespace outrigger::kube

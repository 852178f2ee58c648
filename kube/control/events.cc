#include "kube/control/events.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/log.h"
#include "kube/client/retry.h"
#include "kube/control/event_text.h"

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

// An event is in its object's namespace; of what has none, in "default".
std::string namespace_of(const EventSubject& subject) {
  return subject.key.ns.empty() ? "default" : subject.key.ns;
}

}  // namespace

EventRecorder::EventRecorder(Client& client, EventRecorderOptions options)
    : client_(client),
      options_(std::move(options)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

EventRecorder::~EventRecorder() {
  thread_.request_stop();
  changed_.notify_all();
  if (!flush(options_.timer->now() + options_.drain)) drop_pending();
}

void EventRecorder::drop_pending() {
  {
    const std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < pending_.size(); ++i) options_.observer->event_dropped();
    pending_.clear();
  }
  options_.give_up.request_stop();
}

EventRecorder::Digest EventRecorder::digest_of(const Identity& id) {
  const auto& [subject, event] = id;
  std::string text(event.type == EventType::kNormal ? "n" : "w");
  for (const std::string* part : {&subject.uid, &subject.kind, &subject.key.ns, &subject.key.name,
                                  &event.reason, &event.action, &event.note})
    text.append(*part).push_back('\0');
  return std::hash<std::string>()(text);
}

std::string EventRecorder::name_of(const Identity& id, const Series& series) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".%016llx", static_cast<unsigned long long>(series.mark));
  return cut(id.subject.key.name, kLongestName - std::string_view(suffix).size()) + suffix;
}

bool EventRecorder::within_budget(const std::string& uid, TimePoint now) {
  // A full bucket says no more than a new one.
  if (budgets_.size() > options_.most_series)
    std::erase_if(budgets_, [now](const auto& entry) { return entry.second.full(now); });
  return budgets_.try_emplace(uid, options_.budget, now).first->second.try_take(now);
}

void EventRecorder::record(const EventSubject& subject, const Event& event) {
  Identity id{subject, event};
  id.event.note = cut(std::move(id.event.note), kLongestNote);
  const Digest digest = digest_of(id);
  const TimePoint now = options_.timer->now();
  {
    const std::scoped_lock lock(mutex_);
    const auto known = series_.find(digest);
    if (known != series_.end() && now - known->second.last_time < options_.series) {
      repeat(id, digest, known->second, now);
    } else if (pending_.size() >= options_.most_pending || !within_budget(subject.uid, now)) {
      options_.observer->event_dropped();
      return;
    } else {
      // Anew; it may be pending still, with the version that the subject had then.
      const bool pending = known != series_.end() && known->second.pending;
      if (known != series_.end()) series_.erase(known);
      forget_old(now);
      queue({digest, id}, series_[digest] = begin_series(pending, now));
    }
  }
  changed_.notify_all();
}

EventRecorder::Series EventRecorder::begin_series(bool pending, TimePoint now) {
  const auto random = static_cast<uint32_t>(random_chance() * 4294967296.0);
  Series series{.mark = uint64_t{random} << 32 | ++made_, .pending = pending};
  series.first_seen = series.last_seen = wall_time();
  series.last_time = series.last_written = now;
  return series;
}

void EventRecorder::repeat(const Identity& id, const Digest& digest, Series& series,
                           TimePoint now) {
  ++series.count;
  series.last_seen = wall_time();
  series.last_time = now;
  // The second one makes it a series at once; later ones are gathered.
  if (series.count == 2) {
    queue({digest, id}, series);
  } else if (!series.pending) {
    unwritten_.try_emplace(digest, id);
  }
}

void EventRecorder::forget_old(TimePoint now) {
  if (series_.size() < options_.most_series) return;
  std::erase_if(series_, [&](const auto& entry) {
    return !entry.second.pending && !unwritten_.contains(entry.first) &&
           now - entry.second.last_time >= options_.series;
  });
  if (series_.size() < options_.most_series) return;
  // The older half at once: looking for the oldest each time would cost more than what is told.
  std::vector<TimePoint> times;
  for (const auto& [id, series] : series_) times.push_back(series.last_time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(series_, [&](const auto& entry) {
    const bool old = entry.second.last_time <= *middle && !entry.second.pending;
    if (old) unwritten_.erase(entry.first);
    return old;
  });
}

void EventRecorder::queue(Pending pending, Series& series) {
  if (std::exchange(series.pending, true)) return;
  pending_.push_back(std::move(pending));
}

void EventRecorder::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() || !pending_.empty()) {
    const TimePoint next = queue_due_updates(options_.timer->now());
    if (pending_.empty()) {
      changed_.notify_all();  // for flush()
      options_.timer->wait_until(lock, changed_, stop, next);
    } else {
      const Pending next_one = std::move(pending_.front());
      pending_.pop_front();
      send(next_one, lock);
    }
  }
  changed_.notify_all();
}

// When the next series is to be written again.
TimePoint EventRecorder::queue_due_updates(TimePoint now) {
  TimePoint next = TimePoint::max();
  std::erase_if(unwritten_, [&](const auto& entry) {
    Series& series = series_.at(entry.first);
    const TimePoint due = series.last_written + options_.between_updates;
    if (due > now) next = std::min(next, due);
    if (due <= now) queue({entry.first, entry.second}, series);
    return due <= now;
  });
  return next;
}

// Called and returns with the lock, which is not held while the server is asked.
void EventRecorder::send(const Pending& pending, std::unique_lock<std::mutex>& lock) {
  const auto& [digest, id] = pending;
  const auto found = series_.find(digest);
  if (found == series_.end()) return;  // forgotten meanwhile
  found->second.pending = false;
  found->second.last_written = options_.timer->now();
  unwritten_.erase(digest);
  const Series snapshot = found->second;
  sending_ = true;
  lock.unlock();
  const bool delivered = deliver(id, snapshot);
  lock.lock();
  sending_ = false;
  if (!delivered) options_.observer->event_dropped();
  if (const auto still = series_.find(digest); delivered && still != series_.end())
    still->second.created = true;
}

bool EventRecorder::deliver(const Identity& id, const Series& series) {
  try {
    const Json count{{"count", series.count},
                     {"lastObservedTime", format_micro_time(series.last_seen)}};
    if (series.created) {
      const ObjectKey key{namespace_of(id.subject), name_of(id, series)};
      const auto patched = client_.patch(kEvents, key, PatchType::kMerge, {{"series", count}},
                                         {.strict = false, .answer = Form::kNothing});
      if (patched) return true;
      if (!patched.error().not_found()) throw ApiError(patched.error());
      // Events live for an hour on most servers; this one has ended.
    }
    EventTags tags{name_of(id, series), namespace_of(id.subject), series.first_seen, options_};
    if (series.count > 1) tags.series = to_text(count);
    const auto created = client_.create(kEvents, tags.ns, event_text(id.subject, id.event, tags),
                                        {.strict = false, .answer = Form::kNothing});
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

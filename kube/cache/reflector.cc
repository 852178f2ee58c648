#include "kube/cache/reflector.h"

#include <algorithm>
#include <exception>

#include "common/error.h"
#include "common/log.h"

namespace outrigger::kube {
namespace {

// A watch that lived so long has shown that the server is well.
constexpr Duration kHealthy = std::chrono::seconds(1);
// A server that asks for more, by mistake, say, is asked all the same.
constexpr std::chrono::seconds kLongestWait{300};

}  // namespace

Reflector::Reflector(Client& client, ReflectorOptions options)
    : client_(client), options_(std::move(options)) {}

void Reflector::run(ReflectorSink& sink, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      if (const auto refusal = list(sink)) {
        pause("no list", refusal, stop);
      } else {
        follow(sink, stop);
      }
    } catch (const Cancelled&) {
      // Ours, or the client's own stop: either way the loop looks again, and must not spin.
      if (!stop.stop_requested()) pause("the client was stopped", std::nullopt, stop);
    } catch (const IoError& error) {
      pause(error.what(), std::nullopt, stop);
    } catch (const std::exception& error) {
      // The sink's: an object that its user cannot read must not end the cache of all others.
      log::error("{}: {}", options_.resource.plural, error.what());
      pause(error.what(), std::nullopt, stop);
    }
  }
}

std::optional<ApiError> Reflector::list(ReflectorSink& sink) {
  const TimePoint since = client_.options().timer->now();
  size_t items = 0;
  ListReceiver receiver;
  receiver.item = [&](Json object) {
    ++items;
    sink.list_item(std::move(object));
  };
  receiver.restart = [&] {
    items = 0;
    sink.list_begins();
  };
  sink.list_begins();
  auto version = client_.list(options_.resource, options_.selection, receiver, options_.dropped,
                              options_.chunk, options_.kept);
  if (!version) {
    const bool expected =
        options_.may_be_absent && (version.error().not_found() || version.error().forbidden());
    if (expected) {
      log::debug("{}", version.error().what());
    } else {
      log::warning("{}", version.error().what());
    }
    return version.error();
  }
  version_ = std::move(version).take();
  sink.list_ends();
  client_.options().observer->listed(options_.resource.plural, items,
                                     client_.options().timer->now() - since);
  return std::nullopt;
}

WatchEnd Reflector::watch_once(ReflectorSink& sink, const std::stop_token& stop) {
  WatchOptions options{.resource = options_.resource, .selection = options_.selection};
  options.resource_version = version_;
  options.shortest = options_.shortest_watch;
  options.longest = options_.longest_watch;
  options.silence = options_.silence;
  options.dropped = options_.dropped;
  options.kept = options_.kept;
  options.gather = options_.gather;
  options.known = options_.known;
  client_.options().observer->watched(options_.resource.plural);
  return watch(
      client_, options, [&sink](Change change) { sink.change(std::move(change)); }, stop);
}

// Returns when only a list can go on.
void Reflector::follow(ReflectorSink& sink, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const TimePoint since = client_.options().timer->now();
    const std::string before = version_;
    const WatchEnd end = watch_once(sink, stop);
    version_ = end.resource_version;
    const bool alive = version_ != before || client_.options().timer->now() - since >= kHealthy;
    if (alive) failures_ = 0;
    switch (end.why) {
      case WatchEnd::Why::kEnded:
        if (!alive)
          pause(end.reason.empty() ? "a watch ended at once" : end.reason, end.error, stop);
        break;
      case WatchEnd::Why::kExpired:
        log::info("{} are listed again: {}", options_.resource.plural, end.reason);
        if (!alive) pause(end.reason, end.error, stop);
        return;
      case WatchEnd::Why::kRefused:
        pause(end.reason, end.error, stop);
        // 429 and 5xx are about load; anything else may be about what we ask for.
        if (!end.error->too_many_requests() && end.error->code() / 100 != 5) return;
        break;
    }
  }
}

void Reflector::pause(const std::string& why, const std::optional<ApiError>& refusal,
                      const std::stop_token& stop) {
  ++failures_;
  Duration wait = options_.back_off.after(failures_, random_chance());
  const auto wanted = refusal ? refusal->retry_after() : std::nullopt;
  if (wanted) wait = std::max<Duration>(wait, std::min(*wanted, kLongestWait));
  log::debug("{}: {}; again in {} ms", options_.resource.plural, why,
             std::chrono::duration_cast<std::chrono::milliseconds>(wait).count());
  client_.options().timer->sleep(wait, stop);
}

}  // namespace outrigger::kube

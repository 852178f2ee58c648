#include "kube/control/leader_election.h"

#include <thread>

#include "common/error.h"
#include "common/log.h"

namespace outrigger::kube {
namespace {

ClientOptions client_options(const LeaderElectionOptions& from) {
  ClientOptions options;
  options.user_agent = from.user_agent;
  options.timeout = from.renew_deadline / 2;
  options.in_flight = 1;
  options.retry.tries = 1;  // the election has its own rhythm
  options.timer = from.timer;
  options.observer = from.observer;
  return options;
}

void check(const LeaderElectionOptions& options) {
  if (options.identity.empty() || options.lease.name.empty() || options.lease.ns.empty())
    throw InvalidInput("leader election: lease name, namespace and identity are needed");
  if (options.lease_duration <= options.renew_deadline ||
      options.renew_deadline <= options.retry_period)
    throw InvalidInput("leader election: lease duration > renew deadline > retry period must hold");
}

// None controls it or waits for it to go: that would want further rights.
void set_owners(Json& lease, const std::vector<OwnerReference>& owners) {
  for (const OwnerReference& owner : owners) {
    lease["metadata"]["ownerReferences"].push_back({{"apiVersion", owner.api_version},
                                                    {"kind", owner.kind},
                                                    {"name", owner.name},
                                                    {"uid", owner.uid}});
  }
}

}  // namespace

LeaderElection::LeaderElection(const Config& config, LeaderElectionOptions options)
    : options_((check(options), std::move(options))),
      config_(config),
      client_(config, client_options(options_)) {}

LeaderElection::Outcome LeaderElection::run(const std::stop_token& stop,
                                            const Callbacks& callbacks) {
  taken_away_ = false;
  while (try_to_hold(client_, callbacks) != Step::kHeld) {
    // A fifth of jitter: processes that started together do not stay in step.
    const auto wait =
        std::chrono::duration_cast<Duration>(options_.retry_period * (1 + random_chance() / 5));
    if (!options_.timer->sleep(wait, stop)) return Outcome::kStopped;
  }
  log::info("leading: {} holds lease {}", options_.identity, options_.lease.text());
  options_.observer->leader_changed(options_.lease.name, true);
  Outcome outcome;
  {
    std::stop_source renewals;
    Client renewer(config_, client_options(options_), renewals.get_token());
    std::jthread leading(callbacks.lead);
    outcome = keep(stop, callbacks, {renewer, renewals, leading});
  }
  if (outcome == Outcome::kStopped && options_.release_on_stop) release();
  return outcome;
}

// Until the lease is no longer wanted or ours. A thread renews, this one looks at the time: a
// request that hangs must hide neither that the deadline has come nor keep the work from ending.
LeaderElection::Outcome LeaderElection::keep(const std::stop_token& stop,
                                             const Callbacks& callbacks, const Reign& reign) {
  const std::jthread renewing(
      [&](const std::stop_token& ended) { renew(ended, callbacks, reign); });
  const bool lost = !stays_ours(stop);
  reign.leading.request_stop();
  reign.renewals.request_stop();
  options_.observer->leader_changed(options_.lease.name, false);
  if (!lost) return Outcome::kStopped;
  log::error("lease {} is lost", options_.lease.text());
  if (callbacks.lost) callbacks.lost();
  return Outcome::kLost;
}

void LeaderElection::renew(const std::stop_token& ended, const Callbacks& callbacks,
                           const Reign& reign) {
  bool ours = true;
  try {
    while (ours && options_.timer->sleep(options_.retry_period, ended))
      ours = try_to_hold(reign.renewer, callbacks) != Step::kNotHeld;
  } catch (const Cancelled&) {  // its reign is over
  }
  {
    const std::scoped_lock lock(mutex_);
    taken_away_ = !ours;
  }
  renewal_.notify_all();
}

bool LeaderElection::stays_ours(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const TimePoint deadline = renewed_ + options_.renew_deadline;
    if (taken_away_ || options_.timer->now() >= deadline) return false;
    options_.timer->wait_until(lock, renewal_, stop, deadline);
  }
  return true;
}

bool LeaderElection::expired(TimePoint now) const {
  return seen_.holder.empty() || now - changed_ >= seen_.duration;
}

void LeaderElection::observe(const Json& lease, const Callbacks& callbacks) {
  LeaseRecord record = read_lease(lease);
  const std::string version = resource_version_of(lease);
  if (record == seen_ && version == seen_version_) return;
  const bool other =
      record.holder != seen_.holder && !record.holder.empty() && record.holder != options_.identity;
  seen_ = std::move(record);
  seen_version_ = version;
  changed_ = options_.timer->now();
  if (other && callbacks.observed) callbacks.observed(seen_.holder);
}

LeaderElection::Step LeaderElection::try_to_hold(Client& client, const Callbacks& callbacks) {
  // Before anything is sent: others count from when they see it, which is later.
  const TimePoint now = options_.timer->now();
  try {
    Result<Json> current = client.get(kLeases, options_.lease);
    if (!current && !current.error().not_found()) {
      log::warning("{}", current.error().what());
      return Step::kFailed;
    }
    if (!current) return write(client, Json::object(), false, now);
    Json lease = std::move(current).take();
    observe(lease, callbacks);
    if (seen_.holder != options_.identity && !expired(options_.timer->now())) return Step::kNotHeld;
    return write(client, std::move(lease), true, now);
  } catch (const IoError& error) {
    log::warning("lease {}: {}", options_.lease.text(), error.what());
    return Step::kFailed;
  }
}

LeaderElection::Step LeaderElection::write(Client& client, Json lease, bool exists, TimePoint now) {
  const LeaseRecord record =
      claimed(read_lease(lease), {options_.identity, options_.lease_duration, wall_time()});
  write_lease(lease, options_.lease, record);
  // Only then: to change owners needs the right to delete in some clusters.
  if (!exists && options_.owners) set_owners(lease, options_.owners());
  // An update carries the version that was read: of two who try, one gets 409.
  const Result<Json> written =
      exists ? client.update(kLeases, lease) : client.create(kLeases, lease);
  if (!written) {
    log::debug("{}", written.error().what());
    return Step::kFailed;
  }
  seen_ = record;
  seen_version_ = resource_version_of(*written);
  changed_ = options_.timer->now();
  const std::scoped_lock lock(mutex_);
  renewed_ = now;
  return Step::kHeld;
}

void LeaderElection::release() {
  try {
    // A renewal that was broken off may still have been written between our reading and writing.
    for (int attempts = 2; attempts > 0; --attempts) {
      Result<Json> current = client_.get(kLeases, options_.lease);
      if (!current) return;
      Json lease = std::move(current).take();
      const LeaseRecord record = read_lease(lease);
      if (record.holder != options_.identity) return;
      write_lease(lease, options_.lease, released(record, wall_time()));
      const Result<Json> written = client_.update(kLeases, lease);
      if (written) return;
      if (attempts > 1 && written.error().conflict()) continue;
      log::warning("lease {} was not given back: {}", options_.lease.text(),
                   written.error().what());
      return;
    }
  } catch (const IoError& error) {
    log::warning("lease {} was not given back: {}", options_.lease.text(), error.what());
  }
}

}  // namespace outrigger::kube

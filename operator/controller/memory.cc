#include "operator/controller/memory.h"

#include <algorithm>
#include <utility>

#include "kube/object/object.h"
#include "operator/read_pod.h"

namespace outrigger::controller {
namespace {

// A cache that lags further behind than this has a broken watch, which may last for minutes.
constexpr std::chrono::seconds kLongestLag{60};
constexpr std::chrono::seconds kRefusalLife{60};
constexpr std::chrono::seconds kBetweenNumbers{1};

}  // namespace

kube::CachedPtr<JobRecord> JobMemory::own_write() const {
  const std::scoped_lock lock(mutex_);
  return job_;
}

void JobMemory::wrote_job(kube::CachedPtr<JobRecord> job, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  job_ = std::move(job);
  wrote_ = now;
}

void JobMemory::found_job(kube::CachedPtr<JobRecord> job) {
  const std::scoped_lock lock(mutex_);
  job_ = std::move(job);
}

kube::CachedPtr<JobRecord> JobMemory::own_write(const std::string& version) const {
  const std::scoped_lock lock(mutex_);
  return job_ && job_->resource_version == version ? job_ : nullptr;
}

bool JobMemory::cache_shows(const std::string& version) {
  const std::scoped_lock lock(mutex_);
  if (!job_ || kube::is_older_version(version, job_->resource_version)) return false;
  const bool own = job_->resource_version == version;
  job_.reset();
  return own;
}

Duration JobMemory::may_wait(TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  if (!wrote_) return Duration::zero();
  return std::max(Duration::zero(), *wrote_ + kBetweenNumbers - now);
}

std::vector<PodName> JobMemory::unseen_pods(const std::vector<kube::CachedPtr<PodRecord>>& cached,
                                            TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  std::vector<PodName> unseen;
  for (const auto& item : pods_) {
    const Written& written = item.second;
    const bool shown = std::any_of(cached.begin(), cached.end(), [&](const auto& pod) {
      return pod->uid == item.first &&
             !kube::is_older_version(pod->resource_version, written.version);
    });
    if (!shown && now - written.at > kLongestLag) unseen.push_back({written.pod.name, item.first});
  }
  return unseen;
}

std::vector<Pod> JobMemory::overlay(const std::vector<kube::CachedPtr<PodRecord>>& cached,
                                    TimePoint now) {
  const std::scoped_lock lock(mutex_);
  std::vector<Pod> pods;
  for (const auto& pod : cached) {
    const auto written = pods_.find(pod->uid);
    if (written == pods_.end()) {
      pods.push_back(pod_of(*pod));
    } else if (kube::is_older_version(pod->resource_version, written->second.version)) {
      pods.push_back(written->second.pod);
    } else {
      pods_.erase(written);
      pods.push_back(pod_of(*pod));
    }
  }
  std::erase_if(gone_, [&](const auto& item) { return now - item.second > kLongestLag; });
  for (const auto& written : pods_) {
    const bool shown = std::any_of(cached.begin(), cached.end(),
                                   [&](const auto& pod) { return pod->uid == written.first; });
    if (!shown) pods.push_back(written.second.pod);
  }
  return pods;
}

void JobMemory::wrote_pod(const Json& object, TimePoint now) {
  const auto pod = read_pod(object);
  if (!pod) return;
  const std::scoped_lock lock(mutex_);
  if (gone_.contains(pod->uid)) return;
  pods_[pod->uid] = {kube::resource_version_of(object), *pod, now};
}

void JobMemory::found_pod(const Json& object, TimePoint now) {
  {
    const std::scoped_lock lock(mutex_);
    gone_.erase(kube::uid_of(object));
  }
  wrote_pod(object, now);
}

void JobMemory::pod_is_gone(const std::string& uid, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  pods_.erase(uid);
  gone_[uid] = now;
}

bool JobMemory::awaits_caches() const {
  const std::scoped_lock lock(mutex_);
  return !pods_.empty() || !children_.empty();
}

void JobMemory::wrote_child(const std::string& child, int number, Write write, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  children_[child] = {number, write, now};
}

std::optional<int> JobMemory::child(const std::string& child, std::optional<int> cached,
                                    TimePoint now) {
  const std::scoped_lock lock(mutex_);
  const auto written = children_.find(child);
  if (written == children_.end()) return cached;
  const auto [number, write, at] = written->second;
  const bool older = !cached || (write == Write::kChanged && cached != number);
  if (older && now - at <= kLongestLag) return number;
  children_.erase(written);
  return cached;
}

bool JobMemory::is_own_write(const std::string& child, int number) const {
  const std::scoped_lock lock(mutex_);
  const auto written = children_.find(child);
  return written != children_.end() && written->second.number == number;
}

void JobMemory::wrote_secret(int attempt, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  secret_ = {attempt, now};
}

std::optional<Duration> JobMemory::secret_age(int attempt, TimePoint now) const {
  const std::scoped_lock lock(mutex_);
  if (!secret_ || secret_->attempt < attempt) return std::nullopt;
  return now - secret_->at;
}

bool JobMemory::had_secret() const {
  const std::scoped_lock lock(mutex_);
  return secret_.has_value();
}

void JobMemory::child_is_gone(const GoneChild& gone) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(refusals_, [&](const Refusal& one) { return one.object == gone.child; });
  dropped_.erase(gone.uid);
  if (gone.job_uid == uid_) children_.erase(gone.child);
}

void JobMemory::dropped(const std::string& child, const std::string& uid) {
  const std::scoped_lock lock(mutex_);
  dropped_.insert(uid);
  children_.erase(child);
}

std::set<std::string> JobMemory::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

std::optional<Placement> JobMemory::flavor(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = flavors_.find(name);
  return found == flavors_.end() ? std::nullopt : std::optional(found->second);
}

void JobMemory::read_flavor(const std::string& name, const Placement& flavor) {
  const std::scoped_lock lock(mutex_);
  flavors_[name] = flavor;
}

void JobMemory::forget_flavors() {
  const std::scoped_lock lock(mutex_);
  flavors_.clear();
}

void JobMemory::refused(const Refusal& refusal) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(refusals_, [&](const Refusal& one) { return one.object == refusal.object; });
  refusals_.push_back(refusal);
}

void JobMemory::created(const std::string& object) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(refusals_, [&](const Refusal& one) { return one.object == object; });
}

std::vector<Refusal> JobMemory::refusals(api::Time now) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(refusals_, [&](const Refusal& one) { return now - one.at > kRefusalLife; });
  return refusals_;
}

void JobMemory::reported(const ServerReport& report, api::Time at) {
  const std::scoped_lock lock(mutex_);
  report_ = report;
  if (demand_window_ == demand_window_.zero()) return;
  WorkerDemand demand{at, report.desired_workers, std::nullopt};
  if (report.split) demand.stall_percent = report.split->stall_percent;
  if (!demand_.empty() && demand_.back().at == at) demand_.pop_back();
  demand_.push_back(demand);
}

std::vector<WorkerDemand> JobMemory::demand(std::chrono::seconds window) {
  // The window is full once something older than it is known.
  constexpr std::chrono::seconds kMore{60};
  const std::scoped_lock lock(mutex_);
  demand_window_ = window;
  if (window == window.zero()) demand_.clear();
  if (demand_.empty()) return {};
  const api::Time first = demand_.back().at - window - kMore;
  std::erase_if(demand_, [&](const WorkerDemand& one) { return one.at < first; });
  return demand_;
}

std::optional<ServerReport> JobMemory::report_of(const std::string& server) {
  const std::scoped_lock lock(mutex_);
  if (server != reporter_) report_.reset();
  reporter_ = server;
  return report_;
}

bool JobMemory::first_refusal_of(int64_t generation) {
  const std::scoped_lock lock(mutex_);
  if (refusal_told_ == generation) return false;
  refusal_told_ = generation;
  return true;
}

std::shared_ptr<JobMemory> Memory::of(const std::string& job_key, const std::string& uid) {
  const std::scoped_lock lock(mutex_);
  auto& job = jobs_[job_key];
  if (!job || job->uid() != uid) job = std::make_shared<JobMemory>(uid);
  return job;
}

std::shared_ptr<JobMemory> Memory::find(const std::string& job_key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = jobs_.find(job_key);
  return found == jobs_.end() ? nullptr : found->second;
}

void Memory::forget(const std::string& job_key) {
  const std::scoped_lock lock(mutex_);
  jobs_.erase(job_key);
}

}  // namespace outrigger::controller

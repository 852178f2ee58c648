#pragma once

#include <condition_variable>
#include <thread>
#include <unordered_set>

#include "kube/cache/reflector.h"
#include "kube/cache/store.h"
#include "kube/cache/tombstones.h"
#include "kube/object/object.h"

namespace outrigger::kube {

template <typename T>
struct InformerOptions {
  ReflectorOptions source;
  /// What is kept of an object; everything else is forgotten before it reaches the cache.
  std::function<T(Json object)> keep;
  /// The same where something was kept of an earlier version of the object, which can spare work;
  /// absent: keep() again.
  std::function<T(Json object, const T& before)> keep_again = {};
  /// The object that was modified in that version, if its user has it already (from its own write,
  /// say): it goes into the cache as it is, and what a watch tells of it is not read. Absent:
  /// nobody has it.
  std::function<CachedPtr<T>(const ObjectKey& key, const std::string& version)> known = {};
  /// By name; see Store::by_index.
  std::map<std::string, Indexer<T>> indexers = {};
};

/// A cache that follows the API server, and tells its handlers what changed.
///
/// Handlers are called one at a time, in the order in which they were added, with the changes of an
/// object in their order; the cache already shows the change. They must be quick: put a key into a
/// queue. An object that was deleted and made anew between two looks is told as deleted, then
/// added; one that vanished while no watch ran is told as deleted with what was last known of it.
/// What comes twice or late is not told. Readers of the store may be on any thread.
template <typename T>
class Informer {
 public:
  /// Before is null for what is new, after for what is gone; both are the same in a resync.
  using Handler = std::function<void(const CachedPtr<T>& before, const CachedPtr<T>& after)>;

  Informer(Client& client, InformerOptions<T> options)
      : reflector_(client, source_of(options)),
        keep_(std::move(options.keep)),
        keep_again_(std::move(options.keep_again)),
        store_(std::move(options.indexers)),
        sink_(*this) {}
  ~Informer() { stop(); }
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  /// Before start() only.
  void on_change(Handler handler) { handlers_.push_back(std::move(handler)); }

  void start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { reflector_.run(sink_, stop); });
  }
  /// Ends the watch and waits for a handler that runs. Not from a handler. Safe to repeat.
  void stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }

  /// Whether the first list is in the cache and was told to all handlers.
  bool has_synced() const {
    const std::scoped_lock lock(synced_mutex_);
    return synced_;
  }
  /// False if `stop` was requested before that.
  bool wait_for_sync(const std::stop_token& stop) {
    std::unique_lock lock(synced_mutex_);
    return synced_changed_.wait(lock, stop, [this] { return synced_; });
  }

  /// Tells every object in the cache again, as before and after. Changes wait meanwhile: none is
  /// lost, and none is told out of its order. From any thread but a handler's.
  void resync() {
    const std::scoped_lock lock(telling_);
    for (const auto& object : store_.list()) tell(object, object);
  }

  const Store<T>& store() const { return store_; }

 private:
  static ReflectorOptions source_of(InformerOptions<T>& options) {
    if (options.known) {
      options.source.known = [known = std::move(options.known)](const Json& head) {
        return known(key_of(head), resource_version_of(head));
      };
    }
    return std::move(options.source);
  }

  class Sink final : public ReflectorSink {
   public:
    explicit Sink(Informer& owner) : owner_(owner) {}
    void list_begins() override { listed_.clear(); }
    void list_item(Json object) override {
      const ObjectKey key = key_of(object);
      listed_.insert(key.text());
      owner_.put(std::move(object));
    }
    void list_ends() override {
      owner_.remove_all_but(listed_);
      listed_.clear();
      owner_.set_synced();
    }
    void change(Change change) override { owner_.apply(std::move(change)); }

   private:
    Informer& owner_;
    std::unordered_set<std::string> listed_;
  };

  void tell(const CachedPtr<T>& before, const CachedPtr<T>& after) {
    for (const Handler& handler : handlers_) handler(before, after);
  }

  // The list is the truth, whatever versions say: a server restored from a backup counts anew.
  void put(Json object) {
    const std::scoped_lock lock(telling_);
    auto made = std::make_shared<Cached<T>>();
    made->key = key_of(object);
    made->uid = uid_of(object);
    made->resource_version = resource_version_of(object);
    const CachedPtr<T> before = store_.get(made->key);
    const bool same_object = before && before->uid == made->uid;
    if (same_object && before->resource_version == made->resource_version) return;
    made->value = same_object && keep_again_ ? keep_again_(std::move(object), before->value)
                                             : keep_(std::move(object));
    replace(before, std::move(made));
  }

  void put_known(const CachedPtr<T>& known) {
    const std::scoped_lock lock(telling_);
    replace(store_.get(known->key), known);
  }

  void replace(const CachedPtr<T>& before, const CachedPtr<T>& after) {
    const bool same_object = before && before->uid == after->uid;
    if (same_object && before->resource_version == after->resource_version) return;
    if (before && !same_object) {
      store_.remove(after->key);
      tell(before, nullptr);
    }
    store_.put(after);
    tell(same_object ? before : nullptr, after);
  }

  void remove(const ObjectKey& key) {
    const std::scoped_lock lock(telling_);
    if (const CachedPtr<T> before = store_.remove(key)) tell(before, nullptr);
  }

  void remove_all_but(const std::unordered_set<std::string>& keys) {
    for (const auto& object : store_.list()) {
      if (!keys.contains(object->key.text())) remove(object->key);
    }
    tombstones_.clear();
  }

  void apply(Change change) {
    const ObjectKey key = key_of(change.object);
    const std::string version = resource_version_of(change.object);
    const CachedPtr<T> known = store_.get(key);
    if (known ? is_older_version(version, known->resource_version)
              : tombstones_.is_older(key, version))
      return;
    if (change.type != ChangeType::kDeleted) {
      if (change.known) return put_known(std::static_pointer_cast<const Cached<T>>(change.known));
      put(std::move(change.object));
    } else if (known) {
      remove(key);
      tombstones_.add(key, version);
    }
  }

  void set_synced() {
    {
      const std::scoped_lock lock(synced_mutex_);
      synced_ = true;
    }
    synced_changed_.notify_all();
  }

  Reflector reflector_;
  const std::function<T(Json)> keep_;
  const std::function<T(Json, const T&)> keep_again_;
  Store<T> store_;
  std::vector<Handler> handlers_;
  std::mutex telling_;  // held while the cache changes and handlers are told
  Tombstones tombstones_;
  Sink sink_;
  mutable std::mutex synced_mutex_;
  std::condition_variable_any synced_changed_;
  bool synced_ = false;
  std::jthread thread_;
};

}  // namespace outrigger::kube

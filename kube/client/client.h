#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/api_error.h"
#include "kube/client/config.h"
#include "kube/client/options.h"
#include "kube/object/json.h"
#include "kube/object/resource.h"

namespace outrigger::kube {

/// Which objects of a resource, and what of them.
struct Selection {
  std::string ns = {};      // empty: all namespaces
  std::string labels = {};  // label selector: "app=faces,tier!=test"
  std::string fields = {};  // field selector: "spec.nodeName=one"
  Form form = Form::kWhole;
};

struct WriteOptions {
  /// The server refuses unknown and repeated fields instead of dropping them in silence.
  bool strict = true;
  bool dry_run = false;
  /// Empty: the server takes the user agent's name. Required for an apply.
  std::string field_manager = {};
  /// An apply takes over fields that others own instead of a 409.
  bool force = false;
  /// Of the object that comes back. With kNothing the result is null.
  Form answer = Form::kWhole;
  /// What of it is read, beside what ClientOptions::dropped leaves out; must outlive the call.
  std::span<const KeptFields> kept = {};
};

enum class PatchType { kMerge, kJson, kApply };
enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  /// Only the object with this UID, not a same-named successor: else 409.
  std::string uid = {};
  /// Only in this version: else 409.
  std::string resource_version = {};
  Propagation propagation = Propagation::kBackground;
  std::optional<std::chrono::seconds> grace_period = std::nullopt;
};

/// Takes a list in chunks. `restart`: forget all items so far, the list begins anew.
struct ListReceiver {
  std::function<void(Json item)> item;
  std::function<void()> restart = [] {};
};

/// Talks to one API server about any resource. Thread-safe.
///
/// Answers of the server that are no success come back as ApiError in the result; before that, 429
/// (any verb) and 5xx (verbs that may be repeated) were tried again as RetryPolicy says. No answer
/// at all, after the same tries, is an IoError. Once `stop` is requested, requests under way end
/// with Cancelled.
class Client {
 public:
  /// Reads the config's files; does not connect.
  explicit Client(const Config& config, ClientOptions options = {}, std::stop_token stop = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// An object, or its `subresource` ("status", "scale").
  Result<Json> get(const Resource& resource, const ObjectKey& key,
                   const std::string& subresource = "");

  /// All objects selected, `chunk` at a time; returns the list's resourceVersion, from which a
  /// watch goes on. Where the chunks' snapshot is lost on the way (410), begins again with one
  /// whole answer; where an answer would be larger than ClientOptions::max_body, goes on with a
  /// quarter of the chunk. Items carry apiVersion and kind.
  Result<std::string> list(const Resource& resource, const Selection& selection,
                           const ListReceiver& receiver,
                           const std::vector<DroppedField>& dropped = {}, int chunk = 500,
                           std::span<const KeptFields> kept = {});
  Result<std::vector<Json>> list(const Resource& resource, const Selection& selection = {});

  /// Each returns the object as stored. `object` names itself; an update with a resourceVersion is
  /// refused with 409 unless that is still the stored one.
  Result<Json> create(const Resource& resource, const Json& object, const WriteOptions& = {});
  /// The same of an object of that namespace, as text.
  Result<Json> create(const Resource& resource, const std::string& ns, std::string object,
                      const WriteOptions& options);
  Result<Json> update(const Resource& resource, const Json& object, const WriteOptions& = {},
                      const std::string& subresource = "");
  Result<Json> update_status(const Resource& resource, const Json& object,
                             const WriteOptions& = {});
  /// The same of the object with that key, as text.
  Result<Json> update_status(const Resource& resource, const ObjectKey& key, std::string object,
                             const WriteOptions& = {});
  Result<Json> patch(const Resource& resource, const ObjectKey& key, PatchType type,
                     const Json& patch, const WriteOptions& = {},
                     const std::string& subresource = "");
  /// Writes spec.replicas through the scale subresource; returns the Scale. With a
  /// `resource_version`, refused with 409 unless that is still the stored one.
  Result<Json> scale(const Resource& resource, const ObjectKey& key, int replicas,
                     const std::string& resource_version = "");

  /// Returns the object where it goes on living for a while, else a Status.
  Result<Json> remove(const Resource& resource, const ObjectKey& key, const DeleteOptions& = {});

  /// Streams a GET of `target` (path and query), once, to its end; an ApiError where the answer is
  /// other than 2xx, IoError where it breaks off, Cancelled once `stop` is requested.
  using Receiver = std::function<bool(std::string_view piece)>;
  struct StreamLimits {
    std::chrono::milliseconds silence;
    std::chrono::milliseconds whole;
    Form form = Form::kWhole;
    std::chrono::milliseconds gather{0};  // as http::StreamLimits
  };
  Result<std::monostate> stream(const std::string& target, const StreamLimits& limits,
                                const Receiver& receiver, const std::stop_token& stop);

  const ClientOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrigger::kube

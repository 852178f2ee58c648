#include "kube/client/client.h"

#include <algorithm>

#include "common/error.h"
#include "common/log.h"
#include "http/client.h"
#include "http/message.h"
#include "kube/client/sender.h"
#include "kube/object/object.h"

namespace outrigger::kube {
namespace {

constexpr const char* kJsonType = "application/json";
// Of a list that was asked for as a whole.
constexpr int kChunk = 500;

// Builds "a=b&c=d"; what is empty is left out.
class Query {
 public:
  void add(const char* name, const std::string& value) {
    if (value.empty()) return;
    text_ += text_.empty() ? '?' : '&';
    text_ += name + ("=" + http::percent_encode(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string item_path(const Resource& resource, const ObjectKey& key,
                      const std::string& subresource) {
  if (key.name.empty())
    throw InvalidInput("an object of " + resource.plural + " without a name was asked for");
  return resource.path(key.ns) + "/" + http::percent_encode(key.name) +
         (subresource.empty() ? "" : "/" + subresource);
}

std::string query_of(const WriteOptions& options) {
  Query query;
  if (options.strict) query.add("fieldValidation", "Strict");
  if (options.dry_run) query.add("dryRun", "All");
  query.add("fieldManager", options.field_manager);
  if (options.force) query.add("force", "true");
  return query.text();
}

const char* content_type_of(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  impossible("a patch type");
}

const char* text_of(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  impossible("a propagation policy");
}

std::string body_of(const DeleteOptions& options) {
  Json body{{"kind", "DeleteOptions"},
            {"apiVersion", "v1"},
            {"propagationPolicy", text_of(options.propagation)}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty())
    body["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.grace_period) body["gracePeriodSeconds"] = options.grace_period->count();
  return to_text(body);
}

std::string what(const Sender::Message& message) {
  return message.request.method + " " + message.request.target;
}

}  // namespace

struct Client::Impl {
  Sender sender;

  Result<Json> ask(const Sender::Message& message, std::span<const KeptFields> kept = {}) {
    return ask(message, sender.options().dropped, kept);
  }
  Result<Json> ask(const Sender::Message& message, const std::vector<DroppedField>& dropped,
                   std::span<const KeptFields> kept) {
    const http::Response response = sender.send(message);
    if (response.status / 100 != 2) return ApiError::from(what(message), response);
    // Whatever else it may be is no API server's, and fails as text that nobody can read.
    if (message.form == Form::kNothing && response.body.starts_with('{')) return Json();
    Json answer = parse_json(response.body, dropped, kept);
    return message.form == Form::kNothing ? Json() : std::move(answer);
  }
  struct Listing {
    const Resource& resource;
    const Selection& selection;
    const std::vector<DroppedField>& dropped;
    std::span<const KeptFields> kept;
  };
  // A page of a list. Where so many objects are too large for an answer, `chunk` becomes what is
  // not: a continue token is good for any number.
  Result<Json> page(const Listing& listing, const std::string& next, int& chunk) {
    const auto& [resource, selection, dropped, kept] = listing;
    while (true) {
      Query query;
      query.add("labelSelector", selection.labels);
      query.add("fieldSelector", selection.fields);
      if (chunk > 0) query.add("limit", std::to_string(chunk));
      query.add("continue", next);
      const std::string target = resource.path(selection.ns) + query.text();
      try {
        return ask({"LIST", {"GET", target}, true, selection.form}, dropped, kept);
      } catch (const http::TooLarge& error) {
        if (chunk == 1) throw;
        chunk = std::max(1, (chunk > 0 ? chunk : kChunk) / 4);
        log::info("{}; {} at a time are asked for", error.what(), chunk);
      }
    }
  }
  Result<Json> put(const std::string& path, std::string object, const WriteOptions& options) {
    return ask({"PUT",
                {"PUT", path + query_of(options), {{"Content-Type", kJsonType}}, std::move(object)},
                true,
                options.answer},
               options.kept);
  }
};

Client::Client(const Config& config, ClientOptions options, std::stop_token stop)
    : impl_(new Impl{Sender(config, std::move(options), std::move(stop))}) {}

Client::~Client() = default;

const ClientOptions& Client::options() const { return impl_->sender.options(); }

Result<Json> Client::get(const Resource& resource, const ObjectKey& key,
                         const std::string& subresource) {
  return impl_->ask({"GET", {"GET", item_path(resource, key, subresource)}, true});
}

Result<std::string> Client::list(const Resource& resource, const Selection& selection,
                                 const ListReceiver& receiver,
                                 const std::vector<DroppedField>& dropped, int chunk,
                                 std::span<const KeptFields> kept) {
  std::string next;
  bool shrunk = false;
  do {
    const int wanted = chunk;
    Result<Json> page = impl_->page(
        {.resource = resource, .selection = selection, .dropped = dropped, .kept = kept}, next,
        chunk);
    shrunk = shrunk || chunk != wanted;
    if (!page && page.error().expired() && !next.empty() && !shrunk) {
      receiver.restart();
      next.clear();
      chunk = 0;  // a list this slow would lose its snapshot again
      continue;
    }
    if (!page) return page.error();
    Json list = std::move(page).take();
    for (Json& item : list["items"]) {
      item["apiVersion"] = resource.api_version();
      item["kind"] = resource.kind;
      receiver.item(std::move(item));
    }
    const Json metadata = list.value("metadata", Json::object());
    next = metadata.value("continue", "");
    if (next.empty()) return metadata.value("resourceVersion", "");
  } while (true);
}

Result<std::vector<Json>> Client::list(const Resource& resource, const Selection& selection) {
  std::vector<Json> items;
  ListReceiver receiver;
  receiver.item = [&items](Json item) { items.push_back(std::move(item)); };
  receiver.restart = [&items] { items.clear(); };
  const auto version = list(resource, selection, receiver);
  if (!version) return version.error();
  return items;
}

Result<Json> Client::create(const Resource& resource, const Json& object,
                            const WriteOptions& options) {
  return create(resource, namespace_of(object), to_text(object), options);
}

Result<Json> Client::create(const Resource& resource, const std::string& ns, std::string object,
                            const WriteOptions& options) {
  return impl_->ask({"POST",
                     {"POST",
                      resource.path(ns) + query_of(options),
                      {{"Content-Type", kJsonType}},
                      std::move(object)},
                     false,
                     options.answer},
                    options.kept);
}

Result<Json> Client::update(const Resource& resource, const Json& object,
                            const WriteOptions& options, const std::string& subresource) {
  return impl_->put(item_path(resource, key_of(object), subresource), to_text(object), options);
}

Result<Json> Client::update_status(const Resource& resource, const Json& object,
                                   const WriteOptions& options) {
  return update(resource, object, options, "status");
}

Result<Json> Client::update_status(const Resource& resource, const ObjectKey& key,
                                   std::string object, const WriteOptions& options) {
  return impl_->put(item_path(resource, key, "status"), std::move(object), options);
}

Result<Json> Client::patch(const Resource& resource, const ObjectKey& key, PatchType type,
                           const Json& patch, const WriteOptions& options,
                           const std::string& subresource) {
  ensure(type != PatchType::kApply || !options.field_manager.empty(),
         "an apply without a field manager");
  // A JSON patch may add to a list: twice is not once.
  return impl_->ask({"PATCH",
                     {"PATCH",
                      item_path(resource, key, subresource) + query_of(options),
                      {{"Content-Type", content_type_of(type)}},
                      to_text(patch)},
                     type != PatchType::kJson,
                     options.answer},
                    options.kept);
}

Result<Json> Client::scale(const Resource& resource, const ObjectKey& key, int replicas,
                           const std::string& resource_version) {
  Json scale{{"spec", {{"replicas", replicas}}}};
  if (!resource_version.empty()) scale["metadata"]["resourceVersion"] = resource_version;
  return patch(resource, key, PatchType::kMerge, scale, {}, "scale");
}

Result<Json> Client::remove(const Resource& resource, const ObjectKey& key,
                            const DeleteOptions& options) {
  // Without a UID a repeated delete could hit a successor of the same name.
  return impl_->ask(
      {"DELETE",
       {"DELETE", item_path(resource, key, ""), {{"Content-Type", kJsonType}}, body_of(options)},
       !options.uid.empty()});
}

Result<std::monostate> Client::stream(const std::string& target, const StreamLimits& limits,
                                      const Receiver& receiver, const std::stop_token& stop) {
  const Sender::Message message{"WATCH", {"GET", target}, false, limits.form};
  const http::Response response =
      impl_->sender.stream(message, {limits.silence, limits.whole, limits.gather}, receiver, stop);
  if (response.status / 100 != 2) return ApiError::from(what(message), response);
  return std::monostate();
}

}  // namespace outrigger::kube

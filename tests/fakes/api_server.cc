#include "tests/fakes/api_server.h"

#include <httplib.h>

#include <algorithm>
#include <thread>

#include "common/error.h"

namespace outrigger::fakes {
namespace {

constexpr std::chrono::seconds kPatience{60};
// How soon a watch notices that its client has gone, or that there is something new to say.
constexpr std::chrono::milliseconds kTick{2};

std::string line_of(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

bool wants_metadata(const httplib::Request& request) {
  return request.get_header_value("Accept").find("as=PartialObjectMetadata") != std::string::npos;
}

Json metadata_of(const Json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object.value("metadata", Json::object())}};
}

// What a watch with a selection is told of a change: an object that is selected no longer is gone.
std::string tell(const ApiStore::Change& change, const ApiSelection& selection, bool metadata) {
  const auto form = [&](const Json& object) { return metadata ? metadata_of(object) : object; };
  const bool before = selection.matches(change.before);
  const bool after = selection.matches(change.after);
  if (after) return line_of(before ? "MODIFIED" : "ADDED", form(change.after));
  if (before) return line_of("DELETED", form(change.last.is_null() ? change.after : change.last));
  return {};
}

ApiStore::Answer in_form(ApiStore::Answer answer, const httplib::Request& request) {
  if (!wants_metadata(request) || answer.status / 100 != 2) return answer;
  if (!answer.body.contains("items")) {
    answer.body = metadata_of(answer.body);
  } else {
    for (Json& item : answer.body["items"]) item = metadata_of(item);
  }
  return answer;
}

void answer(const ApiStore::Answer& from, httplib::Response& to) {
  to.status = from.status;
  to.set_content(from.body.dump(), "application/json");
}

// The library makes constants when a function of it is called first. It guards them, but TSan does
// not see into it: so they are made once, on threads that have ended before any other begins.
bool make_constants_of_library() {
  httplib::Server server;
  server.Get("/", [](const httplib::Request&, httplib::Response&) {});
  const int port = server.bind_to_any_port("127.0.0.1");
  std::jthread thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
  const bool answered = static_cast<bool>(httplib::Client("127.0.0.1", port).Get("/"));
  server.stop();
  return answered;
}

}  // namespace

struct ApiServer::Watch {
  std::string collection;
  ApiSelection selection;
  bool metadata = false;
  uint64_t version = 0;
  std::chrono::steady_clock::time_point end;
  std::string to_say;
  bool ended = false;
  bool broken = false;
  bool silent = false;
};

struct ApiServer::Library {
  explicit Library(ApiServer& owner) : owner_(owner) {
    static const bool made = make_constants_of_library();
    ensure(made, "the fake's library does not answer");
    server_.new_task_queue = [] { return new httplib::ThreadPool(32); };
    server_.set_keep_alive_max_count(1'000'000);
    server_.set_keep_alive_timeout(1);
    server_.set_tcp_nodelay(true);
    const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
      handle(request, response);
    };
    server_.Get(".*", handler).Post(".*", handler).Put(".*", handler);
    server_.Patch(".*", handler).Delete(".*", handler);
  }
  ~Library() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  int start(int port) {
    if (port == 0) {
      port = server_.bind_to_any_port("127.0.0.1");
    } else {
      ensure(server_.bind_to_port("127.0.0.1", port), "the fake's port was taken meanwhile");
    }
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
    return port;
  }

 private:
  void handle(const httplib::Request& request, httplib::Response& response) {
    const std::string line = request.method + " " + request.target;
    const std::string authorization = request.get_header_value("Authorization");
    std::optional<Fault> fault;
    uint64_t released = 0;
    {
      const std::scoped_lock lock(owner_.mutex_);
      released = owner_.released_;  // what is released once the request is known must not hang
      owner_.requests_.push_back({line, authorization, request.body});
      if (!owner_.token_.empty() && authorization != "Bearer " + owner_.token_)
        fault = Fault{401, "Unauthorized"};
      // At once: who sees the request and then scripts a fault means the next one.
      if (!fault) fault = owner_.next_fault(line);
    }
    owner_.changed_.notify_all();
    if (!fault || fault->after) carry_out(request, response);
    if (fault) spoil(*fault, released, response);
  }

  void spoil(const Fault& fault, uint64_t released, httplib::Response& response) {
    if (fault.hang) {
      std::unique_lock lock(owner_.mutex_);
      owner_.changed_.wait(lock, [&] { return owner_.stopping_ || owner_.released_ != released; });
    }
    answer(ApiStore::error(fault.status == 0 ? 500 : fault.status, fault.reason, "as scripted"),
           response);
    if (fault.retry_after) response.set_header("Retry-After", std::to_string(*fault.retry_after));
  }

  void carry_out(const httplib::Request& request, httplib::Response& response) {
    const auto path = ApiPath::parse(request.path);
    if (!path) return answer(ApiStore::error(404, "NotFound", "no such path"), response);
    ApiStore& store = owner_.store_;
    const Json body = request.body.empty() ? Json::object() : Json::parse(request.body);
    const auto tell = [&](ApiStore::Answer said) {
      answer(in_form(std::move(said), request), response);
    };
    if (request.method == "GET" && !path->key.name.empty()) {
      tell(store.get(*path));
    } else if (request.method == "GET") {
      read_collection(*path, request, response);
    } else if (request.method == "POST") {
      tell(store.create(*path, body, request.get_param_value("dryRun") == "All"));
    } else if (request.method == "PUT") {
      tell(store.update(*path, body));
    } else if (request.method == "PATCH") {
      tell(store.patch(*path, body, request.get_header_value("Content-Type")));
    } else {
      tell(store.remove(*path, body));
    }
    owner_.changed_.notify_all();
  }

  void read_collection(const ApiPath& path, const httplib::Request& request,
                       httplib::Response& response) {
    const auto parameter = [&](const char* name) { return request.get_param_value(name); };
    const ApiSelection selection{path.key.ns, parameter("labelSelector"),
                                 parameter("fieldSelector")};
    if (parameter("watch") != "true") {
      const std::string limit = parameter("limit");
      return answer(
          in_form(owner_.store_.list(path, selection, limit.empty() ? 0 : std::stoul(limit),
                                     parameter("continue")),
                  request),
          response);
    }
    auto watch = std::make_shared<Watch>();
    watch->collection = path.collection;
    watch->selection = selection;
    watch->metadata = wants_metadata(request);
    watch->version = std::stoull("0" + parameter("resourceVersion"));
    watch->end = std::chrono::steady_clock::now() +
                 std::chrono::seconds(std::stoi(parameter("timeoutSeconds")));
    if (!owner_.store_.changes_after(path.collection, watch->version))
      return answer(ApiStore::error(410, "Expired", "too old resource version"), response);
    {
      const std::scoped_lock lock(owner_.mutex_);
      owner_.watches_.push_back(watch);
    }
    owner_.changed_.notify_all();
    response.set_chunked_content_provider(
        "application/json", [this, watch](size_t, httplib::DataSink& sink) {
          const bool goes_on = owner_.serve(*watch, [&sink](const std::string& text) {
            return text.empty() ? sink.is_writable() : sink.write(text.data(), text.size());
          });
          if (goes_on) return true;
          const std::scoped_lock lock(owner_.mutex_);
          owner_.watches_.remove(watch);
          const bool broken = watch->broken;
          if (!broken) sink.done();
          return !broken;
        });
  }

  ApiServer& owner_;
  httplib::Server server_;
  std::jthread thread_;
};

// What is to be said to a watch now. Called under the lock.
std::string ApiServer::collect(Watch& watch) {
  std::string text;
  if (const auto changes = store_.changes_after(watch.collection, watch.version)) {
    for (const auto& change : *changes) {
      text += tell(change, watch.selection, watch.metadata);
      watch.version = change.version;
    }
  } else {
    text = line_of("ERROR", ApiStore::error(410, "Expired", "too old resource version").body);
    watch.ended = true;
  }
  text += std::exchange(watch.to_say, {});
  return text;
}

// Says what there is to say; false once the watch is over.
bool ApiServer::serve(Watch& watch, const std::function<bool(const std::string&)>& write) {
  std::unique_lock lock(mutex_);
  if (stopping_) watch.broken = true;
  if (watch.broken) return false;
  std::string text;
  if (!watch.silent) text = collect(watch);
  const bool over = watch.ended || std::chrono::steady_clock::now() >= watch.end;
  if (text.empty() && !over) changed_.wait_for(lock, kTick);
  const size_t piece = piece_ == 0 ? std::max<size_t>(text.size(), 1) : piece_;
  lock.unlock();
  bool reached = text.empty() ? write({}) : true;
  for (size_t at = 0; reached && at < text.size(); at += piece)
    reached = write(text.substr(at, piece));
  if (reached) return !over;
  lock.lock();
  watch.broken = true;
  return false;
}

ApiServer::ApiServer() { start(); }

ApiServer::~ApiServer() { stop(); }

std::string ApiServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

void ApiServer::start() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = false;
  }
  library_ = std::make_unique<Library>(*this);
  port_ = library_->start(port_);
}

void ApiServer::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  library_.reset();
}

std::vector<ApiServer::Request> ApiServer::requests(const std::string& containing) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Request> found;
  std::copy_if(
      requests_.begin(), requests_.end(), std::back_inserter(found),
      [&](const Request& request) { return request.line.find(containing) != std::string::npos; });
  return found;
}

bool ApiServer::wait_for_requests(const std::string& containing, size_t count) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (requests(containing).size() < count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kTick);
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

void ApiServer::fail(const std::string& containing, const Fault& fault, int times) {
  const std::scoped_lock lock(mutex_);
  script_.push_back({containing, fault, times});
}

// Called under the lock.
std::optional<Fault> ApiServer::next_fault(const std::string& line) {
  const auto found = std::find_if(script_.begin(), script_.end(), [&](const Script& script) {
    return line.find(script.containing) != std::string::npos;
  });
  if (found == script_.end()) return std::nullopt;
  Fault fault = found->fault;
  if (--found->times == 0) script_.erase(found);
  return fault;
}

void ApiServer::release_hanging() {
  {
    const std::scoped_lock lock(mutex_);
    ++released_;
  }
  changed_.notify_all();
}

void ApiServer::require_token(const std::string& token) {
  const std::scoped_lock lock(mutex_);
  token_ = token;
}

bool ApiServer::wait_for_watches(size_t count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] {
    return static_cast<size_t>(
               std::count_if(watches_.begin(), watches_.end(), [](const auto& watch) {
                 return !watch->ended && !watch->broken && !watch->silent;
               })) == count;
  });
}

void ApiServer::for_watches(const std::function<void(Watch&)>& change) {
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& watch : watches_) change(*watch);
  }
  changed_.notify_all();
}

void ApiServer::end_watches() {
  for_watches([](Watch& watch) { watch.ended = true; });
}

void ApiServer::break_watches() {
  for_watches([](Watch& watch) { watch.broken = true; });
}

void ApiServer::silence_watches() {
  for_watches([](Watch& watch) { watch.silent = true; });
}

void ApiServer::say_to_watches(const std::string& text) {
  for_watches([&](Watch& watch) { watch.to_say += text; });
}

void ApiServer::bookmark_watches() {
  const uint64_t version = store_.version();
  for_watches([&](Watch& watch) {
    watch.to_say += line_of(
        "BOOKMARK",
        {{"kind", "Bookmark"}, {"metadata", {{"resourceVersion", std::to_string(version)}}}});
  });
}

void ApiServer::send_in_pieces(size_t bytes) {
  const std::scoped_lock lock(mutex_);
  piece_ = bytes;
}

}  // namespace outrigger::fakes

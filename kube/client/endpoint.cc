#include "kube/client/endpoint.h"

#include "common/error.h"
#include "common/file.h"
#include "common/log.h"

namespace outrigger::kube {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(10);
constexpr size_t kMostBytes = size_t{1} << 20;

std::string text_of(const TextOrFile& source) {
  return source.file.empty() ? source.text : read_file(source.file, kMostBytes);
}

std::string without_line_end(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

std::string authorization_of(const std::string& token) {
  std::string field;
  if (!token.empty()) http::add_field(field, "Authorization", "Bearer " + token);
  return field;
}

bool same(const http::TlsOptions& a, const http::TlsOptions& b) {
  return a.authorities == b.authorities && a.certificate == b.certificate && a.key == b.key;
}

}  // namespace

Endpoint::Endpoint(Config config, http::ClientOptions options, const Timer& timer)
    : config_(std::move(config)), timer_(timer), options_(std::move(options)) {
  const size_t host = config_.server.find("://");
  if (host == std::string::npos)
    throw InvalidInput("server '" + config_.server + "': wanted is https://host:port");
  const size_t path = config_.server.find('/', host + 3);
  host_ = config_.server.substr(host + 3, path - host - 3);
  if (path != std::string::npos) options_.prefix = config_.server.substr(path);
  while (options_.prefix.ends_with('/')) options_.prefix.pop_back();
  options_.base_url = config_.server.substr(0, path);
  const std::scoped_lock lock(mutex_);
  adopt(read());
}

Endpoint::Texts Endpoint::read() const {
  Texts texts;
  texts.tls.authorities = text_of(config_.authorities);
  texts.tls.certificate = text_of(config_.certificate);
  texts.tls.key = text_of(config_.key);
  texts.tls.verify = config_.verify;
  try {
    texts.authorization = std::make_shared<const std::string>(
        authorization_of(without_line_end(text_of(config_.token))));
  } catch (const InvalidInput& error) {
    const std::string file = config_.token.file.string();
    throw InvalidInput("the token " + (file.empty() ? "of the configuration" : "in " + file) +
                       ": " + error.what());
  }
  return texts;
}

void Endpoint::adopt(Texts texts) {
  if (!client_ || !same(texts.tls, texts_.tls)) {
    http::ClientOptions options = options_;
    options.tls = texts.tls;
    client_ = std::make_shared<http::Client>(std::move(options));
  }
  texts_ = std::move(texts);
  looked_ = timer_.now();
}

void Endpoint::refresh() {
  try {
    adopt(read());
  } catch (const Error& error) {
    looked_ = timer_.now();
    log::warning("credentials for {} are kept as they were: {}", config_.server, error.what());
  }
}

Endpoint::Access Endpoint::access() {
  const std::scoped_lock lock(mutex_);
  if (timer_.now() - looked_ >= kBetweenLooks) refresh();
  return {client_, texts_.authorization};
}

bool Endpoint::token_changed(const std::string& refused) {
  const std::scoped_lock lock(mutex_);
  refresh();
  return *texts_.authorization != refused;
}

}  // namespace outrigger::kube

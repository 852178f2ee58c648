// Reads kubeconfig files (client.authentication.k8s.io and v1 Config of client-go's clientcmd).
#include <yaml-cpp/yaml.h>

#include <array>

#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "kube/client/base64.h"
#include "kube/client/config.h"

namespace outrigger::kube {
namespace {

// The file, so that every message can name it.
class Kubeconfig {
 public:
  explicit Kubeconfig(const std::filesystem::path& path) : path_(path) {
    const std::string text = read_file(path, size_t{1} << 20);
    try {
      root_ = YAML::Load(text);
    } catch (const YAML::Exception& error) {
      refuse("", error.what());
    }
    if (!root_.IsMap()) refuse("", "is no kubeconfig");
  }

  [[noreturn]] void refuse(const std::string& field, const std::string& why) const {
    throw InvalidInput(path_.string() + (field.empty() ? "" : ": " + field) + ": " + why);
  }

  // The member `kind` of the entry called `name` in the list `list`.
  YAML::Node named(const std::string& list, const std::string& kind,
                   const std::string& name) const {
    const YAML::Node entries = root_[list];
    if (entries && entries.IsSequence()) {
      for (const YAML::Node& entry : entries) {
        if (entry.IsMap() && text(entry, "name") == name && entry[kind] && entry[kind].IsMap())
          return entry[kind];
      }
    }
    refuse(list, "has no " + kind + " named '" + name + "'");
  }

  std::string text(const YAML::Node& map, const char* field) const {
    const YAML::Node value = map[field];
    if (!value || value.IsNull()) return {};
    if (!value.IsScalar()) refuse(field, "is no text");
    return value.Scalar();
  }

  bool flag(const YAML::Node& map, const char* field) const {
    const std::string value = text(map, field);
    if (!value.empty() && value != "true" && value != "false")
      refuse(field, "'" + value + "' is neither true nor false");
    return value == "true";
  }

  // `<field>-data` in base64, or else the path in `field`.
  TextOrFile data_or_file(const YAML::Node& map, const std::string& field) const {
    const std::string data_field = field + "-data";
    if (const std::string data = text(map, data_field.c_str()); !data.empty()) {
      const auto decoded = decode_base64(data);
      if (!decoded) refuse(data_field, "is not base64");
      return {.text = *decoded};
    }
    return file(map, field);
  }

  TextOrFile file(const YAML::Node& map, const std::string& field) const {
    const std::filesystem::path named = text(map, field.c_str());
    if (named.empty()) return {};
    return {.file = named.is_absolute() ? named : path_.parent_path() / named};
  }

  std::string current_context() const { return text(root_, "current-context"); }

 private:
  std::filesystem::path path_;
  YAML::Node root_;
};

void refuse_unsupported(const Kubeconfig& file, const YAML::Node& cluster, const YAML::Node& user) {
  struct Field {
    const char* name;
    const char* why;
  };
  constexpr const char* kPlugin =
      "plugins are not run: use a token, a token file or a client certificate (kubectl create "
      "token "
      "makes one for a service account)";
  for (const Field& field : std::array<Field, 6>{{
           {"exec", kPlugin},
           {"auth-provider", kPlugin},
           {"username", "basic authentication was removed from Kubernetes; use a token"},
           {"password", "basic authentication was removed from Kubernetes; use a token"},
           {"as", "impersonation is not supported"},
           {"as-groups", "impersonation is not supported"},
       }}) {
    if (user[field.name]) file.refuse(field.name, field.why);
  }
  for (const char* name : {"proxy-url", "tls-server-name"}) {
    if (!file.text(cluster, name).empty()) file.refuse(name, "is not supported");
  }
}

Config read(const Kubeconfig& file, const std::filesystem::path& path, const std::string& context) {
  const std::string name = context.empty() ? file.current_context() : context;
  if (name.empty()) file.refuse("current-context", "is not set, and no context was named");
  const YAML::Node chosen = file.named("contexts", "context", name);
  const YAML::Node cluster = file.named("clusters", "cluster", file.text(chosen, "cluster"));
  const YAML::Node user = file.named("users", "user", file.text(chosen, "user"));
  refuse_unsupported(file, cluster, user);
  Config config;
  config.server = file.text(cluster, "server");
  if (config.server.empty()) file.refuse("server", "is missing");
  if (const std::string ns = file.text(chosen, "namespace"); !ns.empty()) config.ns = ns;
  config.authorities = file.data_or_file(cluster, "certificate-authority");
  config.certificate = file.data_or_file(user, "client-certificate");
  config.key = file.data_or_file(user, "client-key");
  config.token = {.text = file.text(user, "token")};
  // As kubectl: the file wins over the text.
  if (const TextOrFile token = file.file(user, "tokenFile"); !token.empty()) config.token = token;
  config.verify = !file.flag(cluster, "insecure-skip-tls-verify");
  if (!config.verify) {
    log::warning(
        "{} says insecure-skip-tls-verify: whoever is between here and {} can read and "
        "change everything",
        path.string(), config.server);
  }
  return config;
}

}  // namespace

Config read_kubeconfig(const std::filesystem::path& path, const std::string& context) {
  try {
    return read(Kubeconfig(path), path, context);
  } catch (const YAML::Exception& error) {
    throw InvalidInput(path.string() + ": " + error.what());
  }
}

}  // namespace outrigger::kube

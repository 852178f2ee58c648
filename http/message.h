#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrigger::http {

/// Names and values of header fields; names compare without regard to case (RFC 9110, 5.1).
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first value under `name`, if any.
std::optional<std::string> find_header(const Headers& headers, std::string_view name);

/// Appends a field as it is sent, with its line end. Throws InvalidInput where the value holds a
/// control character: a line break would begin a field, or a request, that nobody asked for.
void add_field(std::string& head, std::string_view name, std::string_view value);

/// `text` as one segment of a path or one value of a query: all but RFC 3986's unreserved
/// characters becomes %XX.
std::string percent_encode(std::string_view text);

/// What a server is asked.
struct Request {
  std::string method;
  std::string path;                          // decoded, without the query
  std::map<std::string, std::string> query;  // decoded; the first value where a name repeats
  Headers headers;
  std::string body;
};

/// What a client asks.
struct ClientRequest {
  std::string method = "GET";
  std::string target;  // path and query, percent-encoded where they must be
  Headers headers = {};
  std::string body = {};
};

/// What a server answers.
struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  Headers headers = {};  // the others
};

}  // namespace outrigger::http

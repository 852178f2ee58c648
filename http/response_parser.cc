#include "http/response_parser.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstdint>
#include <limits>

#include "common/error.h"

namespace outrigger::http {
namespace {

namespace beast = boost::beast;
using BeastParser = beast::http::basic_parser<false>;
using beast::error_code;
using beast::http::field;

constexpr std::uint32_t kLargestHead = 64 << 10;
constexpr size_t kUsualFields = 8;  // of an API server

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

class ResponseParser::Impl final : public BeastParser {
 public:
  explicit Impl(const Receiver& receiver) : receiver_(receiver) {
    eager(true);
    // The receiver's business; "none" refuses all before Boost 1.75.
    body_limit(std::numeric_limits<std::uint64_t>::max());
    header_limit(kLargestHead);
  }

  Response head;
  bool enough = false;

 private:
  size_t take(beast::string_view piece, error_code& error) {
    if (!receiver_(head, view(piece))) {
      enough = true;
      error = boost::system::errc::make_error_code(boost::system::errc::operation_canceled);
    }
    return piece.size();
  }

  void on_request_impl(beast::http::verb, beast::string_view, beast::string_view, int,
                       error_code&) override {}
  void on_response_impl(int code, beast::string_view, int, error_code&) override {
    head.status = code;
    head.content_type.clear();
    head.headers.reserve(kUsualFields);
  }
  void on_field_impl(field known, beast::string_view name, beast::string_view value,
                     error_code&) override {
    if (known == field::content_type) head.content_type = view(value);
    head.headers.emplace_back(view(name), view(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  size_t on_body_impl(beast::string_view piece, error_code& error) override {
    return take(piece, error);
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  size_t on_chunk_body_impl(std::uint64_t, beast::string_view piece, error_code& error) override {
    return piece.empty() ? 0 : take(piece, error);
  }
  void on_finish_impl(error_code&) override {}

  const Receiver& receiver_;
};

ResponseParser::ResponseParser(Receiver receiver)
    : receiver_(std::move(receiver)), impl_(std::make_unique<Impl>(receiver_)) {}

ResponseParser::~ResponseParser() = default;

size_t ResponseParser::feed(std::string_view bytes) {
  size_t through = 0;
  while (through < bytes.size() && !done()) {
    error_code error;
    const auto rest = bytes.substr(through);
    through += impl_->put(boost::asio::const_buffer(rest.data(), rest.size()), error);
    if (error == beast::http::error::need_more) break;
    if (error && !impl_->enough) throw IoError("the response is no HTTP: " + error.message());
    const bool interim = impl_->head.status / 100 == 1;
    if (impl_->is_done() && interim) impl_ = std::make_unique<Impl>(receiver_);
  }
  return through;
}

void ResponseParser::finish() {
  if (!impl_->got_some()) throw IoError("the connection was closed without a response");
  error_code error;
  impl_->put_eof(error);
  if (error) throw IoError("the connection was closed in the middle of the response");
}

bool ResponseParser::done() const { return impl_->enough || impl_->is_done(); }

bool ResponseParser::keeps_connection() const { return impl_->is_done() && impl_->keep_alive(); }

Response& ResponseParser::head() { return impl_->head; }

}  // namespace outrigger::http

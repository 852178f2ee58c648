#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace outrigger::kube {

/// RFC 4648, section 4, with padding; line ends between are passed over. Nothing where the text is
/// no such encoding.
std::optional<std::string> decode_base64(std::string_view text);
/// RFC 4648, section 5, without padding, as parts of a JWT are.
std::optional<std::string> decode_base64url(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace outrigger::kube

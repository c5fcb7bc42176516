// Base64 with the usual digits (RFC 4648).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace outrider {

std::string EncodeBase64(std::span<const uint8_t> bytes);

// Nothing if the text is not base64. The padding at the end may be missing.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace outrider

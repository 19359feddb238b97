// Bytes as letters, RFC 4648: for texts that cannot hold bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuner {

inline constexpr std::string_view kBase64Letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i)
      three = three << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i)
      text += at + i > bytes.size() ? '=' : kBase64Letters[three >> (18 - 6 * i) & 63];
  }
  return text;
}

// Nothing: it is not what to_base64() writes.
inline std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t three = 0;
    size_t padding = 0;
    for (size_t i = 0; i < 4; ++i) {
      const bool pad = text[at + i] == '=' && at + 4 == text.size() && i >= 2;
      const size_t value = pad ? 0 : kBase64Letters.find(text[at + i]);
      if (value == std::string_view::npos || (padding > 0 && !pad)) return std::nullopt;
      padding += pad ? 1 : 0;
      three = three << 6 | static_cast<uint32_t>(value);
    }
    for (size_t i = 0; i < 3 - padding; ++i) bytes += static_cast<char>(three >> (16 - 8 * i) & 255);
  }
  if (to_base64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace tuner

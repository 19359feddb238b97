#include "tuner/report/html.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "tuner/text/terminal.h"

namespace tuner {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: the text does not begin with a character of UTF-8
};

// Without the long forms of short ones, surrogates, and what is above U+10FFFF.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 && lead < 0xf5   ? 4
                       : lead >= 0xe0 && lead < 0xf0 ? 3
                       : lead >= 0xc2 && lead < 0xe0 ? 2
                                                     : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return {};
  return {code, bytes};
}

// Controls of C0 (but line feed and tab) and C1, and those that turn the direction of writing.
bool is_control(uint32_t code) {
  if (code == '\n' || code == '\t') return false;
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string written_out(std::string_view format_of, uint32_t code) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), format_of.data(), code);
  return text.data();
}

void escape(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.bytes == 0)
      out += written_out("\\x%02x", static_cast<unsigned char>(text[0]));
    else if (is_control(c.code))
      out += written_out(c.code < 0x100 ? "\\x%02x" : "\\u%04x", c.code);
    else if (c.code == '&')
      out += "&amp;";
    else if (c.code == '<')
      out += "&lt;";
    else if (c.code == '>')
      out += "&gt;";
    else if (c.code == '"')
      out += "&quot;";
    else if (c.code == '\'')
      out += "&#39;";
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
}

}  // namespace

Html& Html::operator<<(std::string_view text) {
  escape(text, code_);
  return *this;
}

Html breakable(std::string_view name) {
  Html out;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('_', begin), name.size() - 1) + 1;
    out << name.substr(begin, end - begin);
    if (end < name.size()) out << "<wbr>";
    begin = end;
  }
  return out;
}

std::string bounded(std::string_view text, size_t most) { return shortened(text, static_cast<int>(most)); }

}  // namespace tuner

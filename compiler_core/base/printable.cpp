#include "compiler_core/base/printable.h"

#include <cstdio>

namespace tuner {
namespace {

std::string written_out(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    const bool control = (byte < 0x20 || byte == 0x7f || c1) && kept.find(text[i]) == std::string_view::npos;
    if (!control) {
      out += text[i];
      continue;
    }
    char written[8];
    std::snprintf(written, sizeof written, "\\x%02x", c1 ? static_cast<unsigned char>(text[++i]) : byte);
    out += written;
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return written_out(text, ""); }
std::string printable_lines(std::string_view text) { return written_out(text, "\n\t"); }

}  // namespace tuner

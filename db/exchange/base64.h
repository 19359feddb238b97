// Bytes in a line of text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tuner::exchange {

std::string base64_text(std::string_view bytes);
// Nothing: the text is not what base64_text() returns for any bytes.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace tuner::exchange

#include "db/exchange/base64.h"

#include <openssl/evp.h>

namespace tuner::exchange {
namespace {

constexpr size_t kBytes = 3, kCharacters = 4;  // of a group
// EVP takes lengths as int.
constexpr size_t kMost = size_t{1} << 30;

}  // namespace

std::string base64_text(std::string_view bytes) {
  if (bytes.size() > kMost) return {};
  std::string text((bytes.size() + kBytes - 1) / kBytes * kCharacters + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % kCharacters != 0 || text.size() > kMost) return std::nullopt;
  std::string bytes(text.size() / kCharacters * kBytes, '\0');
  if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size())) < 0)
    return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(bytes.size() - padding);
  // It also takes blanks, and bits behind the end.
  if (base64_text(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace tuner::exchange

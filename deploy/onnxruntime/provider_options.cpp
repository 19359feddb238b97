#include "deploy/onnxruntime/provider_options.h"

#include <charconv>
#include <cstdlib>

#include "compiler_core/base/did_you_mean.h"
#include "compiler_core/base/printable.h"

namespace tuner::ort {
namespace {

constexpr int kMostThreads = 4096;
constexpr double kMostSeconds = 1e6;

const std::vector<std::string>& known_options() {
  static const std::vector<std::string> kKnown = {"cache",  "compile", "db",      "program",
                                                  "strict", "target",  "threads", "tune_seconds"};
  return kKnown;
}

std::string small(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

template <class T>
Status set_number(const std::string& option, const std::string& value, T least, T most, T& to) {
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, to);
  if (error == std::errc() && stop == end && to >= least && to <= most) return Status::ok();
  return invalid_argument("option ", option, ": found \"", printable(value), "\", expected ", least, " to ",
                          most);
}
Status set_flag(const std::string& option, const std::string& value, bool& to) {
  if (value != "0" && value != "1")
    return invalid_argument("option ", option, ": found \"", printable(value), "\", expected 0 or 1");
  to = value == "1";
  return Status::ok();
}

Status set(ProviderOptions& options, const std::string& option, const std::string& value) {
  std::string* const text = option == "cache"     ? &options.cache
                            : option == "db"      ? &options.db
                            : option == "program" ? &options.program
                            : option == "target"  ? &options.target
                                                  : nullptr;
  if (text != nullptr) {
    if (value.empty()) return invalid_argument("option ", option, ": found nothing, expected a value");
    *text = value;
    return Status::ok();
  }
  if (option == "compile") return set_flag(option, value, options.compile);
  if (option == "strict") return set_flag(option, value, options.strict);
  if (option == "threads") return set_number(option, value, 1, kMostThreads, options.threads);
  if (option == "tune_seconds") return set_number(option, value, 0.0, kMostSeconds, options.tune_seconds);
  std::string known;
  for (const std::string& each : known_options()) known += (known.empty() ? "" : ", ") + each;
  const std::string meant = did_you_mean(option, known_options());
  return invalid_argument("option ", printable(option), " is unknown",
                          meant.empty() ? str("; expected one of ", known) : meant);
}

std::string default_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return str(cache, "/tuner/onnxruntime");
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? str(home, "/.cache/tuner/onnxruntime") : "";
}

}  // namespace

Result<ProviderOptions> provider_options(const std::vector<std::pair<std::string, std::string>>& entries) {
  const std::string prefix = str("ep.", small(kProviderName), ".");
  ProviderOptions options;
  for (const auto& [key, value] : entries)
    if (const std::string word = small(key); word.starts_with(prefix))
      RETURN_IF_ERROR(set(options, word.substr(prefix.size()), value));
  if (options.cache.empty()) options.cache = default_cache();
  if (options.cache.empty())
    return invalid_argument("option cache: expected a folder, since HOME names none");
  return options;
}

}  // namespace tuner::ort

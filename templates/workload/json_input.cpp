#include "templates/workload/json_input.h"

#include <algorithm>

namespace tuner::json_input {

std::string found(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  // "[0,1]" reads better as "[0, 1]", but a comma inside a string stays as it is.
  if (value.is_array() && std::ranges::all_of(value, [](const json& v) { return v.is_number(); })) {
    std::string spaced;
    for (const char c : text) spaced += c == ',' ? ", " : std::string(1, c);
    text = std::move(spaced);
  }
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return text;
  size_t cut = kLongest;
  while (cut > 0 && (text[cut] & 0xc0) == 0x80) --cut;  // not in the middle of a UTF-8 character
  return text.substr(0, cut) + "...";
}

namespace {

// "line 3, column 7" of a byte offset.
std::string position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t newline = before.rfind('\n');
  return str("line ", line, ", column ",
             newline == std::string_view::npos ? before.size() + 1 : before.size() - newline);
}

}  // namespace

Result<json> parse(std::string_view text) {
  constexpr int kDeepest = 16;
  std::vector<std::set<std::string>> keys;
  std::string repeated;
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    too_deep = too_deep || depth > kDeepest;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second &&
        repeated.empty())
      repeated = parsed.get<std::string>();
    return !too_deep;  // what lies deeper is not kept
  };
  json document;
  try {
    document = json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..." -> from "syntax
    // error" on
    if (const size_t colon = what.find(": "); colon != std::string::npos) what = what.substr(colon + 2);
    return invalid_argument(position(text, error.byte), ": not JSON: ", what);
  } catch (const json::exception& error) {
    return invalid_argument("not JSON: ", error.what());
  }
  if (too_deep) return invalid_argument("expected at most ", kDeepest, " levels of brackets, found more.");
  if (!repeated.empty())
    return invalid_argument(found(json(repeated)), ": the key is given twice in one object.");
  return document;
}

std::string one_line(std::string message) {
  for (char& c : message)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return message;
}

}  // namespace tuner::json_input

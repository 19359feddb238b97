#include "db/exchange/foreign_knobs.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "db/exchange/formats.h"
#include "db/exchange/json_fields.h"

namespace tuner::exchange {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::optional<int64_t> integer_of(std::string_view text) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// KTT writes its integers as texts.
void put(ForeignKnobs& out, const std::string& name, const json& value) {
  if (value.is_number_integer()) out.values[name] = value.get<int64_t>();
  if (const auto* text = value.get_ptr<const std::string*>())
    if (const std::optional<int64_t> integer = integer_of(*text)) out.values[name] = *integer;
}

// parse_autotvm_line() has checked the form.
ForeignKnobs of_autotvm(const ForeignRecord& record) {
  ForeignKnobs out{.template_name = record.task.substr(0, record.task.find(' ')), .values = {}};
  const json line = json::parse(record.document, nullptr, false);
  if (!line.is_object() || !line.contains("config")) return out;
  for (const json& entity : line["config"].value("entity", json::array()))
    if (entity.is_array() && entity.size() == 3 && entity[0].is_string())
      put(out, entity[0].get<std::string>(), entity[2]);
  return out;
}

ForeignKnobs of_t4(const ForeignRecord& record) {
  ForeignKnobs out;
  const json result = json::parse(record.document, nullptr, false);
  if (!result.is_object() || !result.contains("configuration")) return out;
  for (const auto& [name, value] : result["configuration"].items()) {
    if (name == "template" && value.is_string()) out.template_name = value.get<std::string>();
    put(out, name, value);
  }
  return out;
}

ForeignKnobs of_csv(const ForeignRecord& record) {
  ForeignKnobs out;
  const Result<std::vector<std::string>> names = csv_fields(record.origin.header),
                                         cells = csv_fields(record.document);
  if (!names || !cells) return out;
  for (size_t i = 0; i < std::min(names->size(), cells->size()); ++i) {
    const std::string& cell = (*cells)[i];
    if ((*names)[i] == "template") out.template_name = cell;
    if (const std::optional<int64_t> value = integer_of(cell)) out.values[(*names)[i]] = *value;
  }
  return out;
}

}  // namespace

std::string foreign_workload(std::string_view format, std::string_view task) {
  if (format != format_name(Format::kAutotvm)) return std::string(task);
  const json arguments = json::parse(task.substr(std::min(task.find(' '), task.size())), nullptr, false);
  const bool ours = arguments.is_array() && arguments.size() == 1 && arguments[0].is_string();
  return ours ? arguments[0].get<std::string>() : "";
}

ForeignKnobs foreign_knobs(const ForeignRecord& record) {
  if (record.format == format_name(Format::kAutotvm)) return of_autotvm(record);
  if (record.format == format_name(Format::kT4)) return of_t4(record);
  return of_csv(record);
}

Result<std::map<std::string, std::string>> t4_config(const ForeignRecord& record) {
  std::map<std::string, std::string> out;
  const json result = json::parse(record.document, nullptr, false);
  if (!result.is_object() || !result.contains("configuration") || !result["configuration"].is_object())
    return invalid_argument("expected an object \"configuration\"");
  for (const auto& [name, value] : result["configuration"].items()) {
    if (!value.is_number() && !value.is_string() && !value.is_boolean())
      return invalid_argument("configuration.", on_one_line(name), ": found ", shown(value),
                              ", expected a number or a word");
    out[name] = value.is_string()    ? value.get<std::string>()
                : value.is_boolean() ? (value.get<bool>() ? "1" : "0")
                                     : value.dump();
  }
  return out;
}

std::string t4_device(const ForeignRecord& record) {
  const json header = json::parse(record.origin.header, nullptr, false);
  if (!header.is_object()) return "";
  const json about = header.value("metadata", json());
  for (const json* of : {&header, &about})
    for (const char* key : {"device_name", "device"})
      if (of->is_object() && of->contains(key) && (*of)[key].is_string())
        return (*of)[key].get<std::string>();
  return "";
}

ForeignRecord with_t4_config(const ForeignRecord& record, const std::string& template_name,
                             const std::map<std::string, int64_t>& values) {
  ForeignRecord out = record;
  ordered_json result = ordered_json::parse(record.document, nullptr, false);
  CHECK(result.is_object()) << "t4_config() has read it: " << record.document;
  result["configuration_there"] = result["configuration"];
  result["configuration"] = {{"template", template_name}};
  for (const auto& [name, value] : values) result["configuration"][name] = value;
  out.document = result.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return out;
}

}  // namespace tuner::exchange

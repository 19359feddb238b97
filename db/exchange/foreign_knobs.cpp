#include "db/exchange/foreign_knobs.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "db/exchange/formats.h"

namespace tuner::exchange {

using nlohmann::json;

namespace {

void put(ForeignKnobs& out, const std::string& name, const json& value) {
  if (value.is_number_integer()) out.values[name] = value.get<int64_t>();
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
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (!cell.empty() && error == std::errc() && stop == cell.data() + cell.size())
      out.values[(*names)[i]] = value;
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

}  // namespace tuner::exchange

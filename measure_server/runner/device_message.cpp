#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure_server/runner/device_child.h"

namespace tuner {

using nlohmann::json;

namespace {

constexpr std::pair<DeviceMessage::Kind, const char*> kKinds[] = {{DeviceMessage::Kind::kReady, "ready"},
                                                                  {DeviceMessage::Kind::kFailed, "failed"},
                                                                  {DeviceMessage::Kind::kPhase, "phase"},
                                                                  {DeviceMessage::Kind::kDone, "done"}};

constexpr std::pair<DeviceOrder::Kind, const char*> kOrders[] = {{DeviceOrder::Kind::kRun, "run"},
                                                                 {DeviceOrder::Kind::kTurn, "turn"},
                                                                 {DeviceOrder::Kind::kFinish, "finish"},
                                                                 {DeviceOrder::Kind::kCopy, "copy"}};

}  // namespace

// The request as text: it has one parser, which reads text.
std::string to_json(const DeviceOrder& o) {
  json j = {{"racer", o.racer}, {"samples", o.samples}, {"request", to_json(o.request)}};
  for (const auto& [kind, name] : kOrders)
    if (kind == o.kind) j["kind"] = name;
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<DeviceOrder> parse_device_order(std::string_view text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&] { return failed("the device child was told \"", text.substr(0, 80), "\""); };
  if (!j.is_object() || !j.contains("kind") || !j.contains("racer") || !j["racer"].is_number_unsigned() ||
      !j.contains("samples") || !j["samples"].is_number_integer() || !j.contains("request") ||
      !j["request"].is_string())
    return wrong();
  DeviceOrder o;
  bool known = false;
  for (const auto& [kind, name] : kOrders)
    if (j["kind"] == name) o.kind = kind, known = true;
  if (!known) return wrong();
  o.racer = j["racer"].get<size_t>();
  o.samples = j["samples"].get<int>();
  ASSIGN_OR_RETURN(o.request, parse_run_request(j["request"].get<std::string>()));
  return o;
}

std::string to_json(const DeviceMessage& m) {
  json j = {{"phase", static_cast<uint32_t>(m.phase)}, {"error", m.error}, {"poisoned", m.poisoned}};
  for (const auto& [kind, name] : kKinds)
    if (kind == m.kind) j["kind"] = name;
  // As text: a reply has one parser, which reads text.
  if (m.kind == DeviceMessage::Kind::kDone) {
    j["reply"] = to_json(m.reply);
    j["pulses_ns"] = m.pulses_ns;
  }
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<DeviceMessage> parse_device_message(std::string_view text) {
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [&] { return failed("the device child said \"", text.substr(0, 80), "\""); };
  if (!j.is_object() || !j.contains("kind") || !j.contains("phase") || !j["phase"].is_number_unsigned() ||
      !j.contains("error") || !j["error"].is_string() || !j.contains("poisoned") ||
      !j["poisoned"].is_boolean())
    return wrong();
  DeviceMessage m;
  bool known = false;
  for (const auto& [kind, name] : kKinds)
    if (j["kind"] == name) m.kind = kind, known = true;
  if (!known) return wrong();
  m.error = j["error"].get<std::string>();
  m.phase = static_cast<Phase>(j["phase"].get<uint32_t>());
  m.poisoned = j["poisoned"].get<bool>();
  if (m.kind == DeviceMessage::Kind::kDone) {
    if (!j.contains("reply") || !j["reply"].is_string() || !j.contains("pulses_ns") ||
        !j["pulses_ns"].is_array() || !std::ranges::all_of(j["pulses_ns"], &json::is_number))
      return wrong();
    m.pulses_ns = j["pulses_ns"].get<std::vector<double>>();
    ASSIGN_OR_RETURN(m.reply, parse_run_reply(j["reply"].get<std::string>()));
  }
  return m;
}

}  // namespace tuner

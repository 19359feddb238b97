#include "compiler_core/artifact/command_bundle.h"

#include <nlohmann/json.hpp>

#include "compiler_core/base/json_reader.h"

namespace tuner {
namespace {

using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

constexpr std::string_view kHead = "tuner-command 1\n";

bool is_inside(const std::string& name) {
  if (name.empty() || name.front() == '/') return false;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = std::string_view(name).substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return false;
    at = end + 1;
  }
  return true;
}

void read_texts(Reader& in, const std::string& key, std::vector<std::string>& texts) {
  const json* list = in.list(key, kRequired);
  for (size_t i = 0; list != nullptr && i < list->size() && !in.failed(); ++i) {
    if (!(*list)[i].is_string()) return in.refuse(key, "expected texts.");
    texts.push_back((*list)[i].get<std::string>());
  }
}

}  // namespace

std::string CommandBundle::to_bytes() const {
  json listed = json::array();
  std::string all;
  for (const File& file : files) {
    listed.push_back({{"name", file.name}, {"bytes", file.bytes.size()}, {"executable", file.executable}});
    all += file.bytes;
  }
  const json head = {{"files", std::move(listed)},  {"run", run},
                     {"environment", environment},  {"pattern", result.pattern},
                     {"scale_ns", result.scale_ns}, {"is_rate", result.is_rate},
                     {"unit", result.unit}};
  return str(kHead, head.dump(-1, ' ', true, json::error_handler_t::replace), "\n", all);
}

Result<CommandBundle> parse_command_bundle(std::string_view bytes) {
  if (!bytes.starts_with(kHead))
    return invalid_argument("no program with its files, which begins with \"tuner-command 1\"");
  bytes.remove_prefix(kHead.size());
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return invalid_argument("a program with its files is torn");
  ASSIGN_OR_RETURN(const json head, json_input::parse(bytes.substr(0, end)));
  bytes.remove_prefix(end + 1);
  CommandBundle out;
  Reader in(head, "command: ");
  in.read_objects(
      "files",
      [&](Reader& one) {
        CommandBundle::File file;
        size_t length = 0;
        one.read("name", file.name, kRequired);
        one.read("bytes", length, 0, int64_t{1} << 40, kRequired);
        one.read("executable", file.executable, kRequired);
        if (one.failed()) return;
        if (!is_inside(file.name)) return one.refuse("name", "leads out of the folder.");
        if (length > bytes.size()) return one.refuse("bytes", "the files are torn.");
        file.bytes = bytes.substr(0, length);
        bytes.remove_prefix(length);
        out.files.push_back(std::move(file));
      },
      kRequired);
  read_texts(in, "run", out.run);
  read_texts(in, "environment", out.environment);
  in.read("pattern", out.result.pattern, kRequired);
  in.read("scale_ns", out.result.scale_ns, 0, 1e30, kRequired);
  in.read("is_rate", out.result.is_rate, kRequired);
  in.read("unit", out.result.unit, kRequired);
  if (!in.failed() && out.run.empty()) in.refuse("run", "expected words.");
  if (!in.failed() && !bytes.empty()) in.refuse("files", bytes.size(), " bytes belong to no file.");
  RETURN_IF_ERROR(in.status());
  return out;
}

}  // namespace tuner

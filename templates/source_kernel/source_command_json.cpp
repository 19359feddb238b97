// The keys of a job file's entry that only programs have: files, build, run, environment, result.
#include <algorithm>

#include "templates/source_kernel/source_kernel_json.h"

namespace tuner {
namespace {

using json_input::found;
using json_input::Reader;
using nlohmann::json;

constexpr size_t kMostCommandFileBytes = size_t{64} << 20, kMostCommandFiles = 64;

void read_words(Reader& in, const std::string& key, std::vector<std::string>& words, bool required) {
  const json* list = in.list(key, required);
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const json& word = (*list)[i];
    if (!word.is_string() && !word.is_number_integer())
      return in.refuse(str(key, "[", i, "]"), "expected a word in quotes, found ", found(word), ".");
    words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  }
}

void read_environment(Reader& in, SourceCommand& command) {
  const json* variables = in.get("environment");
  if (variables == nullptr) return;
  if (!variables->is_object())
    return in.refuse("environment", "expected an object of names and values: {\"TILE\": \"{TILE}\"}, found ",
                     found(*variables), ".");
  for (const auto& [name, value] : variables->items()) {
    if (!value.is_string() && !value.is_number_integer())
      return in.refuse("environment." + name, "expected a text in quotes, found ", found(value), ".");
    command.environment[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

void read_result(Reader& in, SourceCommand& command) {
  const json* result = in.get("result");
  if (result == nullptr) return;
  if (!result->is_object())
    return in.refuse("result", "expected {\"pattern\": \"time: {number} ms\", \"unit\": \"ms\"}, found ",
                     found(*result), ".");
  Reader r(*result, "result.");
  r.read("pattern", command.pattern, json_input::kRequired);
  r.read("unit", command.unit, json_input::kRequired);
  if (!r.failed() && command.pattern.empty()) r.refuse("pattern", "expected a text, found \"\".");
  if (result->contains("better"))
    r.refuse("better", "the unit says it: less is better of a time, more of a rate (", kResultUnits, ").");
  in.refuse_all(r.finish());
}

void read_files(Reader& in, const JobFolder& folder, SourceKernel& kernel) {
  const json* list = in.list("files");
  for (size_t i = 0; list != nullptr && i < list->size() && !in.failed(); ++i) {
    const std::string key = str("files[", i, "]");
    if (!(*list)[i].is_string())
      return in.refuse(key, "expected the name of a file, found ", found((*list)[i]), ".");
    const auto name = (*list)[i].get<std::string>();
    if (kernel.file(name) != nullptr) return in.refuse(key, "the file ", name, " is there twice.");
    if (kernel.files.size() >= kMostCommandFiles)
      return in.refuse("files", "expected at most ", kMostCommandFiles, " files.");
    const Status right = check_file_name(name);
    Result<std::string> bytes = right ? folder.read(name, kMostCommandFileBytes) : right;
    if (!bytes) return in.refuse(key, bytes.message());
    kernel.files.push_back({name, *std::move(bytes)});
  }
  std::ranges::sort(kernel.files, {}, &SourceFile::name);
}

}  // namespace

void read_command(Reader& in, const JobFolder& folder, SourceKernel& kernel) {
  SourceCommand command;
  read_words(in, "build", command.build, /*required=*/false);
  read_words(in, "run", command.run, json_input::kRequired);
  read_environment(in, command);
  read_result(in, command);
  read_files(in, folder, kernel);
  kernel.function = command_name(command);
  kernel.compiler = commands_needed(command);
  kernel.command = std::move(command);
}

}  // namespace tuner

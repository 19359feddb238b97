#include "templates/source_kernel/source_document.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/json_reader.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "templates/source_kernel/source_text.h"

namespace tuner {
namespace {

using json_input::Reader;
using nlohmann::json;

constexpr std::string_view kHead = "tuner-kernel 1\n";

constexpr std::string_view kContents[] = {"random", "zeros", "iota", "file"};
constexpr std::string_view kFrom[] = {"function", "files", "default"};

template <class Enum, size_t n>
json word(Enum value, const std::string_view (&names)[n]) {
  return std::string(names[static_cast<size_t>(value)]);
}
template <class Enum, size_t n>
void read_word(Reader& in, const std::string& key, Enum& value, const std::string_view (&names)[n]) {
  std::string text;
  in.read(key, text, json_input::kRequired);
  const auto found = std::ranges::find(names, text);
  if (found == std::end(names)) return in.refuse(key, "unknown word ", json_input::found(json(text)), ".");
  value = static_cast<Enum>(found - std::begin(names));
}

json to_json(const SourceArgument& a) {
  json out = {{"name", a.name}, {"type", std::string(dtype_name(a.dtype))}};
  if (a.scalar) {
    out["integer"] = a.integer;
    out["number"] = a.number;
    return out;
  }
  out["shape"] = a.shape;
  out["role"] = word(a.role, kSourceRoles);
  out["contents"] = word(a.contents.kind, kContents);
  if (a.contents.has_range) {
    out["low"] = a.contents.low;
    out["high"] = a.contents.high;
  }
  out["file"] = a.contents.file;
  out["absolute"] = a.absolute;
  out["relative"] = a.relative;
  return out;
}

SourceArgument read_argument(Reader& in) {
  SourceArgument a;
  in.read("name", a.name, json_input::kRequired);
  std::string type;
  in.read("type", type, json_input::kRequired);
  const std::optional<DType> dtype = dtype_from_name(type);
  if (!dtype) in.refuse("type", "unknown type.");
  a.dtype = dtype.value_or(DType::kFloat32);
  if (in.get("integer") != nullptr) {
    a.scalar = true;
    in.read("integer", a.integer);
    in.read("number", a.number);
    return a;
  }
  const json* shape = in.list("shape", json_input::kRequired);
  for (size_t i = 0; shape != nullptr && i < shape->size() && !in.failed(); ++i) {
    if (!(*shape)[i].is_number_integer() || shape->size() > 8)
      return in.refuse("shape", "expected extents."), a;
    a.shape.push_back((*shape)[i].get<int64_t>());
  }
  read_word(in, "role", a.role, kSourceRoles);
  read_word(in, "contents", a.contents.kind, kContents);
  a.contents.has_range = in.get("low") != nullptr;
  in.read("low", a.contents.low);
  in.read("high", a.contents.high);
  in.read("file", a.contents.file);
  in.read_at_least("absolute", a.absolute, 0);
  in.read_at_least("relative", a.relative, 0);
  return a;
}

void read_texts(Reader& in, const std::string& key, std::vector<std::string>& texts) {
  const json* list = in.list(key, json_input::kRequired);
  for (size_t i = 0; list != nullptr && i < list->size() && !in.failed(); ++i) {
    if (!(*list)[i].is_string()) return in.refuse(key, "expected texts.");
    texts.push_back((*list)[i].get<std::string>());
  }
}

json texts_of(const std::vector<Formula>& formulas) {
  json texts = json::array();
  for (const Formula& formula : formulas) texts.push_back(formula.text());
  return texts;
}
json to_json(const SourceLaunch& launch) {
  json out = {{"grid", texts_of(launch.grid)}, {"block", texts_of(launch.block)}};
  if (launch.shared_bytes) out["shared_bytes"] = launch.shared_bytes->text();
  return out;
}
json to_json(const ReadyKernel& ready) {
  json out = to_json(ready.launch);
  out["places"] = ready.places;
  out["file"] = ready.file;
  out["function"] = ready.function;
  return out;
}

Formula stored_formula(Reader& in, const std::string& key, const std::string& text) {
  const Result<Formula> read = Formula::parse(text);
  if (!read) in.refuse(key, read.message());
  return read ? *read : Formula();
}
SourceLaunch stored_launch(Reader& in) {
  SourceLaunch launch;
  for (const auto& [key, list] : {std::pair("grid", &launch.grid), {"block", &launch.block}}) {
    std::vector<std::string> texts;
    read_texts(in, key, texts);
    for (const std::string& text : texts) list->push_back(stored_formula(in, key, text));
  }
  std::string shared;
  in.read("shared_bytes", shared);
  if (!shared.empty()) launch.shared_bytes = stored_formula(in, "shared_bytes", shared);
  return launch;
}
ReadyKernel stored_ready(Reader& in) {
  ReadyKernel ready{.launch = stored_launch(in)};
  in.read("file", ready.file, json_input::kRequired);
  in.read("function", ready.function, json_input::kRequired);
  const json* places = in.list("places", json_input::kRequired);
  for (const json& place : places == nullptr ? json::array() : *places) {
    if (!place.is_number_unsigned()) return in.refuse("places", "expected places of values."), ready;
    ready.places.push_back(place.get<size_t>());
  }
  return ready;
}

SourceKnob read_knob(Reader& in) {
  SourceKnob knob;
  in.read("name", knob.name, json_input::kRequired);
  in.read("first", knob.first, 0, INT32_MAX, json_input::kRequired);
  const json *numbers = in.list("numbers"), *words = in.list("words");
  for (const json& v : numbers == nullptr ? json::array() : *numbers) {
    if (!v.is_number_integer()) return in.refuse("numbers", "expected integers."), knob;
    knob.numbers.push_back(v.get<int64_t>());
  }
  for (const json& v : words == nullptr ? json::array() : *words) {
    if (!v.is_string()) return in.refuse("words", "expected words."), knob;
    knob.words.push_back(v.get<std::string>());
  }
  if (!std::ranges::is_sorted(knob.numbers) || (!knob.numbers.empty() && !knob.words.empty()))
    in.refuse("numbers", "expected either numbers, ascending, or words.");
  return knob;
}

// `text_of`: of each file.
template <class F>
std::string document(const SourceKernel& k, const F& text_of) {
  json head = {{"language", word(k.language, kSourceLanguages)},
               {"source", k.source},
               {"function", k.function},
               {"sizes", k.sizes},
               {"compiler", k.compiler},
               {"flags", k.flags},
               {"flops", k.flops},
               {"bytes", k.bytes}};
  json arguments = json::array(), knobs = json::array(), constraints = json::array(), files = json::array();
  for (const SourceArgument& a : k.arguments) arguments.push_back(to_json(a));
  for (const SourceKnob& knob : k.knobs) {
    json one = {{"name", knob.name}, {"first", knob.first}};
    if (knob.words.empty())
      one["numbers"] = knob.numbers;
    else
      one["words"] = knob.words;
    knobs.push_back(std::move(one));
  }
  for (const Formula& constraint : k.constraints) constraints.push_back(constraint.text());
  std::string bytes;
  for (const SourceFile& file : k.files) {
    const std::string text = text_of(file);
    files.push_back({{"name", file.name}, {"bytes", text.size()}});
    bytes += text;
  }
  head["arguments"] = std::move(arguments);
  head["knobs"] = std::move(knobs);
  head["constraints"] = std::move(constraints);
  head["files"] = std::move(files);
  head["reference"] = {{"from", word(k.reference.from, kFrom)},
                       {"source", k.reference.source},
                       {"function", k.reference.function},
                       {"arrays", k.reference.arrays}};
  if (!k.reference.flags.empty()) head["reference"]["flags"] = k.reference.flags;
  if (k.command)
    head["command"] = {{"build", k.command->build},
                       {"run", k.command->run},
                       {"environment", k.command->environment},
                       {"pattern", k.command->pattern},
                       {"unit", k.command->unit}};
  if (k.launch) head["launch"] = to_json(*k.launch);
  for (const ReadyKernel& ready : k.ready) head["ready"].push_back(to_json(ready));
  // Whatever bytes a text has, the head is valid UTF-8 and one line.
  return str(kHead, head.dump(-1, ' ', true, json::error_handler_t::replace), "\n", bytes);
}

void read_command(Reader& in, SourceKernel& k) {
  in.read_object("command", [&](Reader& one) {
    SourceCommand& command = k.command.emplace();
    read_texts(one, "build", command.build);
    read_texts(one, "run", command.run);
    one.read("pattern", command.pattern, json_input::kRequired);
    one.read("unit", command.unit, json_input::kRequired);
    const json* environment = one.get("environment", json_input::kRequired);
    if (environment == nullptr || !environment->is_object()) return;
    for (const auto& [name, value] : environment->items()) {
      if (!value.is_string()) return one.refuse("environment", "expected texts.");
      command.environment[name] = value.get<std::string>();
    }
  });
}

Status read_files(Reader& in, std::string_view bytes, SourceKernel& k) {
  in.read_objects(
      "files",
      [&](Reader& file) {
        SourceFile one;
        size_t length = 0;
        file.read("name", one.name, json_input::kRequired);
        file.read("bytes", length, 0, int64_t{1} << 40, json_input::kRequired);
        if (file.failed()) return;
        if (length > bytes.size()) return file.refuse("bytes", "the document is torn.");
        one.text = bytes.substr(0, length);
        bytes.remove_prefix(length);
        k.files.push_back(std::move(one));
      },
      json_input::kRequired);
  if (!in.failed() && !bytes.empty()) in.refuse("files", bytes.size(), " bytes belong to no file.");
  if (!in.failed() && (!std::ranges::is_sorted(k.files, {}, &SourceFile::name) ||
                       std::ranges::adjacent_find(k.files, {}, &SourceFile::name) != k.files.end()))
    in.refuse("files", "expected names once, in their order.");
  return in.status();
}

}  // namespace

std::string source_document(const SourceKernel& kernel) {
  return document(kernel, [](const SourceFile& file) { return file.text; });
}

std::string source_digest(const SourceKernel& kernel) {
  // What is a comment in a file of a command, or in one that is compiled already, nobody here knows.
  return sha256_hex(document(kernel, [&](const SourceFile& file) {
    const bool as_it_is = kernel.command || kernel.is_ready_file(file.name) || file.name.ends_with(".npy");
    return as_it_is ? file.text : normalized_source(file.text);
  }));
}

Result<std::shared_ptr<const SourceKernel>> parse_source_document(std::string_view bytes) {
  if (!bytes.starts_with(kHead))
    return invalid_argument("expected a kernel's document, which begins with \"tuner-kernel 1\"");
  bytes.remove_prefix(kHead.size());
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return invalid_argument("a kernel's document is torn");
  ASSIGN_OR_RETURN(const json head, json_input::parse(bytes.substr(0, end)));
  auto k = std::make_shared<SourceKernel>();
  Reader in(head, "kernel: ");
  read_word(in, "language", k->language, kSourceLanguages);
  in.read("source", k->source, json_input::kRequired);
  in.read("function", k->function, json_input::kRequired);
  const json* sizes = in.get("sizes", json_input::kRequired);
  if (sizes != nullptr && sizes->is_object())
    for (const auto& [name, value] : sizes->items()) {
      if (!value.is_number_integer()) return invalid_argument("kernel: sizes: expected integers");
      k->sizes[name] = value.get<int64_t>();
    }
  in.read("compiler", k->compiler, json_input::kRequired);
  read_texts(in, "flags", k->flags);
  in.read("flops", k->flops, 0, INT64_MAX);
  in.read("bytes", k->bytes, 0, INT64_MAX);
  in.read_objects(
      "arguments", [&](Reader& one) { k->arguments.push_back(read_argument(one)); }, json_input::kRequired);
  in.read_objects(
      "knobs", [&](Reader& one) { k->knobs.push_back(read_knob(one)); }, json_input::kRequired);
  std::vector<std::string> constraints;
  read_texts(in, "constraints", constraints);
  in.read_object(
      "reference",
      [&](Reader& reference) {
        read_word(reference, "from", k->reference.from, kFrom);
        reference.read("source", k->reference.source);
        reference.read("function", k->reference.function);
        if (reference.get("flags") != nullptr) read_texts(reference, "flags", k->reference.flags);
        const json* arrays = reference.get("arrays");
        if (arrays == nullptr || !arrays->is_object()) return;
        for (const auto& [output, file] : arrays->items())
          if (file.is_string()) k->reference.arrays[output] = file.get<std::string>();
      },
      json_input::kRequired);
  read_command(in, *k);
  in.read_object("launch", [&](Reader& one) { k->launch = stored_launch(one); });
  in.read_objects("ready", [&](Reader& one) { k->ready.push_back(stored_ready(one)); });
  RETURN_IF_ERROR(read_files(in, bytes.substr(end + 1), *k));
  for (const std::string& text : constraints) {
    ASSIGN_OR_RETURN(Formula formula, Formula::parse(text));
    k->constraints.push_back(std::move(formula));
  }
  RETURN_IF_ERROR(check_source_kernel(*k));
  return std::shared_ptr<const SourceKernel>(std::move(k));
}

}  // namespace tuner

// The keys of a job file's entry that only kernels of a GPU have: grid, block, shared_bytes, configs.
#include <algorithm>
#include <map>

#include "templates/source_kernel/foreign_program.h"
#include "templates/source_kernel/source_kernel_json.h"

namespace tuner {
namespace {

using json_input::found;
using json_input::Reader;
using nlohmann::json;

constexpr size_t kMostImageBytes = size_t{64} << 20;

bool read_formula(Reader& in, const std::string& key, const json& value, std::vector<Formula>& list) {
  const Result<Formula> read = value.is_number_integer() ? Formula::parse(value.dump())
                               : value.is_string()
                                   ? Formula::parse(value.get_ref<const std::string&>())
                                   : invalid_argument("expected an integer or an expression in quotes");
  if (read) list.push_back(*read);
  if (!read) in.refuse(key, read.message(), "; found ", found(value), ".");
  return read.is_ok();
}

// One expression, or a list of up to three. Leaves `axes` as it is where the key is missing.
void read_axes(Reader& in, const std::string& key, std::vector<Formula>& axes) {
  const json* value = in.get(key);
  if (value == nullptr) return;
  axes.clear();
  if (!value->is_array()) {
    read_formula(in, key, *value, axes);
    return;
  }
  if (value->empty() || value->size() > 3)
    return in.refuse(key, "expected 1 to 3 expressions: x, y, z; found ", found(*value), ".");
  for (size_t i = 0; i < value->size(); ++i)
    if (!read_formula(in, str(key, "[", i, "]"), (*value)[i], axes)) return;
}

void read_launch_keys(Reader& in, SourceLaunch& launch) {
  read_axes(in, "grid", launch.grid);
  read_axes(in, "block", launch.block);
  std::vector<Formula> shared;
  if (const json* value = in.get("shared_bytes");
      value != nullptr && read_formula(in, "shared_bytes", *value, shared))
    launch.shared_bytes = shared.front();
}

void require_keys(Reader& in, const SourceLaunch& launch) {
  if (launch.grid.empty())
    in.refuse("grid", "expected how many blocks there are: [\"rows\"]; it is missing.");
  if (launch.block.empty())
    in.refuse("block", "expected how many threads a block has: [\"THREADS\"]; it is missing.");
}

// The configs that "configs" names, and the knobs that they make together.
class ConfigTable {
 public:
  void add(Reader& in, const json& config) {
    if (!config.is_object() || config.empty())
      return in.refuse("config", "expected an object of knobs and values: {\"TILE\": 8}, found ",
                       found(config), ".");
    std::map<std::string, json> row;
    for (const auto& [name, value] : config.items()) {
      if (!value.is_number() && !value.is_string())
        return in.refuse("config." + name, "expected an integer, a number or a word, found ", found(value),
                         value.is_boolean() ? "; write 0 and 1." : ".");
      if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        return in.refuse("config." + name, "expected an integer of 64 bits, found ", found(value), ".");
      row[name] = value;
    }
    if (!rows_.empty() && !std::ranges::equal(row, rows_.front(), {}, first_of, first_of))
      return in.refuse("config", "expected the knobs of configs[0], found ", found(config), ".");
    rows_.push_back(std::move(row));
  }
  void finish(SourceKernel& kernel) const {
    for (const auto& one : rows_.front()) {
      const std::string& name = one.first;
      SourceKnob knob{.name = name};
      const bool integers =
          std::ranges::all_of(rows_, [&](const auto& row) { return row.at(name).is_number_integer(); });
      for (const auto& row : rows_) {
        if (integers)
          knob.numbers.push_back(row.at(name).template get<int64_t>());
        else if (std::ranges::find(knob.words, word_of(row.at(name))) == knob.words.end())
          knob.words.push_back(word_of(row.at(name)));
      }
      std::ranges::sort(knob.numbers);
      knob.numbers.erase(std::unique(knob.numbers.begin(), knob.numbers.end()), knob.numbers.end());
      knob.first = place_of(knob, one.second);
      for (size_t i = 0; i < rows_.size(); ++i)
        kernel.ready[i].places.push_back(place_of(knob, rows_[i].at(name)));
      kernel.knobs.push_back(std::move(knob));
    }
  }

 private:
  using Row = std::map<std::string, json>;
  static const std::string& first_of(const Row::value_type& item) { return item.first; }
  static std::string word_of(const json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  static size_t place_of(const SourceKnob& knob, const json& value) {
    size_t place = 0;
    while (place < knob.size() && knob.text(place) != word_of(value)) ++place;
    return place;
  }
  std::vector<Row> rows_;
};

void add_image(Reader& in, const JobFolder& folder, const std::string& name, SourceKernel& kernel) {
  if (in.failed() || kernel.file(name) != nullptr) return;
  const Status right = check_file_name(name);
  Result<std::string> bytes = right ? folder.read(name, kMostImageBytes) : right;
  if (!bytes) return in.refuse("file", bytes.message());
  kernel.files.push_back({name, *std::move(bytes)});
}

}  // namespace

void read_launch(Reader& in, SourceKernel& kernel) {
  read_launch_keys(in, kernel.launch.emplace());
  require_keys(in, *kernel.launch);
}

void read_ready_kernels(Reader& in, const JobFolder& folder, SourceKernel& kernel) {
  ReadyKernel usual;
  in.read("function", usual.function);
  read_launch_keys(in, usual.launch);
  const json* list = in.list("configs", json_input::kRequired);
  if (list == nullptr) return;
  if (list->empty() || list->size() > kMostReadyKernels)
    return in.refuse("configs", "expected 1 to ", kMostReadyKernels, " entries, found ", list->size(), ".");
  ConfigTable table;
  for (size_t i = 0; i < list->size() && !in.failed(); ++i) {
    if (!(*list)[i].is_object())
      return in.refuse(str("configs[", i, "]"), "expected an object, found ", found((*list)[i]), ".");
    Reader row((*list)[i], str("configs[", i, "]."));
    ReadyKernel ready = usual;
    if (const json* config = row.get("config", json_input::kRequired)) table.add(row, *config);
    row.read("file", ready.file, json_input::kRequired);
    row.read("function", ready.function, usual.function.empty());
    read_launch_keys(row, ready.launch);
    require_keys(row, ready.launch);
    add_image(row, folder, ready.file, kernel);
    in.refuse_all(row.finish());
    kernel.ready.push_back(std::move(ready));
  }
  if (!in.failed()) table.finish(kernel);
}

}  // namespace tuner

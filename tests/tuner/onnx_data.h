// ONNX's own test data (Debian's libonnx-testdata): a model of mostly one operator each, with inputs and
// answers. What the tests share that run it: sets of tensors from files, how a model is read with them, what
// is close, and the walk over all. TUNER_ONNX_TEST=add takes only models with this in their names.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "compiler_core/base/input_file.h"
#include "compiler_core/oracle/oracle.h"
#include "tuner/model/read_model.h"

namespace tuner::testing {

// Inputs, and the answers to them.
struct OnnxData {
  std::vector<graph::Value> inputs, outputs;

  // Returns the input that the model calls `name`; if none is called so, the one at that place.
  const graph::Value& input(const std::string& name, size_t place) const {
    const auto named = std::ranges::find(inputs, name, &graph::Value::name);
    return named != inputs.end() ? *named : inputs.at(place);
  }
};

// Returns the data as the model has their types: files of tensors hold bfloat16 as its bits, in uint16.
// InvalidArgument: an input has not as many elements as the model says, as in some data of ONNX.
inline Result<OnnxData> fitted(OnnxData data, const graph::Graph& model) {
  const auto take_type = [](graph::Value& value, const graph::TensorType& type) {
    if (value.type.dtype == DType::kUInt16 && type.dtype == DType::kBFloat16) value.type.dtype = type.dtype;
  };
  for (size_t k = 0; k < model.inputs.size(); ++k) {
    const graph::Value& wanted = model[model.inputs[k]];
    const auto place = &data.input(wanted.name, k) - data.inputs.data();
    graph::Value& given = data.inputs[static_cast<size_t>(place)];
    take_type(given, wanted.type);
    if (given.type.elements() != wanted.type.elements())
      return invalid_argument("its data hold ", to_text(given.type), " for ", to_text(wanted.type));
  }
  for (size_t k = 0; k < std::min(data.outputs.size(), model.outputs.size()); ++k)
    take_type(data.outputs[k], model[model.outputs[k]].type);
  return data;
}

inline Result<std::vector<graph::Value>> onnx_tensors(const std::filesystem::path& folder,
                                                      const std::string& kind) {
  std::vector<graph::Value> values;
  for (size_t i = 0;; ++i) {
    const std::filesystem::path file = folder / str(kind, "_", i, ".pb");
    if (!std::filesystem::exists(file)) return values;
    ASSIGN_OR_RETURN(const std::string bytes, read_whole(file.string()));
    auto value = read_tensor(bytes);
    if (!value) return value.status().with_context(str(kind, " ", i, ": "));
    values.push_back(*std::move(value));
  }
}

inline Result<std::vector<OnnxData>> onnx_data_sets(const std::filesystem::path& folder) {
  std::vector<OnnxData> sets;
  for (size_t i = 0;; ++i) {
    const std::filesystem::path set = folder / str("test_data_set_", i);
    if (!std::filesystem::exists(set)) return sets;
    ASSIGN_OR_RETURN(std::vector<graph::Value> inputs, onnx_tensors(set, "input"));
    ASSIGN_OR_RETURN(std::vector<graph::Value> outputs, onnx_tensors(set, "output"));
    sets.push_back({std::move(inputs), std::move(outputs)});
  }
}

inline bool asks_for_constant(const std::string& refusal) {
  return refusal.find("expected a constant") != std::string::npos;
}

// Returns what `read` makes of the model's options. Integers and scales that shapes depend on come as inputs
// here, where models have constants: a model that asks for a constant is read again with all inputs but the
// first as constants, then with all.
template <class Read>
auto read_with(const OnnxData& data, const Read& read) {
  const auto with_constants_from = [&](size_t first) {
    ModelOptions options;
    for (size_t i = first; i < data.inputs.size(); ++i)
      options.constants[data.inputs[i].name] = data.inputs[i];
    return read(options);
  };
  auto result = with_constants_from(data.inputs.size());
  for (const size_t first : {size_t{1}, size_t{0}})
    if (!result && asks_for_constant(result.message()) && first < data.inputs.size())
      result = with_constants_from(first);
  return result;
}

// The tolerances are ONNX's own.
inline bool close(double found, double expected, DType dtype) {
  constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
  if (std::isnan(expected)) return std::isnan(found);
  if (found == expected) return true;
  const double relative = dtype == DType::kBFloat16 ? 1.0 / 128 : kRelative;
  return std::fabs(found - expected) <= kAbsolute + relative * std::fabs(expected);
}

// Returns what is wrong with a model's outputs, of these types and with these elements; empty: nothing.
inline std::string difference(const OnnxData& data, const std::vector<graph::TensorType>& types,
                              const std::vector<std::vector<double>>& found) {
  if (found.size() < data.outputs.size())
    return str("there are ", found.size(), " outputs, expected ", data.outputs.size());
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    const graph::Value& expected = data.outputs[i];
    const graph::TensorType& type = types.at(i);
    if (type != expected.type)
      return str("output ", i, " is ", to_text(type), ", expected ", to_text(expected.type));
    const std::vector<double> numbers = expected.constant->numbers(type.dtype);
    for (size_t e = 0; e < numbers.size(); ++e)
      if (!close(found[i][e], numbers[e], type.dtype))
        return str("output ", i, ", element ", e, " is ", found[i][e], ", expected ", numbers[e]);
  }
  return "";
}

// One of the three: right; refused, and why; wrong, and what.
struct OnnxOutcome {
  bool right = false;
  std::string refused, wrong;
};
// Runs the model of this file on one set of data.
using OnnxTrial = std::function<OnnxOutcome(const std::filesystem::path& model, const OnnxData& data)>;

// Why a model is refused whose data are no tensors: they may be sequences, of which the model tells what they
// are.
inline std::string refusal_without_data(const std::filesystem::path& model, const std::string& of_data) {
  const auto bytes = read_whole(model.string());
  if (!bytes) return bytes.message();
  const auto graph = read_model(*bytes, nullptr, {}, interpret);
  return graph || asks_for_constant(graph.message()) ? of_data : graph.message();
}

// A model is right if it is on every set.
inline OnnxOutcome outcome_of(const std::filesystem::path& folder, const OnnxTrial& trial) {
  const auto sets = onnx_data_sets(folder);
  if (!sets) return {.refused = refusal_without_data(folder / "model.onnx", sets.message())};
  if (sets->empty()) return {.refused = "no data"};
  for (const OnnxData& data : *sets)
    if (OnnxOutcome outcome = trial(folder / "model.onnx", data); !outcome.right) return outcome;
  return {.right = true};
}

// Returns a refusal without what it says of one model: path, node, numbers and quoted words.
inline std::string kind_of(const std::string& refused) {
  static const std::regex kPlace("^(/[^:]*: )?(node .* \\([^)]*\\): )?"), kQuoted("\"[^\"]*\""),
      kNumber("[0-9]+");
  std::string kind = std::regex_replace(refused, kPlace, "");
  kind = std::regex_replace(kind, kQuoted, "\"...\"");
  return std::regex_replace(kind, kNumber, "N");
}

// Every model, or one of so many: those whose number is `rest` modulo `of`.
struct OnnxShare {
  size_t of = 1, rest = 0;
};
// Tries the models in the order of their names, and prints the refusals, each and by kind. Expects that no
// model is wrong, that reasons of refusals are one line, and that as many models are right as of the data of
// ONNX 1.12, or about their share.
inline void try_onnx_data(const std::filesystem::path& root, const OnnxTrial& trial,
                          const OnnxShare& share = {}) {
  constexpr size_t kRight = 857;
  const char* only = std::getenv("TUNER_ONNX_TEST");
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  size_t right = 0, wrong = 0, refused = 0, number = 0;
  std::map<std::string, size_t> kinds;
  for (const char* kind : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    std::vector<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(root / kind)) folders.push_back(entry);
    std::ranges::sort(folders);
    for (const std::filesystem::path& folder : folders) {
      const std::string name = folder.filename().string();
      if (only != nullptr && name.find(only) == std::string::npos) continue;
      if (only == nullptr && number++ % share.of != share.rest) continue;
      const OnnxOutcome outcome = outcome_of(folder, trial);
      EXPECT_EQ(outcome.wrong, "") << name << "; again: TUNER_ONNX_TEST=" << name << " " << program;
      EXPECT_EQ(std::ranges::count(outcome.refused, '\n'), 0) << name << ": " << outcome.refused;
      right += outcome.right ? 1 : 0;
      wrong += outcome.wrong.empty() ? 0 : 1;
      if (outcome.refused.empty()) continue;
      ++refused;
      ++kinds[kind_of(outcome.refused)];
      std::cout << name << " is refused: " << outcome.refused << "\n";
    }
  }
  for (const auto& [kind, count] : kinds) std::cout << count << " refused: " << kind << "\n";
  std::cout << right << " models are right, " << refused << " refused, " << wrong << " wrong\n";
  if (only == nullptr) {
    EXPECT_GE(right, share.of == 1 ? kRight : kRight / (share.of + 1));
  }
}

}  // namespace tuner::testing

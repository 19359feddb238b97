// Lays the structs of a model's table out as bytes: what the tables of CPUs and GPUs share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/codegen/library.h"
#include "compiler_core/runtime/model_library.h"
#include "tuner/model/placed_model.h"

namespace tuner {

// Lays structs out one behind the other, and notes which of their members are addresses.
class TableWriter {
 public:
  explicit TableWriter(std::string symbol) { table_.symbol = std::move(symbol); }

  template <class T>
  size_t put(const T* items, size_t count) {
    table_.bytes.resize((table_.bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const size_t at = table_.bytes.size();
    table_.bytes.append(reinterpret_cast<const char*>(items), sizeof(T) * count);
    return at;
  }
  // At a multiple of 64, with a byte 0 behind.
  size_t put_file(std::string_view bytes) {
    table_.bytes.resize((table_.bytes.size() + 63) / 64 * 64);
    const size_t at = table_.bytes.size();
    table_.bytes.append(bytes).push_back('\0');
    return at;
  }
  void point(size_t at, size_t to) { table_.addresses.push_back({at, "", to}); }
  void point(size_t at, const std::string& symbol) { table_.addresses.push_back({at, symbol}); }
  // The same text stands there once.
  void text(size_t at, const std::string& text) {
    const auto known = std::ranges::find(texts_, text, &std::pair<std::string, size_t>::first);
    if (known != texts_.end()) return point(at, known->second);
    texts_.emplace_back(text, put(text.c_str(), text.size() + 1));
    point(at, texts_.back().second);
  }

  ConstantTable finish() {
    std::ranges::sort(table_.addresses, {}, &ConstantTable::Address::at);
    return std::move(table_);
  }

 private:
  ConstantTable table_;
  std::vector<std::pair<std::string, size_t>> texts_;
};

// The beginning of the table, but for what it points to.
tuner_model table_head(const ModelToPack& model, const PlacedModel& placed);
// Points the head at byte `at` of the table to all but its steps.
void point_head(TableWriter& table, const ModelToPack& model, const PlacedModel& placed, size_t at = 0);

}  // namespace tuner

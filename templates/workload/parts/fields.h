// WorkloadFields: how an operator describes its workload, once for all users.
//
// describe(workload, fields) of an operator hands each field to `fields`, with its names and what is known of
// it. Keys and job files, both ways, and checks are each such a `WorkloadFields` (workload_key.cpp,
// workload_json.cpp, workload_check.cpp); none of them names an operator. A key has its words, and a job file
// its keys, in the order of the description. A reader sets the values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/dtype.h"
#include "compiler_core/base/status.h"
#include "templates/workload/parts/activation.h"
#include "templates/workload/parts/epilogue_part.h"

namespace tuner {

// Whether there is a residual, and where: among the other parts, or behind the activation.
enum class ResidualPlace : uint8_t { kNone, kUsual, kLast };

struct FieldInfo {
  std::string_view word;       // in a key
  std::string_view json = {};  // in a job file, if it is not the word
  std::string_view name = {};  // in messages of validate(), if it is not the job file's
  int64_t least = 1;           // of an integer
  bool required = false;       // a job file must have it. Others may lack it, and do where they are as usual
  bool may_lack = false;       // a key lacks it where it is as usual: keys from before it existed stay good

  std::string_view json_key() const { return json.empty() ? word : json; }
  std::string_view said_name() const { return name.empty() ? json_key() : name; }
};

// Several extents, which job files have as one list: "kernel": [3, 3].
struct ShapeInfo {
  std::string_view json;
  std::string_view order;  // "[height, width]"
  bool required = true;
};
struct ExtentInfo {
  std::string_view word;  // in a key; empty: it follows from others, and only job files have it
  std::string_view name;  // in messages of validate()
  int64_t& value;
};

class WorkloadFields {
 public:
  virtual ~WorkloadFields() = default;

  // An integer of at least field.least.
  virtual void extent(const FieldInfo& field, int64_t& value) = 0;
  virtual void shape(const ShapeInfo& shape, std::initializer_list<ExtentInfo> extents) = 0;
  // A number for both dimensions of an image, [vertical, horizontal], usually 1; and one for each side of it,
  // [top, left, bottom, right], usually 0.
  virtual void pair(const FieldInfo& field, std::array<int64_t, 2>& values) = 0;
  virtual void sides(const FieldInfo& field, std::array<int64_t, 4>& values) = 0;
  // Usually false.
  virtual void flag(const FieldInfo& field, bool& value) = 0;
  virtual void number(const FieldInfo& field, double& value, double least, double most) = 0;
  // One of the names, told by its place.
  virtual void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t& place) = 0;
  // A type, in a job file one of `served`.
  virtual void type(const FieldInfo& field, DType& value, std::span<const DType> served, DType usual) = 0;
  virtual void layout(const FieldInfo& field, std::string& value, std::string_view usual) = 0;
  virtual void activation(const FieldInfo& field, Activation& value) = 0;
  virtual void residual(const FieldInfo& field, ResidualPlace& value) = 0;
  virtual void order(const FieldInfo& field, std::vector<EpiloguePart>& parts) = 0;
  // Names of operands, a part of `known`; sorted.
  virtual void operands(const FieldInfo& field, std::vector<std::string>& names,
                        const std::vector<std::string>& known) = 0;
  // All of a key behind the name of the operator. parse() says what is wrong with it, and sets what follows
  // from it.
  virtual void text(const FieldInfo& field, std::string& value,
                    const std::function<Status(const std::string&)>& parse) = 0;

  // True of job files, which have shapes where keys have extents.
  virtual bool has_shapes() const { return false; }
  // True while a job file is read. refuse() then says what is wrong with one of its keys; validate() says it
  // of others.
  virtual bool reads_shapes() const { return false; }
  virtual void refuse(std::string_view /*json_key*/, const std::string& /*why*/) {}

  // The same for an enumeration whose values are 0, 1, ...
  template <class Enum>
  void choice_of(const FieldInfo& field, std::span<const std::string_view> names, Enum& value) {
    auto place = static_cast<size_t>(value);
    choice(field, names, place);
    value = static_cast<Enum>(place);
  }
};

}  // namespace tuner

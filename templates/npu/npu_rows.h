// Shared by templates for whole rows in the NPU's vector unit.
//
//   for tile of rows             `stages` of them on their way
//     load the rows              padded to whole words
//     softmax or norm            one instruction
//     store the rows
//
// A matrix of one row has no loop over tiles.
#pragma once

#include <string_view>
#include <vector>

#include "compiler_core/te/te.h"
#include "templates/schedule_template.h"

namespace tuner::npu_rows {

struct RowKnobs {
  ChoiceKnob tile, stages;
};

struct RowShape {
  int64_t rows = 0, columns = 0;
  DType dtype = DType::kUInt8;
};

// What programs of rows are written with: places in the matrix, and numbers of a row.
class RowMath {
 public:
  explicit RowMath(const RowShape& shape) : shape_(shape), builder_("program", shape.dtype) {
    x_ = builder_.input("in0", extents());
  }
  te::Builder& builder() { return builder_; }
  // A number per row, from the terms of its elements. `f`: of the place of a row, and an element.
  Buffer per_row(const char* called, ReduceOp op,
                 const std::function<Expr(const te::Indices& row, const Expr& element)>& f);
  // Stage "y", and its copy, the result. `f`: of the place of a row, the column and the element.
  Program finish(
      const std::function<Expr(const te::Indices& row, const Expr& column, const Expr& element)>& f);

 private:
  std::vector<int64_t> rows() const {
    return shape_.rows == 1 ? std::vector<int64_t>{} : std::vector{shape_.rows};
  }
  std::vector<int64_t> extents() const;
  Expr element(te::Indices row, const Expr& column) const;

  const RowShape shape_;
  te::Builder builder_;
  Buffer x_;
};

// A template for programs of one operator whose first input is a matrix of bytes.
class RowTemplate : public ScheduleTemplate<ProgramWorkload, RowKnobs> {
 public:
  using ScheduleTemplate::supports;
  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  Support supports(const ProgramWorkload& w, const Target& t) const override;
  RowKnobs declare(ConfigSpace& space, const ProgramWorkload& w, const Target& t) const override;
  void schedule(Schedule& s, const ProgramWorkload& w, const Target& t, const RowKnobs& k,
                const Config& c) const override;

 protected:
  // `in_registers`: stages of a number per row, each before those that read it.
  RowTemplate(std::string_view name, std::string_view op, std::vector<const char*> in_registers)
      : name_(name), op_(op), in_registers_(std::move(in_registers)) {}
  // Why other inputs than the matrix are not served; empty: they are.
  virtual std::string lacks(const graph::Graph& g) const = 0;
  // Of a program that it serves.
  static RowShape shape_of(const ProgramWorkload& w);

 private:
  const std::string_view name_, op_;
  const std::vector<const char*> in_registers_;
};

}  // namespace tuner::npu_rows

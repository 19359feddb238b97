// Shared by templates for whole rows in the NPU's vector unit.
//
//   for tile of rows             `stages` of them on their way
//     load the rows              padded to whole words
//     softmax or norm            one instruction
//     store the rows
#pragma once

#include "templates/schedule_template.h"

namespace tuner::npu_rows {

struct RowKnobs {
  ChoiceKnob tile, stages;
};

struct RowShape {
  int64_t rows = 0, columns = 0;
  DType dtype = DType::kUInt8;
};
// Of a program of one node `op` whose first input is a matrix of bytes; nothing for others: `why` says so.
std::optional<RowShape> rows_of_program(const ProgramWorkload& w, std::string_view op, std::string& why);
// Whether rows of this length are an instruction's.
Support serves_rows(const RowShape& shape, const Target& t);
RowKnobs declare_rows(ConfigSpace& space, const RowShape& shape, const Target& t);
// `in_registers`: stages of a number per row, each before those that read it. The result is stage "y".
void schedule_rows(Schedule& s, const RowShape& shape, const Target& t,
                   std::initializer_list<const char*> in_registers, int64_t tile, int64_t stages);

}  // namespace tuner::npu_rows

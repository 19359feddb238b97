#include "compiler_core/npu/timeline.h"

#include "compiler_core/base/status.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/text.h"

namespace tuner::npu {

// Names of machines and texts of instructions have no character that JSON escapes.
std::string trace_json(const Machine& machine, const Code& code, const std::vector<Span>& timeline) {
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)"
                    "\n";
  out += str(R"({"name":"process_name","ph":"M","pid":0,"args":{"name":")", machine.name(), "\"}}");
  for (int q = 0; q < kQueues; ++q)
    out += str(",\n", R"({"name":"thread_name","ph":"M","pid":0,"tid":)", q, R"(,"args":{"name":")",
               name_of(static_cast<Queue>(q)), "\"}}");
  for (const Span& s : timeline) {
    const Instruction& i = code[s.instruction];
    out += str(",\n", R"({"name":")", row_of(i.op).name, R"(","ph":"X","pid":0,"tid":)",
               static_cast<int>(s.queue), R"(,"ts":)", s.first_step, R"(,"dur":)", s.last_step - s.first_step,
               R"(,"args":{"instruction":)", s.instruction, R"(,"text":")", text_of(i), R"(","dispatch":)",
               s.dispatch, R"(,"start":)", s.start, R"(,"end":)", s.end, "}}");
  }
  return out + "\n]}\n";
}

}  // namespace tuner::npu

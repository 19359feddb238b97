// replay: a trace, run again. One call a line, in the words that trace() prints; what follows " -> " is for
// people.
#include <charconv>
#include <functional>
#include <map>

#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// "a, {b, c}, d" -> a | {b, c} | d
std::vector<std::string_view> arguments(std::string_view text) {
  std::vector<std::string_view> found;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '{') ++depth;
    if (i < text.size() && text[i] == '}') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (const std::string_view part = trimmed(text.substr(begin, i - begin)); !part.empty())
      found.push_back(part);
    begin = i + 1;
  }
  return found;
}

Result<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid_argument("expected a number, found \"", text, "\"");
  return value;
}

Result<std::vector<std::string_view>> list(std::string_view text) {
  if (text.size() < 2 || text.front() != '{' || text.back() != '}')
    return invalid_argument("expected a list {...}, found \"", text, "\"");
  return arguments(text.substr(1, text.size() - 2));
}

Result<MemoryScope> scope(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(MemoryScope::kFragment); ++i)
    if (memory_scope_name(static_cast<MemoryScope>(i)) == text) return static_cast<MemoryScope>(i);
  return invalid_argument("\"", text, "\" is not a memory scope");
}

Result<LoopKind> loop_kind(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(LoopKind::kClusterY); ++i)
    if (loop_kind_name(static_cast<LoopKind>(i)) == text) return static_cast<LoopKind>(i);
  return invalid_argument("\"", text, "\" is not a kind of loop");
}

Result<PackDim> pack_dim(std::string_view text) {
  const size_t mark = text.find_first_of("/%");
  PackDim dim;
  ASSIGN_OR_RETURN(const int64_t of, number(text.substr(0, mark)));
  dim.dim = static_cast<int>(of);
  if (mark == std::string_view::npos) return dim;
  const size_t end = std::min(text.find_first_of("*~", mark), text.size());
  ASSIGN_OR_RETURN(dim.factor, number(text.substr(mark + 1, end - mark - 1)));
  if (end < text.size()) {
    ASSIGN_OR_RETURN((text[end] == '*' ? dim.multiple : dim.repeat), number(text.substr(end + 1)));
  }
  dim.inner = text[mark] == '%';
  return dim;
}

Result<std::vector<Axis>> axes(Schedule& s, std::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> names, list(text));
  std::vector<Axis> found;
  for (std::string_view name : names) found.push_back(s.axis(name));
  return found;
}

using Arguments = std::vector<std::string_view>;
struct Call {
  size_t arguments;
  std::function<Status(Schedule&, const Arguments&)> run;
};

using Calls = std::map<std::string_view, Call>;

// Of loops.
Calls loop_calls() {
  return {
      {"split",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const int64_t factor, number(a[1]));
          s.split(s.axis(a[0]), factor);
          return Status::ok();
        }}},
      {"fuse",
       {1,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const std::vector<Axis> found, axes(s, a[0]));
          s.fuse(found);
          return Status::ok();
        }}},
      {"reorder",
       {1,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const std::vector<Axis> found, axes(s, a[0]));
          s.reorder(found);
          return Status::ok();
        }}},
      {"rename",
       {2,
        [](Schedule& s, const Arguments& a) {
          s.rename(s.axis(a[0]), a[1]);
          return Status::ok();
        }}},
      {"parallel",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.parallel(s.axis(a[0]));
          return Status::ok();
        }}},
      {"vectorize",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.vectorize(s.axis(a[0]));
          return Status::ok();
        }}},
      {"vectorize_rows",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.vectorize_rows(s.axis(a[0]));
          return Status::ok();
        }}},
      {"tensorize",
       {2,
        [](Schedule& s, const Arguments& a) {
          s.tensorize(s.axis(a[0]), a[1]);
          return Status::ok();
        }}},
      {"unroll",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.unroll(s.axis(a[0]));
          return Status::ok();
        }}},
      {"dot",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.dot(s.axis(a[0]));
          return Status::ok();
        }}},
      {"bind",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const LoopKind kind, loop_kind(a[1]));
          s.bind(s.axis(a[0]), kind);
          return Status::ok();
        }}},
  };
}

// Of stages: where and when a buffer is computed.
Calls stage_calls() {
  return {
      {"cache_write",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const MemoryScope memory, scope(a[1]));
          s.cache_write(s.tensor(a[0]), memory);
          return Status::ok();
        }}},
      {"cache_read",
       {3,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const MemoryScope memory, scope(a[1]));
          s.cache_read(s.tensor(a[0]), memory, s.tensor(a[2]));
          return Status::ok();
        }}},
      {"set_scope",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const MemoryScope memory, scope(a[1]));
          s.set_scope(s.tensor(a[0]), memory);
          return Status::ok();
        }}},
      {"compute_at",
       {2,
        [](Schedule& s, const Arguments& a) {
          s.compute_at(s.tensor(a[0]), s.axis(a[1]));
          return Status::ok();
        }}},
      {"inline_compute",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.inline_compute(s.tensor(a[0]));
          return Status::ok();
        }}},
      {"decompose_reduction",
       {2,
        [](Schedule& s, const Arguments& a) {
          s.decompose_reduction(s.tensor(a[0]), s.axis(a[1]));
          return Status::ok();
        }}},
      {"pack",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const std::vector<std::string_view> texts, list(a[1]));
          std::vector<PackDim> dims;
          for (std::string_view text : texts) {
            ASSIGN_OR_RETURN(const PackDim dim, pack_dim(text));
            dims.push_back(dim);
          }
          s.pack(s.tensor(a[0]), std::move(dims));
          return Status::ok();
        }}},
  };
}

// Of reductions, of what is known beforehand.
Calls other_calls() {
  return {
      {"pad_reduction",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const int64_t multiple, number(a[1]));
          s.pad_reduction(s.axis(a[0]), multiple);
          return Status::ok();
        }}},
      {"skew",
       {4,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const int64_t stride, number(a[2]));
          ASSIGN_OR_RETURN(const int64_t dilation, number(a[3]));
          s.skew(s.axis(a[0]), s.axis(a[1]), stride, dilation);
          return Status::ok();
        }}},
      {"precompute",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.precompute(s.tensor(a[0]));
          return Status::ok();
        }}},
      {"skip_zeros",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.skip_zeros(s.tensor(a[0]));
          return Status::ok();
        }}},
      {"rfactor",
       {2,
        [](Schedule& s, const Arguments& a) {
          s.rfactor(s.tensor(a[0]), s.axis(a[1]));
          return Status::ok();
        }}},
      {"carry_sums",
       {2,
        [](Schedule& s, const Arguments& a) {
          s.carry_sums(s.tensor(a[0]), s.tensor(a[1]));
          return Status::ok();
        }}},
      {"prefetch",
       {4,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const int64_t ahead, number(a[3]));
          s.prefetch(s.tensor(a[0]), s.tensor(a[1]), s.axis(a[2]), ahead);
          return Status::ok();
        }}},
      {"prefetch_next",
       {5,
        [](Schedule& s, const Arguments& a) {
          s.prefetch_next(s.tensor(a[0]), s.tensor(a[1]), s.axis(a[2]), s.axis(a[3]), s.axis(a[4]));
          return Status::ok();
        }}},
  };
}

template <void (Schedule::*Pipeline)(std::span<const Tensor>, const Axis&, int64_t)>
Status pipelined(Schedule& s, const Arguments& a) {
  ASSIGN_OR_RETURN(const std::vector<std::string_view> names, list(a[0]));
  ASSIGN_OR_RETURN(const int64_t stages, number(a[2]));
  std::vector<Tensor> tensors;
  for (const std::string_view name : names) tensors.push_back(s.tensor(name));
  (s.*Pipeline)(tensors, s.axis(a[1]), stages);
  return Status::ok();
}

// Of shared memory and registers.
Calls gpu_calls() {
  return {
      {"set_layout",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const std::vector<std::string_view> text, list(a[1]));
          std::string layout;  // its own comma made two arguments of it
          for (std::string_view part : text) layout += str(layout.empty() ? "" : ",", part);
          s.set_layout(s.tensor(a[0]), layout);
          return Status::ok();
        }}},
      {"double_buffer",
       {3,
        [](Schedule& s, const Arguments& a) -> Status {
          if (a[2] != "registers" && a[2] != "direct")
            return invalid_argument("expected registers or direct, found \"", a[2], "\"");
          s.double_buffer(s.tensor(a[0]), s.axis(a[1]), a[2] == "registers");
          return Status::ok();
        }}},
      {"pipeline", {3, pipelined<&Schedule::pipeline>}},
      {"pipeline_products", {3, pipelined<&Schedule::pipeline_products>}},
      {"copy_by_tma",
       {1,
        [](Schedule& s, const Arguments& a) {
          s.copy_by_tma(s.tensor(a[0]));
          return Status::ok();
        }}},
      {"load_ahead",
       {2,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const std::vector<std::string_view> names, list(a[0]));
          std::vector<Tensor> tensors;
          for (const std::string_view name : names) tensors.push_back(s.tensor(name));
          s.load_ahead(tensors, s.axis(a[1]));
          return Status::ok();
        }}},
      {"launch_bounds",
       {1,
        [](Schedule& s, const Arguments& a) -> Status {
          ASSIGN_OR_RETURN(const int64_t blocks, number(a[0]));
          s.launch_bounds(static_cast<int>(blocks));
          return Status::ok();
        }}},
  };
}

const Calls& calls() {
  static const Calls kCalls = [] {
    Calls all = loop_calls();
    all.merge(stage_calls());
    all.merge(other_calls());
    all.merge(gpu_calls());
    return all;
  }();
  return kCalls;
}

Status run_line(Schedule& s, std::string_view line) {
  line = trimmed(line.substr(0, line.find(" -> ")));
  const size_t open = line.find('(');
  if (open == std::string_view::npos || line.back() != ')') return invalid_argument("expected NAME(...)");
  const auto call = calls().find(line.substr(0, open));
  if (call == calls().end()) return invalid_argument("no primitive is called \"", line.substr(0, open), "\"");
  const Arguments given = arguments(line.substr(open + 1, line.size() - open - 2));
  if (given.size() != call->second.arguments)
    return invalid_argument(call->first, " takes ", call->second.arguments, " arguments, found ",
                            given.size());
  RETURN_IF_ERROR(call->second.run(s, given));
  return s.finish().status();
}

}  // namespace

Result<Program> replay(const Program& unscheduled, std::string_view trace) {
  Schedule s(unscheduled);
  int line_number = 0;
  for (size_t begin = 0; begin < trace.size();) {
    const size_t end = std::min(trace.find('\n', begin), trace.size());
    const std::string_view line = trimmed(trace.substr(begin, end - begin));
    begin = end + 1;
    ++line_number;
    if (line.empty()) continue;
    if (Status status = run_line(s, line); !status.is_ok())
      return status.with_context(str("line ", line_number, " \"", line, "\": "));
  }
  return s.finish();
}

}  // namespace tuner

// Handles, results and refusals of a Schedule; the primitives stand in files of their own.
#include "compiler_core/schedule/schedule.h"

#include "compiler_core/analysis/in_place.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

Schedule::Schedule(Program program) : program_(std::move(program)) {
  CHECK(program_.body != nullptr) << program_.name << " has no body";
}

Tensor Schedule::tensor(std::string_view buffer_name) {
  for (const Buffer& b : program_.args)
    if (b->name == buffer_name) return {b};
  Buffer found;
  visit(program_.body, [&](const Stmt& s) {
    if (s->buffer != nullptr && s->buffer->name == buffer_name) found = s->buffer;
  });
  apply(str("tensor(", buffer_name, ")"), [&]() -> Status {
    if (found == nullptr) return invalid_config("no buffer of the Program has this name");
    return Status::ok();
  });
  return {found};
}

std::vector<Axis> Schedule::axes(const Tensor& t) {
  std::vector<Axis> result;
  apply(str("axes(", t.buffer == nullptr ? "(none)" : t.buffer->name, ")"), [&]() -> Status {
    const Buffer buffer = resolve(t);
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    const std::optional<Stage> stage = find_stage(program_.body, buffer);
    if (!stage.has_value())
      return invalid_config(buffer->name, " is not computed in this Program (an argument or inlined)");
    for (const Stmt& loop : stage->loops()) result.push_back({loop->var});
    return Status::ok();
  });
  return result;
}

namespace {
std::vector<Axis> of_kind(const Stmt& root, const std::vector<Axis>& axes, AxisKind kind) {
  std::vector<Axis> result;
  for (const Axis& axis : axes)
    if (find_loop(root, axis.var).back()->axis == kind) result.push_back(axis);
  return result;
}
}  // namespace

std::vector<Axis> Schedule::spatial_axes(const Tensor& t) {
  return of_kind(program_.body, axes(t), AxisKind::kSpatial);
}
std::vector<Axis> Schedule::reduce_axis_list(const Tensor& t) {
  return of_kind(program_.body, axes(t), AxisKind::kReduce);
}

bool Schedule::check_count(std::string_view what, const Tensor& t, size_t wanted, size_t found) {
  if (refused()) return false;
  apply(str(what, "<", wanted, ">(", resolve(t)->name, ")"), [&]() -> Status {
    if (found == wanted) return Status::ok();
    return invalid_config("the stage has ", found, what == "reduce_axes" ? " reduce" : " spatial",
                          " axes of its own; expected ", wanted);
  });
  return !refused();
}

int64_t Schedule::extent(Axis axis) {
  int64_t result = 0;
  apply(str("extent(", label(program_.body, axis.var), ")"), [&]() -> Status {
    const Path path = find_loop(program_.body, axis.var);
    if (path.empty()) return invalid_config("not an axis of the Program (split, fused or never there)");
    result = path.back()->extent;
    return Status::ok();
  });
  return result;
}

Axis Schedule::axis(std::string_view wanted) {
  Axis result;
  apply(str("axis(", wanted, ")"), [&]() -> Status {
    result.var = loop_by_label(program_.body, wanted);
    if (result.var == nullptr)
      return invalid_config("no axis, or more than one, has this name; tensor:axis tells them apart");
    return Status::ok();
  });
  return result;
}

void Schedule::set_scope(const Tensor& t, MemoryScope scope) {
  const Buffer buffer = resolve(t);
  const std::string call =
      str("set_scope(", buffer == nullptr ? "(none)" : buffer->name, ", ", memory_scope_name(scope), ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    if (buffer->role != BufferRole::kIntermediate)
      return invalid_config(buffer->name, " is an argument (", buffer_role_name(buffer->role),
                            "); its memory is the caller's");
    RETURN_IF_ERROR(check_no_tiles(program_.body, buffer));
    const Buffer changed = derived_buffer(buffer, buffer->name, buffer->shape, scope);
    program_.body = replace_buffers(program_.body, {{buffer, changed}});
    moved(buffer, changed);
    record(call);
    return Status::ok();
  });
}

Buffer Schedule::resolve(const Tensor& t) const {
  Buffer buffer = t.buffer;
  for (const auto& [from, to] : moved_)  // in the order it happened, so one pass follows the chain
    if (from == buffer) buffer = to;
  return buffer;
}

void Schedule::moved(const Buffer& from, const Buffer& to) { moved_.emplace_back(from, to); }

const Var* Schedule::twin(const Var& var) const {
  for (const auto& [own, other] : twins_)
    if (own == var) return &other;
  return nullptr;
}

std::string Schedule::trace() const {
  std::string text;
  for (const std::string& line : trace_) text += line + "\n";
  return text;
}

Result<Program> Schedule::finish() const {
  if (refused()) return status_;
  RETURN_IF_ERROR(check_in_place(program_).with_context(str(program_.name, ": ")));
  return program_;
}

}  // namespace tuner

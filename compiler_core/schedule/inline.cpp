// inline_compute: readers of a tensor compute its expression themselves.
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

void Schedule::inline_compute(const Tensor& t) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call = str("inline_compute(", buffer == nullptr ? "(none)" : buffer->name, ")");
  apply(call, [&]() -> Status {
    if (buffer == nullptr) return invalid_config("the tensor handle is empty");
    if (buffer->role != BufferRole::kIntermediate)
      return invalid_config(buffer->name, " is an argument (", buffer_role_name(buffer->role),
                            "), it must be stored");
    ASSIGN_OR_RETURN(const PlainStage plain, plain_stage(program_.body, buffer));
    RETURN_IF_ERROR(check_not_carried(plain.stage));
    const StmtNode& store = plain.stage.store();
    if (store.reduce != ReduceOp::kNone)
      return invalid_config(buffer->name, " is a reduction; its value is not one expression");
    if (!reads_from(program_.body, buffer)) return invalid_config("nothing reads ", buffer->name);
    RETURN_IF_ERROR(check_no_tiles(program_.body, buffer));
    const auto inlined = [&](const auto& self, const Expr& e) -> Expr {
      const Expr mapped = map_children(e, [&](const Expr& operand) { return self(self, operand); });
      if (e->kind != ExprKind::kLoad || e->buffer != buffer) return mapped;
      VarMap values;
      for (size_t d = 0; d < plain.dims.size(); ++d)
        if (plain.dims[d].has_value()) values[*plain.dims[d]] = mapped->operands[d];
      for (const Stmt& loop : plain.loops)  // extent 1 and no dimension of its own
        if (!values.contains(loop->var)) values[loop->var] = 0;
      return substitute(store.value, values);
    };
    const auto rewritten = [&](const auto& self, const Stmt& s) -> Stmt {
      return map_children(
          s, [&](const Expr& e) { return inlined(inlined, e); },
          [&](const Stmt& child) { return self(self, child); });
    };
    Stmt root = drop_allocation(replace_at(prefix(plain.stage.path, plain.top), nullptr), buffer);
    root = simplify(rewritten(rewritten, root));
    RETURN_IF_ERROR(check_allocated(program_, root));
    program_.body = std::move(root);
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner

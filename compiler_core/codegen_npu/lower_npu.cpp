#include "compiler_core/codegen_npu/lower_npu.h"

#include <string_view>

#include "compiler_core/codegen_npu/npu_lowering.h"
#include "compiler_core/codegen_npu/pack_constants.h"
#include "compiler_core/npu/tokens.h"

namespace tuner {
namespace {

using npu::Instruction;
using npu::Op;

constexpr size_t kMostInstructions = size_t{1} << 18;

std::string first_line(const Stmt& s) {
  const std::string text = to_text(s);
  return text.substr(0, text.find('\n'));
}

}  // namespace

Result<NpuProgram> NpuLowering::run() {
  if (program_.foreign != nullptr) return invalid_config("npu: takes no source of a user's");
  if (program_.body == nullptr) return invalid_config("npu: there is nothing to compute");
  RETURN_IF_ERROR(pack_constants(program_, kernel_));
  RETURN_IF_ERROR(place_arguments());
  RETURN_IF_ERROR(place_buffers());
  RETURN_IF_ERROR(load_tables());
  RETURN_IF_ERROR(load_row_tables());
  RETURN_IF_ERROR(walk(program_.body));
  return finish();
}

Status NpuLowering::emit(const Instruction& i) {
  if (const Status fits = npu::check(i); !fits.is_ok()) return invalid_config("npu: ", fits.message());
  if (code_.size() >= kMostInstructions)
    return invalid_config("npu: more than ", kMostInstructions, " instructions: larger tiles need fewer");
  if (takes_turns()) RETURN_IF_ERROR(follow_turns(i));
  code_.push_back(i);
  return Status::ok();
}

Status NpuLowering::set_strides(Op op, int64_t dram, int64_t words) {
  auto& now = op == Op::kSetLoad ? load_strides_ : store_strides_;
  const std::pair<int64_t, int64_t> wanted{dram, words};
  if (now == wanted) return Status::ok();
  now = wanted;
  return emit({.op = op, .dram_stride = static_cast<uint32_t>(dram), .stride = static_cast<uint32_t>(words)});
}

void NpuLowering::note(const Nest& nest) {
  std::string text;
  for (const auto& [var, value] : around_) text += str(text.empty() ? "" : " ", var->name, "=", value);
  std::string loops;
  for (const Stmt& loop : nest.loops) loops += str("for ", loop->var->name, " in 0..", loop->extent, ": ");
  notes_.emplace_back(static_cast<uint32_t>(code_.size()),
                      str(text, text.empty() ? "" : ": ", loops, first_line(nest.leaf)));
}

Status NpuLowering::walk(const Stmt& s) {
  if (s == nullptr) return Status::ok();
  switch (s->kind) {
    case StmtKind::kSeq:
      for (const Stmt& each : s->stmts) RETURN_IF_ERROR(walk(each));
      return Status::ok();
    case StmtKind::kAllocate:
      return walk(s->body);
    case StmtKind::kBarrier:
      return Status::ok();
    case StmtKind::kAsync:
      if (s->name == "copy") return walk(s->body);
      if (s->name == "commit" || s->name == "wait") return Status::ok();
      return invalid_config("npu: has no asynchronous ", s->name);
    case StmtKind::kIf: {
      scope_.begin({});
      if (!scope_.narrow(s->condition))
        return invalid_config("npu: the condition ", to_text(s->condition), " is not known while compiling");
      return walk(scope_.is_empty() ? s->else_body : s->body);
    }
    case StmtKind::kFor:
    case StmtKind::kStore:
    case StmtKind::kIntrinsic:
      break;
  }
  const Nest& nest = nest_of(s);
  if (nest.leaf != nullptr) {
    ASSIGN_OR_RETURN(const bool done, instruction(nest));
    if (done) return Status::ok();
  }
  if (s->kind != StmtKind::kFor) return invalid_config("npu: has no instruction for \"", first_line(s), "\"");
  around_.emplace_back(s->var.get(), 0);
  for (int64_t i = 0; i < s->extent; ++i) {
    around_.back().second = i;
    scope_.set(s->var.get(), i);
    RETURN_IF_ERROR(walk(s->body));
  }
  around_.pop_back();
  return Status::ok();
}

const Nest& NpuLowering::nest_of(const Stmt& s) {
  const auto found = nests_.find(s.get());
  return found != nests_.end() ? found->second : nests_.emplace(s.get(), nest_at(s)).first->second;
}

Result<bool> NpuLowering::instruction(const Nest& nest) {
  std::vector<InstructionLoop> loops;
  for (const Stmt& loop : nest.loops) {
    if (loop->loop != LoopKind::kSerial && loop->loop != LoopKind::kUnrolled)
      return Status(invalid_config("npu: a ", loop_kind_name(loop->loop), " loop over ", loop->var->name));
    loops.push_back({loop->var.get(), loop->extent, 0, loop->extent});
  }
  scope_.begin(std::move(loops));
  const StmtNode& leaf = *nest.leaf;
  if (leaf.kind == StmtKind::kStore) {
    const bool is_shared_store = leaf.buffer->scope == MemoryScope::kShared;
    if (leaf.buffer->scope == MemoryScope::kRegister) {
      RETURN_IF_ERROR(row_value(leaf));
      return true;
    }
    if (leaf.reduce != ReduceOp::kNone && !(is_shared_store && leaf.reduce == ReduceOp::kMax))
      return Status(invalid_config("npu: has no instruction for the sum \"", first_line(nest.leaf),
                                   "\": tensorize it"));
    for (const Expr& guard : nest.guards)
      if (!scope_.narrow(guard)) return false;
    if (scope_.is_empty()) return true;
    if (is_shared_store) {
      ASSIGN_OR_RETURN(const Vectored vectored, vector_store(nest));
      if (vectored != Vectored::kNo) return vectored == Vectored::kDone;
    }
    note(nest);
    if (is_shared_store)
      RETURN_IF_ERROR(load(leaf));
    else
      RETURN_IF_ERROR(is_shared(leaf.value) ? store_words(leaf) : store(leaf));
    return true;
  }
  if (!nest.guards.empty() || !stays_in_block(leaf.operands[0])) return false;
  const std::string_view name = leaf.name;
  if (name.starts_with("npu.zero.")) {
    RETURN_IF_ERROR(zero(leaf));
    return true;
  }
  RETURN_IF_ERROR(check_array(name));
  if (name.starts_with("npu.rows.")) return nest.loops.size() <= 2 ? rows_product(nest) : Result<bool>(false);
  if (name.starts_with("npu.terms."))
    return nest.loops.size() <= 1 ? terms_product(nest) : Result<bool>(false);
  if (name.starts_with("npu.channels.")) return channels_product(nest);
  return Status(invalid_config("npu: has no instruction for ", name));
}

Status NpuLowering::check_array(std::string_view intrinsic) const {
  const std::string sides = str(m_.array_rows, "x", m_.array_columns);
  if (intrinsic.ends_with("." + sides) || intrinsic.ends_with(str(".", m_.array_columns)))
    return Status::ok();
  return invalid_config("npu: ", intrinsic, " is of another array; that of the target is ", sides);
}

Result<NpuProgram> NpuLowering::finish() {
  ASSIGN_OR_RETURN(npu::Allocation placed, npu::allocate_scratchpad(m_, code_, buffers_));
  Result<npu::Code> ordered = npu::place_tokens(m_, std::move(placed.code), kernel_.dram_bytes);
  if (!ordered.is_ok()) return Status(invalid_config("npu: ", ordered.message()));
  kernel_.code = *std::move(ordered);
  kernel_.machine = m_.name();
  return NpuProgram{.kernel = std::move(kernel_), .notes = std::move(notes_)};
}

Result<NpuProgram> lower_to_npu(const Program& program, const npu::Machine& machine) {
  NpuLowering with_turns(program, machine, /*places=*/2);
  Result<NpuProgram> lowered = with_turns.run();
  // Without room for two.
  if (!lowered.is_ok() && with_turns.takes_turns()) return NpuLowering(program, machine, /*places=*/1).run();
  return lowered;
}

}  // namespace tuner

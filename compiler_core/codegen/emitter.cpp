#include "compiler_core/codegen/emitter.h"

#include <algorithm>
#include <bit>

#include "compiler_core/base/int_math.h"
#include "compiler_core/ir/prefetch.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/runtime/tuner_runtime.h"

namespace tuner::codegen {
namespace {

constexpr int64_t kMostLanes = 256;

// Offsets of tuner_runtime's fields (tuner_runtime.h) on 64-bit targets.
static_assert(sizeof(void*) == 8);
constexpr int64_t kNumThreads = offsetof(tuner_runtime, num_threads),
                  kParallelFor = offsetof(tuner_runtime, parallel_for), kPool = offsetof(tuner_runtime, pool),
                  kWorkspace = offsetof(tuner_runtime, workspace);

// Bytes of the widest element in a vectorised body that only moves elements; 4 where it computes, or where
// registers are read or written, whose rows are padded for vectors of such elements.
int64_t element_bytes(const Stmt& body) {
  int64_t widest = 1;
  visit(body, [&](const Stmt& s) {
    const bool is_store = s->kind == StmtKind::kStore;
    if (is_store) widest = std::max(widest, dtype_bytes(s->buffer->dtype));
    const bool moves = is_store && s->buffer->scope != MemoryScope::kRegister;
    if (!moves && s->kind != StmtKind::kIf && s->kind != StmtKind::kSeq) widest = 4;
  });
  visit_exprs(body, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kRegister) widest = 4;
    const bool is_index = e->dtype == DType::kInt64 || e->dtype == DType::kBool;
    const bool moves =
        e->kind == ExprKind::kLoad || e->kind == ExprKind::kSelect || e->operands.empty() || is_index;
    widest = std::max(widest, !moves ? 4 : is_index ? 1 : dtype_bytes(e->dtype));
  });
  return std::min<int64_t>(widest, 4);
}

}  // namespace

Emitter::Emitter(IrWriter& ir)
    : IrPart(ir),
      lanes_(ir, scope_),
      math_(ir),
      dots_(ir, lanes_, math_),
      addresses_(ir, scope_, lanes_, [this](const Expr& e) { return values_.emit(e); }),
      values_(ir, scope_, lanes_, math_, addresses_, transposed_) {}

Result<Workspace> Emitter::emit(const Program& program, const std::string& name) {
  ir_.program_name = program.name;
  assign_slots(program);
  plan_tiles(program.body);
  emit_entry(program, name);
  if (!ir_.status.is_ok()) return ir_.status;
  return workspace_;
}

// Every global allocation has memory of its own: buffers are noalias parameters, so none may share.
void Emitter::assign_slots(const Program& program) {
  for (const Buffer& arg : program.args) slots_.push_back({arg});
  const std::function<void(const Stmt&, bool)> walk = [&](const Stmt& s, bool in_parallel) {
    if (s == nullptr) return;
    if (s->kind == StmtKind::kFor && s->loop == LoopKind::kParallel) in_parallel = true;
    if (s->kind == StmtKind::kAllocate && s->buffer->scope == MemoryScope::kGlobal) {
      const bool known =
          std::any_of(slots_.begin(), slots_.end(), [&](const Slot& x) { return x.buffer == s->buffer; });
      if (!known) {
        int64_t& end = in_parallel ? workspace_.per_thread_bytes : workspace_.shared_bytes;
        slots_.push_back({s->buffer, end, in_parallel});
        // A masked vector at the end of a buffer reaches past it. Were the next page not there, each such
        // store would be undone and done again, element by element, in some 500 cycles.
        constexpr int64_t kWidestVector = 64;
        end += round_up(s->buffer->bytes(), 64) + kWidestVector;
      }
    }
    walk(s->body, in_parallel);
    walk(s->else_body, in_parallel);
    for (const Stmt& child : s->stmts) walk(child, in_parallel);
  };
  walk(program.body, false);
}

llvm::Function* Emitter::make_function(const std::string& name, llvm::Type* result,
                                       const std::vector<llvm::Type*>& params, bool exported) {
  auto* type = llvm::FunctionType::get(result, params, false);
  auto* f = llvm::Function::Create(
      type, exported ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage, name, module_);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr("target-cpu", machine_.cpu);
  if (!machine_.features.empty()) f->addFnAttr("target-features", machine_.features);
  f->addFnAttr("prefer-vector-width", std::to_string(machine_.vector_bits));
  f->addFnAttr("frame-pointer", "none");
  f->addFnAttr("no-trapping-math", "true");
  if (!exported) f->addFnAttr(llvm::Attribute::NoInline);
  return f;
}

// Parameters: every argument and shared workspace buffer, per-thread ones when `per_thread`, the runtime,
// `captured` loop variables and `extra` numbers of 64 bits. Leaves the builder at its start.
llvm::Function* Emitter::make_region(const std::string& name, bool per_thread, size_t captured,
                                     size_t extra) {
  std::vector<llvm::Type*> params;
  for (const Slot& slot : slots_)
    if (per_thread || !slot.per_thread) params.push_back(b_.getPtrTy());
  const size_t n_buffers = params.size();
  params.push_back(b_.getPtrTy());
  for (size_t i = 0; i < captured + extra; ++i) params.push_back(b_.getInt64Ty());
  llvm::Function* f = make_function(name, b_.getVoidTy(), params, false);
  scope_.region = {.function = f, .in_parallel = per_thread};
  size_t p = 0;
  for (const Slot& slot : slots_) {
    if (slot.per_thread && !per_thread) continue;
    llvm::Argument* arg = f->getArg(static_cast<unsigned>(p++));
    arg->setName(slot.buffer->name);
    arg->addAttr(llvm::Attribute::NoAlias);
    arg->addAttr(llvm::Attribute::getWithAlignment(module_.getContext(), llvm::Align(64)));
    scope_.region.buffers[slot.buffer.get()] = arg;
  }
  scope_.region.runtime = f->getArg(static_cast<unsigned>(n_buffers));
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", f));
  return f;
}

void Emitter::emit_entry(const Program& program, const std::string& name) {
  llvm::Function* entry = make_function(name, b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy()}, true);
  llvm::Function* body = make_region(name + ".body", false, 0, 0);
  emit_region(program.body, [&] { emit(program.body); });

  llvm::LLVMContext& context = module_.getContext();
  llvm::Value *args = entry->getArg(0), *runtime = entry->getArg(1);
  const auto field = [&](llvm::Type* type, int64_t offset) {
    return b_.CreateLoad(type, b_.CreatePtrAdd(runtime, int_of(offset)));
  };
  const auto refuse_unless = [&](llvm::Value* fits, int code) {
    auto* bad = llvm::BasicBlock::Create(context, "refuse", entry);
    auto* good = llvm::BasicBlock::Create(context, "fits", entry);
    b_.CreateCondBr(fits, good, bad);
    b_.SetInsertPoint(bad);
    b_.CreateRet(b_.getInt32(static_cast<uint32_t>(code)));
    b_.SetInsertPoint(good);
  };
  b_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", entry));
  refuse_unless(b_.CreateICmpEQ(field(b_.getInt32Ty(), 0), b_.getInt32(TUNER_ABI_VERSION)), -1);
  llvm::Value* workspace = llvm::ConstantPointerNull::get(b_.getPtrTy());
  if (workspace_.shared_bytes + workspace_.per_thread_bytes > 0) {
    workspace = field(b_.getPtrTy(), kWorkspace);
    refuse_unless(b_.CreateIsNotNull(workspace), -2);
  }
  refuse_unless(b_.CreateICmpSGE(field(b_.getInt32Ty(), kNumThreads), b_.getInt32(1)), -3);
  std::vector<llvm::Value*> actuals;
  size_t index = 0;
  for (const Slot& slot : slots_) {
    if (slot.per_thread) continue;
    actuals.push_back(
        slot.offset < 0
            ? b_.CreateLoad(b_.getPtrTy(), b_.CreatePtrAdd(args, int_of(static_cast<int64_t>(8 * index++))))
            : b_.CreatePtrAdd(workspace, int_of(slot.offset)));
  }
  actuals.push_back(runtime);
  b_.CreateCall(body, actuals);
  b_.CreateRet(b_.getInt32(0));
}

void Emitter::emit(const Stmt& s) {
  if (s == nullptr || !ir_.status.is_ok()) return;
  switch (s->kind) {
    case StmtKind::kFor:
      emit_for(*s);
      return;
    case StmtKind::kSeq:
      for (const Stmt& child : s->stmts) emit(child);
      return;
    case StmtKind::kIf:
      emit_if(*s);
      return;
    case StmtKind::kStore:
      emit_store(*s);
      return;
    case StmtKind::kAllocate:
      emit_allocate(*s);
      return;
    case StmtKind::kIntrinsic:
      if (is_prefetch(*s)) return emit_prefetch(*s);
      emit_intrinsic(*s);
      return;
    case StmtKind::kBarrier:
    case StmtKind::kAsync:
      refuse("barriers and asynchronous copies are GPU statements");
      return;
  }
}

void Emitter::emit_for(const StmtNode& s) {
  if (s.extent <= 0) return;
  scope_.ranges.bind(s.var, s.extent);
  switch (s.loop) {
    case LoopKind::kSerial:
    case LoopKind::kUnrolled:  // written out by lowering; what is left has one iteration
      if (s.extent == 1) {
        scope_.vars[s.var.get()] = {int_of(0), scope_.depth};
        emit(s.body);
      } else {
        emit_loop(s, int_of(0), int_of(s.extent));
      }
      return;
    case LoopKind::kParallel:
      emit_parallel(s);
      return;
    case LoopKind::kVectorized:
      emit_vectorized(s);
      return;
    case LoopKind::kDot:
      emit_dot(s);
      return;
    case LoopKind::kVectorRows: {
      std::vector<Expr> guards;
      emit_tile(s, s.body, guards);
      return;
    }
    default:
      refuse("loop ", s.var->name, " is bound to ", loop_kind_name(s.loop), ", which a CPU does not have");
      return;
  }
}

// for (i = begin; i < end; ++i), rotated; begin < end is known.
void Emitter::emit_loop(const StmtNode& s, llvm::Value* begin, llvm::Value* end) {
  llvm::LLVMContext& context = module_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(context, s.var->name, scope_.region.function);
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2, s.var->name);
  i->addIncoming(begin, before);
  scope_.vars[s.var.get()] = {i, ++scope_.depth};
  OpenLoop open{.variable = i, .before = before, .last = nullptr, .sums = {}, .steps = {}};
  scope_.region.loops.push_back(&open);
  emit(s.body);
  scope_.region.loops.pop_back();
  --scope_.depth;
  for (const OpenLoop::Step& step : open.steps)
    step.pointer->addIncoming(b_.CreateGEP(step.element, step.pointer, int_of(step.coefficient)),
                              b_.GetInsertBlock());
  llvm::Value* next = b_.CreateAdd(i, int_of(1), "", /*nuw=*/true, /*nsw=*/true);
  i->addIncoming(next, b_.GetInsertBlock());
  auto* after = llvm::BasicBlock::Create(context, s.var->name + ".end", scope_.region.function);
  llvm::BranchInst* latch = b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, after);
  // Unrolling is decided by the schedule.
  llvm::MDNode* disable =
      llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode* id = llvm::MDNode::getDistinct(context, {nullptr, disable});
  id->replaceOperandWith(0, id);
  latch->setMetadata("llvm.loop", id);
  b_.SetInsertPoint(after);
}

void Emitter::emit_vectorized(const StmtNode& s) {
  if (lanes_.var != nullptr)
    return refuse("vectorized loop ", s.var->name, " stands inside vectorized ", lanes_.var->name);
  if (s.extent > kMostLanes)
    return refuse("vectorized loop ", s.var->name, " has ", s.extent, " iterations; at most ", kMostLanes,
                  ", split it");
  if (s.axis == AxisKind::kReduce) return emit_lane_reduction(s);
  const int64_t whole = machine_.vector_bits / (8 * element_bytes(s.body));
  for (int64_t begin = 0; begin < s.extent;) {
    // Sums become bytes in fewer instructions where two or four vectors do so together (packed_bytes).
    int64_t together = machine_.has_byte_packs && rounds_to_bytes(s.body) ? 4 : 1;
    while (together > 1 && together * whole > s.extent - begin) together /= 2;
    const Piece piece = lanes_.next_piece(begin, s.extent, together * whole);
    emit_piece(s, piece);
    begin += piece.lanes;
  }
  scope_.ranges.bind(s.var, s.extent);
}

void Emitter::emit_piece(const StmtNode& s, const Piece& piece) {
  if (piece.lanes == 1)
    lanes_.run_at(s.var, piece.begin);
  else
    lanes_.run_along(s.var, piece);
  emit(s.body);
  lanes_.leave();
  scope_.vars.erase(s.var.get());
}

void Emitter::emit_parallel(const StmtNode& s) {
  if (scope_.region.in_parallel || lanes_.var != nullptr)
    return refuse("parallel loop ", s.var->name, " stands inside a parallel or vectorized loop");
  if (s.extent > INT32_MAX)
    return refuse("parallel loop ", s.var->name, " has ", s.extent, " iterations; at most 2^31 - 1");
  // Register buffers of the caller are its own: a share cannot see them. OpenLoop variables around are handed
  // over.
  std::vector<Var> captured;
  visit_exprs(s.body, [&](const Expr& e) {
    if (e->kind == ExprKind::kVar && scope_.vars.contains(e->var.get()) &&
        std::find(captured.begin(), captured.end(), e->var) == captured.end())
      captured.push_back(e->var);
  });
  const std::string name =
      str(scope_.region.function->getName().str().substr(0, scope_.region.function->getName().find('.')),
          ".parallel", regions_++);
  const Region caller = scope_.region;
  const auto caller_vars = scope_.vars;
  const auto resume = b_.saveIP();
  llvm::Function* share = make_share(s, name + ".body", captured);
  int64_t words = 0;
  llvm::Function* task = make_task(name, share, captured.size(), words);
  scope_.region = caller;
  scope_.vars = caller_vars;
  b_.restoreIP(resume);
  call_parallel_for(s.extent, task, captured, words);
  configure_tiles();  // this thread's share released them
}

llvm::Function* Emitter::make_share(const StmtNode& s, const std::string& name,
                                    const std::vector<Var>& captured) {
  llvm::Function* share = make_region(name, true, captured.size(), 2);
  const auto param = [&](size_t from_end) {
    return share->getArg(static_cast<unsigned>(share->arg_size() - from_end));
  };
  scope_.vars.clear();
  for (size_t i = 0; i < captured.size(); ++i)
    scope_.vars[captured[i].get()] = {param(2 + captured.size() - i), 0};
  llvm::Value *begin = param(2), *end = param(1);
  emit_region(s.body, [&] { emit_loop(s, begin, end); });
  return share;
}

llvm::Function* Emitter::make_task(const std::string& name, llvm::Function* share, size_t captured,
                                   int64_t& words) {
  llvm::Function* task = make_function(
      name, b_.getVoidTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt32Ty(), b_.getInt32Ty()}, false);
  auto* entry = llvm::BasicBlock::Create(module_.getContext(), "entry", task);
  auto* run = llvm::BasicBlock::Create(module_.getContext(), "run", task);
  auto* done = llvm::BasicBlock::Create(module_.getContext(), "done", task);
  b_.SetInsertPoint(entry);
  b_.CreateCondBr(b_.CreateICmpSLT(task->getArg(1), task->getArg(2)), run, done);
  b_.SetInsertPoint(run);
  const auto unpack = [&](llvm::Type* type) {
    return b_.CreateLoad(type, b_.CreatePtrAdd(task->getArg(0), int_of(8 * words++)));
  };
  std::map<const BufferNode*, llvm::Value*> shared;
  for (const Slot& slot : slots_)
    if (!slot.per_thread) shared[slot.buffer.get()] = unpack(b_.getPtrTy());
  llvm::Value* runtime = unpack(b_.getPtrTy());
  llvm::Value* own = nullptr;
  if (workspace_.per_thread_bytes > 0) {
    llvm::Value* workspace = b_.CreateLoad(b_.getPtrTy(), b_.CreatePtrAdd(runtime, int_of(kWorkspace)));
    llvm::Value* thread = b_.CreateSExt(task->getArg(3), b_.getInt64Ty());
    own = b_.CreatePtrAdd(workspace, b_.CreateAdd(int_of(workspace_.shared_bytes),
                                                  b_.CreateMul(thread, int_of(workspace_.per_thread_bytes))));
  }
  std::vector<llvm::Value*> actuals;
  for (const Slot& slot : slots_)
    actuals.push_back(slot.per_thread ? b_.CreatePtrAdd(own, int_of(slot.offset))
                                      : shared[slot.buffer.get()]);
  actuals.push_back(runtime);
  for (size_t i = 0; i < captured; ++i) actuals.push_back(unpack(b_.getInt64Ty()));
  actuals.push_back(b_.CreateSExt(task->getArg(1), b_.getInt64Ty()));
  actuals.push_back(b_.CreateSExt(task->getArg(2), b_.getInt64Ty()));
  b_.CreateCall(share, actuals);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  b_.CreateRetVoid();
  return task;
}

void Emitter::call_parallel_for(int64_t extent, llvm::Function* task, const std::vector<Var>& captured,
                                int64_t words) {
  llvm::BasicBlock& first = scope_.region.function->getEntryBlock();
  llvm::IRBuilder<> at_entry(&first, first.begin());
  llvm::Value* closure =
      at_entry.CreateAlloca(llvm::ArrayType::get(b_.getInt64Ty(), static_cast<uint64_t>(words)));
  int64_t at = 0;
  const auto pack = [&](llvm::Value* v) { b_.CreateStore(v, b_.CreatePtrAdd(closure, int_of(8 * at++))); };
  for (const Slot& slot : slots_)
    if (!slot.per_thread) pack(scope_.region.buffers.at(slot.buffer.get()));
  pack(scope_.region.runtime);
  for (const Var& v : captured) pack(scope_.vars.at(v.get()).value);
  llvm::Value* parallel_for =
      b_.CreateLoad(b_.getPtrTy(), b_.CreatePtrAdd(scope_.region.runtime, int_of(kParallelFor)));
  llvm::Value* pool = b_.CreateLoad(b_.getPtrTy(), b_.CreatePtrAdd(scope_.region.runtime, int_of(kPool)));
  auto* type = llvm::FunctionType::get(b_.getVoidTy(),
                                       {b_.getPtrTy(), b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy()}, false);
  b_.CreateCall(type, parallel_for, {pool, b_.getInt32(static_cast<uint32_t>(extent)), task, closure});
}

void Emitter::emit_if(const StmtNode& s) {
  if (lanes_.var != nullptr && lanes_.depends(s.condition)) {
    llvm::Value* outer = lanes_.mask;
    llvm::Value* condition = values_.emit(s.condition);
    const auto run = [&](llvm::Value* lanes, const Stmt& body) {
      const auto* known = llvm::dyn_cast<llvm::Constant>(lanes);
      if (known != nullptr && known->isNullValue()) return;
      if (known == nullptr || !known->isAllOnesValue()) lanes_.mask = lanes_.with_mask(lanes);
      emit(body);
      lanes_.mask = outer;
    };
    run(condition, s.body);
    if (s.else_body != nullptr) run(b_.CreateNot(condition), s.else_body);
    return;
  }
  llvm::LLVMContext& context = module_.getContext();
  llvm::Value* condition = values_.emit(s.condition);
  // A guard of a tile's row is often decided by the number of the row: no blocks for what is known.
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    emit(known->isZero() ? s.else_body : s.body);
    return;
  }
  auto* then_block = llvm::BasicBlock::Create(context, "then", scope_.region.function);
  auto* else_block =
      s.else_body == nullptr ? nullptr : llvm::BasicBlock::Create(context, "else", scope_.region.function);
  auto* after = llvm::BasicBlock::Create(context, "endif", scope_.region.function);
  b_.CreateCondBr(condition, then_block, else_block == nullptr ? after : else_block);
  b_.SetInsertPoint(then_block);
  emit(s.body);
  b_.CreateBr(after);
  if (else_block != nullptr) {
    b_.SetInsertPoint(else_block);
    emit(s.else_body);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void Emitter::emit_allocate(const StmtNode& s) {
  const Buffer& buffer = s.buffer;
  if (buffer->scope == MemoryScope::kRegister) {
    // At the function's entry, so that SROA sees it; a masked vector may lie partly past the last element.
    llvm::BasicBlock& first = scope_.region.function->getEntryBlock();
    llvm::IRBuilder<> at_entry(&first, first.begin());
    uint64_t elements = 1;
    for (size_t d = 0; d < buffer->shape.size(); ++d)
      elements *= static_cast<uint64_t>(register_extent(buffer->shape, d));
    elements += kMostLanes;
    auto* memory = at_entry.CreateAlloca(llvm::ArrayType::get(memory_type(buffer->dtype), elements), nullptr,
                                         buffer->name);
    memory->setAlignment(llvm::Align(64));
    scope_.region.buffers[buffer.get()] = memory;
  } else if (const auto tiles = tiles_.find(buffer.get()); tiles != tiles_.end() && tiles->second.rows == 0) {
    llvm::BasicBlock& first = scope_.region.function->getEntryBlock();
    llvm::IRBuilder<> at_entry(&first, first.begin());
    scope_.region.fragments[buffer.get()] = at_entry.CreateAlloca(
        llvm::ArrayType::get(vector_tile_type(buffer->dtype), static_cast<uint64_t>(tiles->second.count)),
        nullptr, buffer->name);
  } else if (buffer->scope != MemoryScope::kGlobal && tiles == tiles_.end()) {
    return refuse("buffer ", buffer->name, " is in ", memory_scope_name(buffer->scope),
                  " memory, which a CPU does not have, or which no intrinsic uses");
  }
  emit(s.body);
}

}  // namespace tuner::codegen

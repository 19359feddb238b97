// lower_gpu: the passes in order, kernel by kernel.
#include "compiler_core/lower/gpu.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/lower/gpu_passes.h"
#include "compiler_core/lower/lower.h"

namespace tuner {
namespace {

// The nests at the root, and the buffers that live between them.
struct Root {
  std::vector<Buffer> between;
  std::vector<Stmt> nests;
};

void open_root(const Stmt& s, Root& root) {
  if (s->kind == StmtKind::kAllocate) {
    root.between.push_back(s->buffer);
    open_root(s->body, root);
  } else if (s->kind == StmtKind::kSeq) {
    for (const Stmt& child : s->stmts) open_root(child, root);
  } else {
    root.nests.push_back(s);
  }
}

Buffer last_stored(const Stmt& s) {
  Buffer last;
  visit(s, [&](const Stmt& child) {
    if (child->kind == StmtKind::kStore) last = child->buffer;
  });
  return last;
}

std::string identifier(std::string text) {
  for (char& c : text)
    if ((c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) c = '_';
  return text;
}

bool has_axis(const Stmt& nest, int (*axis)(LoopKind)) {
  bool found = false;
  visit(nest, [&](const Stmt& s) { found |= s->kind == StmtKind::kFor && axis(s->loop) >= 0; });
  return found;
}

Stmt plain_stores(const Stmt& body) {
  Program p;
  p.body = body;
  return lower_reductions(p).body;
}

Result<Stmt> simplify_kernel(const Stmt& body, const GpuKernel& kernel) {
  Stmt simple = simplify(body, kernel_ranges(kernel));
  if (simple == nullptr) return invalid_config("kernel ", kernel.name, " computes nothing");
  return simple;
}

// Global buffers the kernel touches, of `candidates` in their order.
std::vector<Buffer> touched(const Stmt& body, const std::vector<Buffer>& candidates) {
  std::set<Buffer> found;
  visit(body, [&](const Stmt& s) {
    if (s->kind == StmtKind::kStore) found.insert(s->buffer);
  });
  visit_exprs(body, [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) found.insert(e->buffer);
  });
  std::vector<Buffer> result;
  for (const Buffer& b : candidates)
    if (found.contains(b)) result.push_back(b);
  return result;
}

bool is_used(const Stmt& body, const Var& var) {
  bool found = false;
  visit_exprs(body, [&](const Expr& e) { found |= e->kind == ExprKind::kVar && e->var == var; });
  return found;
}

// Leaves the parameters, and the variables of blocks and threads, that the body uses. Tiles of a warp use
// threadIdx.x, as lanes.
void drop_unused(const Stmt& body, GpuKernel& kernel) {
  kernel.params = touched(body, kernel.params);
  for (Var& var : kernel.block_vars)
    if (var != nullptr && !is_used(body, var)) var = nullptr;
  for (size_t d = 0; d < kernel.thread_vars.size(); ++d) {
    const bool is_lane = d == 0 && gpu::has_warp_tiles(body);
    if (!is_lane && !is_used(body, kernel.thread_vars[d])) kernel.thread_vars[d] = nullptr;
  }
}

// A pass in the form of the table: it makes a body of a body, which may fail, or checks it, or fills in the
// kernel.
template <auto pass>
Status on_kernel(GpuKernel& kernel) {
  const Stmt body = kernel.body;
  const auto run = [&] {
    if constexpr (std::is_invocable_v<decltype(pass), const Stmt&>)
      return pass(body);
    else
      return pass(body, kernel);
  };
  if constexpr (std::is_void_v<decltype(run())>) {
    run();
  } else if constexpr (std::is_same_v<decltype(run()), Status>) {
    return run();
  } else {
    ASSIGN_OR_RETURN(kernel.body, Result<Stmt>(run()));
  }
  return Status::ok();
}

constexpr GpuLoweringPass kGpuPasses[] = {
    // First: all others know registers, and nothing of fragments.
    {"fragments", on_kernel<gpu::lower_fragments>},
    // Before cross-thread and virtual-threads, which judge the loops between an axis and its stores.
    {"single-iterations", on_kernel<gpu::drop_single_iterations>},
    // Before axes, behind which no loop says that threads share a sum; before reductions, for the operator.
    {"cross-thread", on_kernel<gpu::lower_cross_thread>},
    // Again: for two warps, cross-thread sums up in a loop of one iteration.
    {"single-iterations-2", on_kernel<gpu::drop_single_iterations>},
    // Before virtual-threads, which repeats unrolled loops as a whole and goes inside serial ones.
    {"register-loops", on_kernel<gpu::unroll_register_loops>},
    // Before axes: it knows the copies that a block shares by the thread loops around them.
    {"virtual-threads", on_kernel<gpu::inject_virtual_threads>},
    {"axes", on_kernel<gpu::bind_axes>},
    // Behind axes, which brings guards on the thread; before barriers, which may not stand under one.
    {"thread-guards", on_kernel<gpu::sink_thread_guards>},
    // Behind axes: the thread's index tells its part.
    {"registers", on_kernel<gpu::privatize_registers>},
    // Behind cross-thread and thread-guards, which treat a reduction unlike a store; before simplify, as it
    // brings guards.
    {"reductions", on_kernel<plain_stores>},
    {"hoist-shared", on_kernel<gpu::hoist_shared>},
    // The passes from here on read indices and guards in canonical form, under the ranges of blocks and
    // threads.
    {"simplify", on_kernel<simplify_kernel>},
    // Before copies, which loads ahead what stands under one guard.
    {"equal-guards", on_kernel<gpu::merge_equal_guards>},
    {"copies", on_kernel<gpu::overlap_copies>},
    // Folds the conditions that copies joined.
    {"simplify-2", on_kernel<simplify_kernel>},
    // Before place-shared and barriers, which treat what the copy engine does unlike stores of threads.
    {"fetches", on_kernel<gpu::lower_fetches>},
    // Checks: behind all that changes indices.
    {"check-warp-tiles", on_kernel<gpu::check_warp_tiles>},
    {"check-units", on_kernel<gpu::check_units>},
    // Before barriers: buffers that lie on each other need some.
    {"place-shared", on_kernel<gpu::place_shared>},
    // Behind all that moves or makes accesses.
    {"barriers", on_kernel<gpu::insert_barriers>},
    // Last: what the passes left unused is known now, such as a buffer that only the copy engine reads.
    {"drop-unused", on_kernel<drop_unused>},
};

// True if the nest computes one number: only its terms have loops. One thread does it.
bool is_one_number(const Stmt& nest) {
  bool has_others = false;
  visit(nest, [&](const Stmt& s) {
    has_others |=
        s->kind == StmtKind::kFor && (s->axis != AxisKind::kReduce || s->loop == LoopKind::kParallel);
  });
  return !has_others;
}

// `name`: of the kernel. `global`: the buffers that it may touch.
Result<GpuKernel> lower_kernel(const Stmt& nest, std::string name, const Program& program,
                               std::vector<Buffer> global, std::string_view last) {
  if (!has_axis(nest, gpu::block_axis) && !has_axis(nest, gpu::thread_axis) && !is_one_number(nest))
    return invalid_config("the nest of ", last_stored(nest)->name,
                          " is bound neither to blocks nor to threads");
  GpuKernel kernel{.name = std::move(name), .params = std::move(global)};
  kernel.min_blocks = program.min_blocks;
  kernel.body = nest;
  for (const GpuLoweringPass& pass : kGpuPasses) {
    RETURN_IF_ERROR(pass.run(kernel));
    if (pass.name == last) break;
  }
  return kernel;
}

// A name that none of the kernels before it has.
std::string name_of(const Stmt& nest, const Program& program, size_t nests,
                    const std::vector<GpuKernel>& before) {
  std::string name = nests == 1 ? program.name : str(program.name, "_", identifier(last_stored(nest)->name));
  for (const GpuKernel& other : before)
    if (other.name == name) name = str(name, "_", before.size());
  return name;
}

}  // namespace

std::span<const GpuLoweringPass> gpu_lowering_passes() { return kGpuPasses; }

Result<GpuProgram> lower_gpu(const Program& program, std::string_view last) {
  CHECK(last.empty() || std::ranges::find(kGpuPasses, last, &GpuLoweringPass::name) != std::end(kGpuPasses))
      << "no pass is called " << last;
  for (const Buffer& arg : program.args)
    if (arg->role == BufferRole::kInOut)
      return invalid_config(
          program.name, ": ", arg->name,
          " is an operand and the output (\"accumulate\"), which kernels of GPUs do not have yet");
  if (program.body == nullptr) return invalid_config(program.name, ": computes nothing");
  GpuProgram result{.name = program.name, .args = program.args};
  if (program.packing != nullptr) {
    ASSIGN_OR_RETURN(const Program packing, gpu::bind_packing(*program.packing));
    ASSIGN_OR_RETURN(GpuProgram lowered, lower_gpu(packing, last));
    result.packing = std::make_shared<const GpuProgram>(std::move(lowered));
  }
  Root root;
  open_root(program.body, root);
  for (const Buffer& b : root.between) {
    if (b->scope != MemoryScope::kGlobal)
      return invalid_config(b->name, " is in ", memory_scope_name(b->scope),
                            " memory but lives between kernels; compute_at it inside one");
    result.workspace.push_back(b);
  }
  std::vector<Buffer> global = program.args;
  global.insert(global.end(), root.between.begin(), root.between.end());
  for (const Stmt& nest : root.nests) {
    ASSIGN_OR_RETURN(
        GpuKernel kernel,
        lower_kernel(nest, name_of(nest, program, root.nests.size(), result.kernels), program, global, last));
    result.kernels.push_back(std::move(kernel));
  }
  return result;
}

GpuProgram packing_alone(const GpuProgram& packing) {
  GpuProgram alone = packing;
  BufferMap outputs;
  const auto replaced = [&](std::vector<Buffer>& buffers) {
    for (Buffer& b : buffers)
      if (const auto found = outputs.find(b); found != outputs.end()) b = found->second;
  };
  for (const Buffer& b : packing.args) {
    if (b->role != BufferRole::kPacked) continue;
    auto output = std::make_shared<BufferNode>(*b);
    output->role = BufferRole::kOutput;
    outputs[b] = std::move(output);
  }
  replaced(alone.args);
  for (GpuKernel& kernel : alone.kernels) {
    replaced(kernel.params);
    kernel.body = replace_buffers(kernel.body, outputs);
  }
  return alone;
}

Buffer packed_source(const GpuProgram& packing, const Buffer& packed) {
  for (const GpuKernel& kernel : packing.kernels) {
    if (std::ranges::find(kernel.params, packed) == kernel.params.end()) continue;
    for (const Buffer& b : kernel.params)
      if (b->role == BufferRole::kConstant) return b;
  }
  return nullptr;
}

RangeMap kernel_ranges(const GpuKernel& kernel) {
  RangeMap ranges;
  for (size_t d = 0; d < 3; ++d) {
    if (kernel.block_vars[d] != nullptr) ranges.bind(kernel.block_vars[d], kernel.grid[d]);
    if (kernel.thread_vars[d] != nullptr) ranges.bind(kernel.thread_vars[d], kernel.block[d]);
  }
  return ranges;
}

bool asks_for_thread(const Expr& condition, const GpuKernel& kernel) {
  return std::ranges::any_of(kernel.thread_vars, [&](const Var& thread) {
    return thread != nullptr && uses_var(condition, thread);
  });
}

std::string to_text(const GpuKernel& kernel) {
  const auto triple = [](const std::array<int64_t, 3>& a) { return str(a[0], ", ", a[1], ", ", a[2]); };
  std::string text = str("kernel ", kernel.name, "(");
  for (size_t i = 0; i < kernel.params.size(); ++i) text += (i == 0 ? "" : ", ") + kernel.params[i]->name;
  text += str(") grid (", triple(kernel.grid), ") block (", triple(kernel.block), ")");
  if (kernel.min_blocks > 0) text += str(" min_blocks ", kernel.min_blocks);
  text += "\n";
  for (size_t i = 0; i < kernel.shared.size(); ++i) {
    const BufferNode& b = *kernel.shared[i];
    text += str("  shared ", b.name, " ", dtype_name(b.dtype), "[");
    for (size_t d = 0; d < b.shape.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(b.shape[d]);
    text += str("]", b.layout.empty() ? "" : " layout " + b.layout);
    if (i < kernel.shared_offsets.size()) text += str(" at ", kernel.shared_offsets[i]);
    text += "\n";
  }
  for (size_t i = 0; i < kernel.tensor_maps.size(); ++i)
    text += str("  map ", i, " of ", kernel.tensor_maps[i].buffer->name, ": ",
                to_text(kernel.tensor_maps[i].map), "\n");
  std::string body = to_text(kernel.body);
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = std::min(body.find('\n', begin), body.size());
    text += "  " + body.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

std::string to_text(const GpuProgram& program) {
  std::string text;
  for (const Buffer& b : program.workspace) text += str("workspace ", b->name, " ", b->bytes(), " bytes\n");
  for (const GpuKernel& kernel : program.kernels) text += to_text(kernel);
  if (program.packing != nullptr) text += "once before:\n" + to_text(*program.packing);
  return text;
}

}  // namespace tuner

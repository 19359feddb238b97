// emulate(): memory and numbers around the kernels' blocks; fission.h and instrument.h do the rest.
#include "compiler_core/emulator/emulator.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler_core/base/int_math.h"
#include "compiler_core/emulator/fission.h"
#include "compiler_core/emulator/initialised.h"
#include "compiler_core/emulator/validate.h"
#include "compiler_core/emulator/vectorise.h"
#include "compiler_core/ir/intrinsic.h"
#include "compiler_core/ir/layout.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

using emulation::Clock;
using emulation::FaultLog;
using emulation::Fission;
using emulation::KernelContext;
using emulation::Place;
using emulation::Shadow;

int64_t product(const std::array<int64_t, 3>& n) { return n[0] * n[1] * n[2]; }

// buffer[...] = value for every element.
Stmt fill(const Buffer& buffer, const Expr& value) {
  std::vector<Expr> indices;
  std::vector<Var> vars;
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    vars.push_back(make_var("e"));
    indices.emplace_back(vars.back());
  }
  Stmt body = make_store(buffer, indices, value);
  for (size_t d = vars.size(); d-- > 0;) body = make_for(vars[d], buffer->shape[d], std::move(body));
  return body;
}
Stmt fill_zero(const Buffer& buffer) { return fill(buffer, int_imm(0, buffer->dtype)); }
// What is read before it is written shows in the values too.
Stmt fill_poison(const Buffer& buffer) {
  if (!is_float(buffer->dtype)) return fill_zero(buffer);
  return fill(buffer, float_imm(std::numeric_limits<double>::quiet_NaN(), buffer->dtype));
}

bool reads(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  visit(s,
        [&](const Stmt& inner) { found = found || (is_async(*inner, "fetch") && inner->buffer == buffer); });
  visit_exprs(s,
              [&](const Expr& e) { found = found || (e->kind == ExprKind::kLoad && e->buffer == buffer); });
  return found;
}
bool writes(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  visit(s, [&](const Stmt& inner) {
    found = found || (inner->kind == StmtKind::kStore && inner->buffer == buffer);
  });
  return found;
}

class Emulation {
 public:
  Emulation(const GpuProgram& program, const EmulatorOptions& options) : gpu_(program), options_(options) {}

  Result<EmulatedProgram> run() {
    RETURN_IF_ERROR(check_program());
    declare_globals();
    if (options_.check) declare_clock();
    std::vector<Stmt> kernels;
    for (const GpuKernel& kernel : gpu_.kernels) {
      ASSIGN_OR_RETURN(Stmt stmt, emulate_kernel(kernel));
      kernels.push_back(std::move(stmt));
    }
    return assemble(std::move(kernels));
  }

 private:
  Status check_program() const {
    if (gpu_.kernels.empty()) return invalid_config(gpu_.name, ": no kernels to emulate");
    int64_t threads = 1;
    for (const GpuKernel& kernel : gpu_.kernels) {
      RETURN_IF_ERROR(emulation::validate(kernel));
      threads += product(kernel.grid) * product(kernel.block) + 1;
      // Threads are numbered by int32 in the report of faults.
      if (threads > std::numeric_limits<int32_t>::max())
        return invalid_config(kernel.name, ": ", threads,
                              " threads are more than the emulator can number; emulate a smaller shape");
    }
    if (options_.sample_blocks > 0 && (!options_.check || gpu_.kernels.size() != 1))
      return invalid_config(gpu_.name,
                            ": a sample of blocks needs checks and a Program of one kernel, found ",
                            gpu_.kernels.size());
    return Status::ok();
  }

  Buffer scratch(std::string name, DType type, std::vector<int64_t> shape) {
    scratch_.push_back(make_buffer(std::move(name), type, std::move(shape)));
    return scratch_.back();
  }

  void declare_globals() {
    program_.name = gpu_.name;
    program_.args = gpu_.args;
    scratch_ = gpu_.workspace;
    if (!options_.check) return;
    std::vector<Buffer> written = gpu_.workspace;
    for (const Buffer& arg : gpu_.args)
      if (arg->role == BufferRole::kOutput) written.push_back(arg);
    for (const Buffer& b : written) {
      Owners& owners = owners_[b.get()];
      if (options_.sample_blocks > 0 && b->role == BufferRole::kOutput) {
        owners.stored = make_buffer(b->name + ".written", DType::kInt32, b->shape, MemoryScope::kGlobal,
                                    BufferRole::kOutput);
        program_.args.push_back(owners.stored);
      } else {
        owners.stored = scratch(b->name + ".owner", DType::kInt32, b->shape);
      }
      setup_.push_back(fill_poison(b));
      setup_.push_back(fill_zero(owners.stored));
      const bool both = std::any_of(gpu_.kernels.begin(), gpu_.kernels.end(), [&](const GpuKernel& k) {
        return reads(k.body, b) && writes(k.body, b);
      });
      if (!both) continue;
      owners.read = scratch(b->name + ".reader", DType::kInt32, b->shape);
      setup_.push_back(fill_zero(owners.read));
    }
  }

  void declare_clock() {
    // Tags of int32 take half the memory; a Program of very many intervals needs int64.
    int64_t tags = 0;
    for (const GpuKernel& k : gpu_.kernels)
      tags += product(k.grid) * (emulation::most_barriers(k.body) + 3) * (product(k.block) + 1);
    const DType type = tags < std::numeric_limits<int32_t>::max() / 2 ? DType::kInt32 : DType::kInt64;
    // Register scalars: code generation keeps them out of memory.
    const auto scalar = [&](const char* name, DType t) {
      scratch_.push_back(make_buffer(name, t, {}, MemoryScope::kRegister));
      return scratch_.back();
    };
    clock_.base = scalar("interval", type);
    clock_.block_base = scalar("block_interval", type);
    clock_.tag = scalar("tag", type);
    clock_.now = scalar("now", DType::kInt32);
    clock_.launch_tag = scalar("launch_tag", DType::kInt32);
    setup_.push_back(make_store(clock_.base, {}, int_imm(0, type)));
  }

  Place global_place(const GpuKernel& kernel, const Buffer& buffer) const {
    Place place{.storage = buffer, .through_layout = !buffer->layout.empty()};
    const auto found = owners_.find(buffer.get());
    if (found == owners_.end()) return place;
    const bool both = reads(kernel.body, buffer) && writes(kernel.body, buffer);
    const int64_t threads = product(kernel.grid) * product(kernel.block);
    place.shadow = Shadow{.written = found->second.stored,
                          .read = both ? found->second.read : nullptr,
                          .base = int_imm(clock_.first, DType::kInt32),
                          .tag = load(clock_.launch_tag, {}),
                          .many = int_imm(clock_.first + threads, DType::kInt32),
                          .oldest = int_imm(1, DType::kInt32),
                          .store_conflict = FaultKind::kWrittenTwice};
    return place;
  }

  Place shared_place(const Buffer& buffer) {
    const int64_t elements = storage_elements(*buffer);
    Place place{.storage = scratch(buffer->name, buffer->dtype, {elements}), .through_layout = true};
    if (!options_.check) return place;
    const DType type = clock_.base->dtype;
    const Expr base = load(clock_.base, {});
    place.shadow = Shadow{.written = scratch(buffer->name + ".writer", type, {elements}),
                          .read = scratch(buffer->name + ".reader", type, {elements}),
                          .base = base,
                          .tag = load(clock_.tag, {}),
                          .many = base + int_imm(clock_.stride - 1, type),
                          .oldest = load(clock_.block_base, {})};
    setup_.push_back(fill_poison(place.storage));
    setup_.push_back(fill_zero(place.shadow->written));
    setup_.push_back(fill_zero(place.shadow->read));
    return place;
  }

  // Shared buffers that asynchronous copies go to.
  void declare_in_flight(KernelContext& context) {
    visit(context.kernel->body, [&](const Stmt& s) {
      if (is_async(*s, "fetch")) declare_in_flight(context, s->operands[1]->buffer);
      if (!is_async(*s, "copy")) return;
      visit(s->body, [&](const Stmt& store) {
        if (store->kind == StmtKind::kStore) declare_in_flight(context, store->buffer);
      });
      if (context.groups != nullptr) return;
      scratch_.push_back(make_buffer("groups", DType::kInt32, {}, MemoryScope::kRegister));
      context.groups = scratch_.back();
    });
  }
  void declare_in_flight(KernelContext& context, const Buffer& tile) {
    Place& place = context.places.at(tile.get());
    if (place.in_flight) return;
    const std::vector<int64_t> shape = place.storage->shape;
    place.in_flight = emulation::InFlight{.group = scratch(tile->name + ".group", DType::kInt32, shape),
                                          .thread = scratch(tile->name + ".copier", DType::kInt32, shape),
                                          .arriving = scratch(tile->name + ".arriving", tile->dtype, shape)};
    setup_.push_back(fill_zero(place.in_flight->thread));
    setup_.push_back(fill_poison(place.in_flight->arriving));
  }

  // Barriers that copies by TMA arrive at.
  void declare_barriers(KernelContext& context) {
    int64_t count = 0;
    visit(context.kernel->body, [&](const Stmt& s) {
      const bool at_barrier =
          s->kind == StmtKind::kAsync && !s->operands.empty() && s->operands[0]->kind == ExprKind::kLoad;
      if (!at_barrier || context.barriers.contains(s->operands[0]->buffer.get())) return;
      const BufferNode& b = *s->operands[0]->buffer;
      const auto counter = [&](const char* what) { return scratch(b.name + what, DType::kInt32, b.shape); };
      context.barriers[&b] = {.arrivals = counter(".arrivals"),
                              .pending = counter(".pending"),
                              .bytes = counter(".bytes"),
                              .on_way = counter(".on_way"),
                              .phases = counter(".phases"),
                              .first = count};
      count += b.elements();
    });
  }

  // Shared buffers that products read which go on behind their statement.
  void declare_held(KernelContext& context) {
    visit(context.kernel->body, [&](const Stmt& s) {
      const Intrinsic* const i = s->kind == StmtKind::kIntrinsic ? find_intrinsic(s->name) : nullptr;
      if (i == nullptr || i->way == Intrinsic::Way::kWhole) return;
      for (size_t o = 0; o < s->operands.size() && o < i->operands.size(); ++o) {
        const Buffer& buffer = s->operands[o]->buffer;
        const auto place = context.places.find(buffer.get());
        if (i->operands[o].place != IntrinsicOperand::Place::kShared || place == context.places.end() ||
            place->second.held != nullptr)
          continue;
        place->second.held = scratch(buffer->name + ".held", DType::kInt32, place->second.storage->shape);
        setup_.push_back(fill_zero(place->second.held));
      }
      if (context.started != nullptr) return;
      scratch_.push_back(make_buffer("started", DType::kInt32, {}, MemoryScope::kRegister));
      context.started = scratch_.back();
    });
  }

  static void declare_common_bytes(KernelContext& context) {
    const GpuKernel& k = *context.kernel;
    for (size_t i = 0; i < k.shared.size(); ++i)
      for (size_t j = 0; j < k.shared.size(); ++j)
        if (lie_on_each_other(k, k.shared[i], k.shared[j]))
          context.places.at(k.shared[i].get())
              .lies_on.push_back({k.shared[j], k.shared_offsets[i] - k.shared_offsets[j]});
  }

  Result<Stmt> emulate_kernel(const GpuKernel& kernel) {
    KernelContext context{.kernel = &kernel, .block_threads = product(kernel.block)};
    RangeMap ranges;
    std::array<Var, 3> blocks;
    for (size_t d = 0; d < 3; ++d) {
      constexpr const char* kAxes[] = {"x", "y", "z"};
      context.threads[d] = kernel.thread_vars[d] ? kernel.thread_vars[d] : make_var(str("thread.", kAxes[d]));
      blocks[d] = kernel.block_vars[d] ? kernel.block_vars[d] : make_var(str("block.", kAxes[d]));
      ranges.bind(context.threads[d], kernel.block[d]);
      ranges.bind(blocks[d], kernel.grid[d]);
    }
    // Axes of one iteration add nothing.
    const auto number = [](const std::array<Var, 3>& v, const std::array<int64_t, 3>& n) {
      Expr flat = 0;
      for (size_t d = 3; d-- > 0;)
        if (n[d] > 1) flat = flat * Expr(n[d]) + Expr(v[d]);
      return flat;
    };
    context.thread = number(context.threads, kernel.block);
    clock_.stride = context.block_threads + 1;
    if (options_.check) {
      context.faults = &faults_;
      context.number = load(clock_.now, {});
      context.unproved = emulation::unproved_registers(kernel.body);
    }
    for (const Buffer& b : kernel.params) context.places[b.get()] = global_place(kernel, b);
    for (const KernelTensorMap& m : kernel.tensor_maps)
      context.places.try_emplace(m.buffer.get(), global_place(kernel, m.buffer));
    for (const Buffer& b : kernel.shared) context.places[b.get()] = shared_place(b);
    if (options_.check) {
      declare_in_flight(context);
      declare_barriers(context);
      declare_held(context);
      declare_common_bytes(context);
    }

    Fission fission(context, clock_, number(blocks, kernel.grid), options_.reverse_threads);
    ASSIGN_OR_RETURN(Stmt body, fission.run(ranges));
    scratch_.insert(scratch_.end(), fission.scratch().begin(), fission.scratch().end());
    clock_.first += product(kernel.grid) * context.block_threads + 1;
    return block_loops(kernel, blocks, std::move(body));
  }

  Stmt block_loops(const GpuKernel& kernel, const std::array<Var, 3>& blocks, Stmt body) const {
    const int64_t total = product(kernel.grid);
    if (options_.sample_blocks == 0 || options_.sample_blocks >= total) {
      for (size_t d = 0; d < 3; ++d)
        if (kernel.grid[d] > 1 || kernel.block_vars[d] != nullptr)
          body = make_for(blocks[d], kernel.grid[d], std::move(body));
      return body;
    }
    const int64_t stride = ceil_div(total, options_.sample_blocks);
    const Var sample = make_var("sample");
    const Expr block = Expr(total - 1) - Expr(sample) * Expr(stride);
    const VarMap values = {{blocks[0], floor_mod(block, kernel.grid[0])},
                           {blocks[1], floor_mod(floor_div(block, kernel.grid[0]), kernel.grid[1])},
                           {blocks[2], floor_div(block, kernel.grid[0] * kernel.grid[1])}};
    return make_for(sample, ceil_div(total, stride), substitute(body, values));
  }

  // Elements of an output that nobody stored.
  Stmt unwritten(const Buffer& output) {
    std::vector<Expr> indices;
    std::vector<Var> vars;
    Expr flat = 0;
    for (int64_t extent : output->shape) {
      vars.push_back(make_var("e"));
      indices.emplace_back(vars.back());
      flat = flat * Expr(extent) + Expr(vars.back());
    }
    const int64_t site = faults_.add({.kind = FaultKind::kUnwritten,
                                      .kernel = gpu_.name,
                                      .access = output->name,
                                      .shape = output->shape,
                                      .block_threads = 1});
    const Expr stored = load(owners_.at(output.get()).stored, indices);
    Stmt body = make_if(binary(BinaryOp::kEq, stored, int_imm(0, DType::kInt32)),
                        faults_.record(site, flat, Expr(0), Expr(0)));
    for (size_t d = vars.size(); d-- > 0;) body = make_for(vars[d], output->shape[d], std::move(body));
    return body;
  }

  EmulatedProgram assemble(std::vector<Stmt> kernels) {
    std::vector<Stmt> all = std::move(setup_);
    all.insert(all.end(), kernels.begin(), kernels.end());
    if (options_.check) {
      if (options_.sample_blocks == 0)
        for (const Buffer& arg : gpu_.args)
          if (arg->role == BufferRole::kOutput) all.push_back(unwritten(arg));
      all.insert(all.begin(), faults_.reset());
      program_.args.push_back(faults_.buffer());
    }
    program_.body = emulation::vectorise_innermost(make_seq(std::move(all)));
    for (const Buffer& b : scratch_) program_.body = make_allocate(b, program_.body);
    return {.program = std::move(program_), .sites = faults_.sites()};
  }

  struct Owners {
    Buffer stored, read;  // tags of the last thread to store, to read; read: null when no kernel does both
  };

  const GpuProgram& gpu_;
  const EmulatorOptions options_;
  Program program_;
  std::vector<Buffer> scratch_;  // allocated around everything
  std::vector<Stmt> setup_;
  std::map<const BufferNode*, Owners> owners_;
  Clock clock_;
  FaultLog faults_;
};

}  // namespace

Result<EmulatedProgram> emulate(const GpuProgram& program, const EmulatorOptions& options) {
  return Emulation(program, options).run();
}

}  // namespace tuner

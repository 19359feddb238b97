#include "compiler_core/codegen_npu/lower_npu.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/linear.h"
#include "compiler_core/codegen_npu/nest.h"
#include "compiler_core/codegen_npu/out_stage.h"
#include "compiler_core/codegen_npu/pack_constants.h"
#include "compiler_core/codegen_npu/sums.h"
#include "compiler_core/ir/visitor.h"
#include "compiler_core/npu/allocate.h"
#include "compiler_core/npu/encoding.h"
#include "compiler_core/npu/fields.h"
#include "compiler_core/npu/tokens.h"

namespace tuner {
namespace {

using npu::Instruction;
using npu::Op;

constexpr size_t kMostInstructions = size_t{1} << 18;
constexpr int64_t kMostVirtualWords = 1 << 20;  // what allocate_scratchpad() takes
// Zeros in DRAM, which loads bring where a tile reaches beyond its tensor: DRAM that nobody fills is 0.
constexpr int64_t kZeroBytes = 1 << 14;
// What the fields of instructions hold.
constexpr int64_t kMostLoadRows = 1023, kMostLoadBytes = 16383, kMostSidePadding = 1023, kMostEndPadding = 15;
constexpr int64_t kMostMatmulRows = 1023, kMostOuter = 255, kMostTerms = 4095, kMostStoreRows = 4095;
constexpr int64_t kMostTaps = 15, kMostTapStride = 1023;
// Places of a fragment: more than a few are never in use.
constexpr int64_t kMostCopies = 4;

std::string first_line(const Stmt& s) {
  const std::string text = to_text(s);
  return text.substr(0, text.find('\n'));
}

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

// A buffer in the scratchpad: words as allocate_scratchpad() wants them, and what stands between two rows.
struct SharedPlace {
  uint32_t begin = 0;
  int64_t pitch = 0;  // bytes from one row, the last dimension, to the next
};

class NpuLowering {
 public:
  NpuLowering(const Program& program, const npu::Machine& machine) : program_(program), m_(machine) {}

  Result<NpuProgram> run() {
    if (program_.foreign != nullptr) return invalid_config("npu: takes no source of a user's");
    if (program_.body == nullptr) return invalid_config("npu: there is nothing to compute");
    RETURN_IF_ERROR(pack_constants(program_, kernel_));
    RETURN_IF_ERROR(place_arguments());
    RETURN_IF_ERROR(place_buffers());
    RETURN_IF_ERROR(load_tables());
    RETURN_IF_ERROR(walk(program_.body));
    return finish();
  }

 private:
  // --- memories ---

  Status place_arguments() {
    uint64_t at = 0;
    for (const Buffer& arg : program_.args) {
      const bool out = is_result(arg->role);
      if (arg->role == BufferRole::kInOut)
        return invalid_config("npu: ", arg->name, " is read and written in place");
      places_in_dram_[arg.get()] = at;
      kernel_.operands.push_back(
          {.dram = at, .bytes = static_cast<uint64_t>(arg->bytes()), .is_input = !out, .is_output = out});
      at += static_cast<uint64_t>(round_up(arg->bytes(), m_.burst_bytes));
    }
    zeros_at_ = at;
    kernel_.constants_at = kernel_.dram_bytes = at + kZeroBytes;
    if (kernel_.dram_bytes <= npu::kMostDramBytes) return Status::ok();
    return invalid_config("npu: operands take ", kernel_.dram_bytes, " bytes, the device's DRAM has ",
                          npu::kMostDramBytes);
  }

  Status place_buffers() {
    std::set<const BufferNode*> staged;
    visit(program_.body, [&](const Stmt& s) {
      if (is_async(*s, "copy"))
        visit(s->body, [&](const Stmt& inner) {
          if (inner->kind == StmtKind::kStore) staged.insert(inner->buffer.get());
        });
    });
    Status status;
    visit(program_.body, [&](const Stmt& s) {
      if (s->kind != StmtKind::kAllocate || !status.is_ok()) return;
      if (s->buffer->scope == MemoryScope::kShared)
        status = place_shared(*s->buffer, staged.contains(s->buffer.get()));
      else if (s->buffer->scope == MemoryScope::kFragment)
        status = add_fragment(*s->buffer);
      else
        status = invalid_config("npu: ", s->buffer->name, " is in ", memory_scope_name(s->buffer->scope),
                                " memory; the device has shared memory (the scratchpad) and fragments "
                                "(accumulators)");
    });
    RETURN_IF_ERROR(status);
    return place_fragments();
  }

  Status place_shared(const BufferNode& b, bool staged) {
    if (!is_byte(b.dtype) || b.shape.empty())
      return invalid_config("npu: ", b.name, " is ", b.dtype, "; the scratchpad takes rows of bytes");
    SharedPlace place{.begin = next_word_, .pitch = b.shape.back()};
    if (std::string_view layout = b.layout; !layout.empty()) {
      if (!layout.starts_with("pad:"))
        return invalid_config("npu: ", b.name, " has layout ", layout, "; the device knows pad:BYTES");
      place.pitch += std::stoll(std::string(layout.substr(4)));
    }
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < b.shape.size(); ++d) rows *= b.shape[d];
    if (place.pitch % m_.bank_bytes != 0)
      return invalid_config("npu: ", b.name, ": a row of ", place.pitch,
                            " bytes is no whole number of words of ", m_.bank_bytes);
    // Each stage is a buffer of its own.
    const int64_t parts = staged ? b.shape[0] : 1, words = rows / parts * (place.pitch / m_.bank_bytes);
    for (int64_t part = 0; part < parts; ++part) RETURN_IF_ERROR(new_buffer(words));
    shared_[&b] = place;
    return Status::ok();
  }

  Status new_buffer(int64_t words) {
    if (next_word_ + words > kMostVirtualWords || words > m_.words())
      return invalid_config("npu: a buffer of ", words * m_.bank_bytes,
                            " bytes does not fit the scratchpad of ", m_.scratchpad_bytes);
    buffers_.push_back({next_word_, static_cast<uint32_t>(words)});
    next_word_ += static_cast<uint32_t>(words);
    return Status::ok();
  }

  Status add_fragment(const BufferNode& b) {
    if (b.dtype != DType::kInt32 || b.shape.empty() || b.shape.back() % m_.array_columns != 0)
      return invalid_config("npu: ", b.name, ": accumulators are rows of ", m_.array_columns, " int32");
    const int64_t blocks = b.shape.back() / m_.array_columns;
    fragments_.emplace(&b, FragmentSums(b.elements() / b.shape.back(), blocks));
    fragment_order_.push_back(&b);
    return Status::ok();
  }

  Status place_fragments() {
    int64_t rows = 0;
    for (const auto& [buffer, sums] : fragments_) rows += sums.size();
    if (rows == 0) return Status::ok();
    const int64_t copies = std::min(kMostCopies, m_.accumulator_rows() / rows);
    if (copies == 0)
      return invalid_config("npu: sums take ", rows, " rows of the accumulators, which have ",
                            m_.accumulator_rows());
    int64_t at = 0;
    for (const BufferNode* buffer : fragment_order_) {
      FragmentSums& sums = fragments_.at(buffer);
      sums.place(at, copies);
      at += copies * sums.size();
    }
    return Status::ok();
  }

  // The place of an element in bytes, counted from the first word; of an argument in DRAM.
  Result<Linear> byte_of(const Buffer& buffer, const std::vector<Expr>& indices) const {
    const auto shared = shared_.find(buffer.get());
    const auto argument = places_in_dram_.find(buffer.get());
    if (shared == shared_.end() && argument == places_in_dram_.end())
      return invalid_config("npu: ", buffer->name, " is in no memory of the device");
    Linear at;
    at.by.assign(scope_.loops().size(), 0);
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::optional<Linear> index = scope_.linear(indices[d]);
      if (!index)
        return invalid_config("npu: ", buffer->name, "[", to_text(indices[d]),
                              "] moves by no constant step in the loops of an instruction");
      const bool last = d + 1 == indices.size();
      const int64_t factor = last && shared != shared_.end() ? shared->second.pitch : buffer->shape[d];
      at.base *= factor;
      for (int64_t& each : at.by) each *= factor;
      at.base += index->base;
      for (size_t i = 0; i < at.by.size(); ++i) at.by[i] += index->by[i];
    }
    const int64_t size = dtype_bytes(buffer->dtype);
    at.base *= size;
    for (int64_t& each : at.by) each *= size;
    at.base += shared != shared_.end() ? shared->second.begin * m_.bank_bytes
                                       : static_cast<int64_t>(argument->second);
    return at;
  }

  // --- instructions ---

  Status emit(const Instruction& i) {
    if (const Status fits = npu::check(i); !fits.is_ok()) return invalid_config("npu: ", fits.message());
    if (code_.size() >= kMostInstructions)
      return invalid_config("npu: more than ", kMostInstructions, " instructions: larger tiles need fewer");
    code_.push_back(i);
    return Status::ok();
  }
  Status set_strides(Op op, int64_t dram, int64_t words) {
    auto& now = op == Op::kSetLoad ? load_strides_ : store_strides_;
    const std::pair<int64_t, int64_t> wanted{dram, words};
    if (now == wanted) return Status::ok();
    now = wanted;
    return emit(
        {.op = op, .dram_stride = static_cast<uint32_t>(dram), .stride = static_cast<uint32_t>(words)});
  }

  void note(const Nest& nest) {
    std::string text;
    for (const auto& [var, value] : around_) text += str(text.empty() ? "" : " ", var->name, "=", value);
    std::string loops;
    for (const Stmt& loop : nest.loops) loops += str("for ", loop->var->name, " in 0..", loop->extent, ": ");
    notes_.emplace_back(static_cast<uint32_t>(code_.size()),
                        str(text, text.empty() ? "" : ": ", loops, first_line(nest.leaf)));
  }

  // --- the walk ---

  Status walk(const Stmt& s) {
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
          return invalid_config("npu: the condition ", to_text(s->condition),
                                " is not known while compiling");
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
    if (s->kind != StmtKind::kFor)
      return invalid_config("npu: has no instruction for \"", first_line(s), "\"");
    around_.emplace_back(s->var.get(), 0);
    for (int64_t i = 0; i < s->extent; ++i) {
      around_.back().second = i;
      scope_.set(s->var.get(), i);
      RETURN_IF_ERROR(walk(s->body));
    }
    around_.pop_back();
    return Status::ok();
  }

  const Nest& nest_of(const Stmt& s) {
    const auto found = nests_.find(s.get());
    return found != nests_.end() ? found->second : nests_.emplace(s.get(), nest_at(s)).first->second;
  }

  // False: it is more than one instruction's, and a loop less may be one's.
  Result<bool> instruction(const Nest& nest) {
    std::vector<InstructionLoop> loops;
    for (const Stmt& loop : nest.loops) {
      if (loop->loop != LoopKind::kSerial && loop->loop != LoopKind::kUnrolled)
        return Status(invalid_config("npu: a ", loop_kind_name(loop->loop), " loop over ", loop->var->name));
      loops.push_back({loop->var.get(), loop->extent, 0, loop->extent});
    }
    scope_.begin(std::move(loops));
    const StmtNode& leaf = *nest.leaf;
    if (leaf.kind == StmtKind::kStore) {
      if (leaf.reduce != ReduceOp::kNone)
        return Status(invalid_config("npu: has no instruction for the sum \"", first_line(nest.leaf),
                                     "\": tensorize it"));
      for (const Expr& guard : nest.guards)
        if (!scope_.narrow(guard)) return false;
      if (scope_.is_empty()) return true;
      note(nest);
      RETURN_IF_ERROR(leaf.buffer->scope == MemoryScope::kShared ? load(leaf) : store(leaf));
      return true;
    }
    if (!nest.guards.empty() || !stays_in_block(leaf.operands[0])) return false;
    const std::string_view name = leaf.name;
    if (name.starts_with("npu.zero.")) {
      RETURN_IF_ERROR(zero(leaf));
      return true;
    }
    RETURN_IF_ERROR(check_array(name));
    if (name.starts_with("npu.rows."))
      return nest.loops.size() <= 2 ? rows_product(nest) : Result<bool>(false);
    if (name.starts_with("npu.terms."))
      return nest.loops.size() <= 1 ? terms_product(nest) : Result<bool>(false);
    if (name.starts_with("npu.channels.")) return channels_product(nest);
    return Status(invalid_config("npu: has no instruction for ", name));
  }

  Status check_array(std::string_view intrinsic) const {
    const std::string sides = str(m_.array_rows, "x", m_.array_columns);
    if (intrinsic.ends_with("." + sides) || intrinsic.ends_with(str(".", m_.array_columns)))
      return Status::ok();
    return invalid_config("npu: ", intrinsic, " is of another array; that of the target is ", sides);
  }

  // --- products ---

  struct SumRows {
    FragmentSums* sums;
    Linear row;
    int64_t block;
  };
  // True if the loops of the instruction move its sums from row to row alone.
  bool stays_in_block(const Expr& sums) const {
    const std::optional<Linear> column = scope_.linear(sums->operands.back());
    return column && column->is_constant();
  }
  Result<SumRows> sums_of(const Expr& operand) {
    const auto found = fragments_.find(operand->buffer.get());
    if (found == fragments_.end())
      return invalid_config("npu: ", operand->buffer->name, " is not in the accumulators");
    SumRows at{.sums = &found->second, .row = {}, .block = 0};
    at.row.by.assign(scope_.loops().size(), 0);
    const std::vector<Expr>& indices = operand->operands;
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::optional<Linear> index = scope_.linear(indices[d]);
      if (!index) return invalid_config("npu: ", to_text(operand), " moves by no constant step");
      if (d + 1 == indices.size()) {
        if (!index->is_constant() || index->base % m_.array_columns != 0)
          return invalid_config("npu: ", to_text(operand), " is not a block of columns");
        at.block = index->base / m_.array_columns;
        break;
      }
      at.row.base = at.row.base * operand->buffer->shape[d] + index->base;
      for (size_t i = 0; i < at.row.by.size(); ++i)
        at.row.by[i] = at.row.by[i] * operand->buffer->shape[d] + index->by[i];
    }
    return at;
  }

  Status zero(const StmtNode& leaf) {
    ASSIGN_OR_RETURN(const SumRows at, sums_of(leaf.operands[0]));
    const bool tile = leaf.name.find('x') != std::string::npos;
    const int64_t rows = tile ? m_.array_rows : 1;
    std::vector<int64_t> counter(scope_.loops().size(), 0);
    for (;;) {
      int64_t row = at.row.base;
      for (size_t i = 0; i < counter.size(); ++i) row += at.row.by[i] * counter[i];
      for (int64_t r = 0; r < rows; ++r) at.sums->set_zero(row + r, at.block);
      size_t i = counter.size();
      while (i > 0 && ++counter[i - 1] == scope_.loops()[i - 1].extent) counter[--i] = 0;
      if (i == 0) return Status::ok();
    }
  }

  // Whether a product adds to these rows or begins them. They hold sums afterwards.
  Result<bool> begin_sums(FragmentSums& sums, int64_t row, int64_t count, int64_t block) {
    const FragmentSums::State before = sums.state(row, block);
    for (int64_t r = 0; r < count; ++r) {
      FragmentSums::State& state = sums.state(row + r, block);
      if (state != before || state == FragmentSums::State::kUnset)
        return invalid_config(
            "npu: a product adds to rows of which some hold nothing, or other sums than the rest");
      state = FragmentSums::State::kSummed;
    }
    return before == FragmentSums::State::kSummed;
  }

  Result<int64_t> words_of(int64_t bytes, const Expr& operand) const {
    if (bytes % m_.bank_bytes == 0) return bytes / m_.bank_bytes;
    return invalid_config("npu: ", to_text(operand),
                          " does not begin at a word of the scratchpad, or its rows do not");
  }

  static bool is_unsigned(const Expr& operand) { return operand->dtype == DType::kUInt8; }

  Result<bool> rows_product(const Nest& nest) {
    const std::vector<Expr>& operands = nest.leaf->operands;
    ASSIGN_OR_RETURN(const Linear b, byte_of(operands[2]->buffer, operands[2]->operands));
    if (!b.is_constant()) return false;
    ASSIGN_OR_RETURN(const SumRows sums, sums_of(operands[0]));
    ASSIGN_OR_RETURN(const Linear a, byte_of(operands[1]->buffer, operands[1]->operands));
    // Loops of one iteration are none.
    std::vector<size_t> loops;
    for (size_t i = 0; i < nest.loops.size(); ++i)
      if (nest.loops[i]->extent > 1) loops.push_back(i);
    const auto extent = [&](size_t from_inside) {
      return loops.size() > from_inside ? nest.loops[loops[loops.size() - 1 - from_inside]]->extent : 1;
    };
    const auto step = [&](const Linear& l, size_t from_inside) {
      return loops.size() > from_inside ? l.by[loops[loops.size() - 1 - from_inside]] : 0;
    };
    const int64_t rows = extent(0), outer = extent(1);
    if ((rows > 1 && step(sums.row, 0) != 1) ||
        (outer > 1 && (step(sums.row, 1) != rows || rows > kMostMatmulRows)))
      return false;
    ASSIGN_OR_RETURN(const int64_t source, words_of(a.base, operands[1]));
    ASSIGN_OR_RETURN(const int64_t stride, words_of(step(a, 0), operands[1]));
    ASSIGN_OR_RETURN(const int64_t outer_stride, words_of(step(a, 1), operands[1]));
    ASSIGN_OR_RETURN(const int64_t weights, words_of(b.base, operands[2]));
    note(nest);
    RETURN_IF_ERROR(
        take_weights(operands[2], weights, shared_.at(operands[2]->buffer.get()).pitch / m_.bank_bytes));
    // As many rows as an instruction takes, again and again.
    const int64_t rows_each = std::min(rows, kMostMatmulRows), outer_each = std::min(outer, kMostOuter);
    for (int64_t o = 0; o < outer; o += outer_each)
      for (int64_t r = 0; r < rows; r += rows_each) {
        const int64_t count = std::min(rows_each, rows - r), outer_count = std::min(outer_each, outer - o);
        const int64_t row = sums.row.base + o * rows + r;
        ASSIGN_OR_RETURN(const bool adds, begin_sums(*sums.sums, row, count * outer_count, sums.block));
        RETURN_IF_ERROR(emit({.op = Op::kMatmul,
                              .accumulate = adds,
                              .swap = std::exchange(must_swap_, false),
                              .is_unsigned = is_unsigned(operands[1]),
                              .source = static_cast<uint32_t>(source + o * outer_stride + r * stride),
                              .sums = static_cast<uint32_t>(sums.sums->row(row, sums.block)),
                              .rows = static_cast<uint32_t>(count),
                              .outer = static_cast<uint32_t>(outer_count),
                              .stride = static_cast<uint32_t>(stride),
                              .outer_stride = static_cast<uint32_t>(outer_stride)}));
        latest_matmul_ = code_.size() - 1;
      }
    return true;
  }

  // The weights of the next product. Unless they are there, they are filled beside the rows of the product
  // before, if they had been loaded then.
  Status take_weights(const Expr& operand, int64_t word, int64_t stride) {
    const size_t loaded = loaded_at(static_cast<uint32_t>(word));
    const Weights wanted{word, stride, loaded};
    if (weights_ == wanted) return Status::ok();
    weights_ = wanted;
    must_swap_ = true;
    if (stride > 255)
      return invalid_config("npu: rows of ", operand->buffer->name, " are ", stride,
                            " words apart, a fill takes at most 255");
    if (latest_matmul_ && !code_[*latest_matmul_].fill && loaded <= *latest_matmul_) {
      Instruction& before = code_[*latest_matmul_];
      before.fill = true;
      before.source2 = static_cast<uint32_t>(word);
      before.stride2 = static_cast<uint32_t>(stride);
      return Status::ok();
    }
    return emit({.op = Op::kMatmul,
                 .fill = true,
                 .source2 = static_cast<uint32_t>(word),
                 .stride2 = static_cast<uint32_t>(stride)});
  }

  Result<bool> terms_product(const Nest& nest) {
    const std::vector<Expr>& operands = nest.leaf->operands;
    ASSIGN_OR_RETURN(const SumRows sums, sums_of(operands[0]));
    if (!sums.row.is_constant()) return false;
    ASSIGN_OR_RETURN(const Linear a, byte_of(operands[1]->buffer, operands[1]->operands));
    ASSIGN_OR_RETURN(const Linear b, byte_of(operands[2]->buffer, operands[2]->operands));
    const int64_t terms = nest.loops.empty() ? 1 : nest.loops[0]->extent;
    const auto step = [&](const Linear& l) { return l.by.empty() ? 0 : l.by[0]; };
    ASSIGN_OR_RETURN(const int64_t source, words_of(a.base, operands[1]));
    ASSIGN_OR_RETURN(const int64_t stride, words_of(step(a), operands[1]));
    ASSIGN_OR_RETURN(const int64_t source2, words_of(b.base, operands[2]));
    ASSIGN_OR_RETURN(const int64_t stride2, words_of(step(b), operands[2]));
    note(nest);
    for (int64_t k = 0; k < terms; k += kMostTerms) {
      ASSIGN_OR_RETURN(const bool adds, begin_sums(*sums.sums, sums.row.base, m_.array_rows, sums.block));
      RETURN_IF_ERROR(emit({.op = Op::kMatmulOs,
                            .accumulate = adds,
                            .is_unsigned = is_unsigned(operands[1]),
                            .source = static_cast<uint32_t>(source + k * stride),
                            .source2 = static_cast<uint32_t>(source2 + k * stride2),
                            .sums = static_cast<uint32_t>(sums.sums->row(sums.row.base, sums.block)),
                            .rows = static_cast<uint32_t>(std::min(kMostTerms, terms - k)),
                            .stride = static_cast<uint32_t>(stride),
                            .stride2 = static_cast<uint32_t>(stride2)}));
    }
    return true;
  }

  // One loop over results, and up to two over taps, in any order.
  Result<bool> channels_product(const Nest& nest) {
    const std::vector<Expr>& operands = nest.leaf->operands;
    ASSIGN_OR_RETURN(const SumRows sums, sums_of(operands[0]));
    ASSIGN_OR_RETURN(const Linear a, byte_of(operands[1]->buffer, operands[1]->operands));
    ASSIGN_OR_RETURN(const Linear b, byte_of(operands[2]->buffer, operands[2]->operands));
    Instruction i{
        .op = Op::kMacc, .is_unsigned = is_unsigned(operands[1]), .rows = 1, .taps_x = 1, .taps_y = 1};
    const int64_t tap_bytes = m_.column_words() * m_.bank_bytes;
    bool has_rows = false;
    int taps = 0;
    for (size_t l = nest.loops.size(); l-- > 0;) {  // from the inside
      const int64_t extent = nest.loops[l]->extent;
      if (extent == 1) continue;
      ASSIGN_OR_RETURN(const int64_t step, words_of(a.by[l], operands[1]));
      if (sums.row.by[l] != 0) {
        if (has_rows || sums.row.by[l] != 1 || b.by[l] != 0 || extent > kMostMatmulRows ||
            step > kMostTapStride)
          return false;
        has_rows = true;
        i.rows = static_cast<uint32_t>(extent);
        i.stride = static_cast<uint32_t>(step);
      } else {
        const int64_t apart = taps == 0 ? tap_bytes : tap_bytes * int64_t{i.taps_x};
        if (taps == 2 || b.by[l] != apart || extent > kMostTaps) return false;
        (taps == 0 ? i.taps_x : i.taps_y) = static_cast<uint32_t>(extent);
        (taps == 0 ? i.step_x : i.step_y) = static_cast<uint32_t>(step);
        ++taps;
      }
    }
    ASSIGN_OR_RETURN(const int64_t source, words_of(a.base, operands[1]));
    ASSIGN_OR_RETURN(const int64_t source2, words_of(b.base, operands[2]));
    i.source = static_cast<uint32_t>(source);
    i.source2 = static_cast<uint32_t>(source2);
    i.sums = static_cast<uint32_t>(sums.sums->row(sums.row.base, sums.block));
    note(nest);
    ASSIGN_OR_RETURN(i.accumulate, begin_sums(*sums.sums, sums.row.base, i.rows, sums.block));
    RETURN_IF_ERROR(emit(i));
    return true;
  }

  // --- loads ---

  // One number behind the latest instruction that loaded into the buffer of this word; 0: none.
  size_t loaded_at(uint32_t word) const {
    const auto found = loads_.find(buffer_at(word));
    return found == loads_.end() ? 0 : found->second;
  }
  size_t buffer_at(uint32_t word) const {
    const auto after =
        std::upper_bound(buffers_.begin(), buffers_.end(), word,
                         [](uint32_t w, const npu::ScratchpadBuffer& b) { return w < b.begin; });
    return static_cast<size_t>(after - buffers_.begin()) - 1;
  }

  // A rectangle: rows of bytes side by side in both memories, some of them zeros.
  struct Rectangle {
    int64_t dram = 0, word = 0;  // of the first byte that is there, of the first row with its padding
    int64_t dram_stride = 0, stride = 0;  // from row to row; of the scratchpad in words
    int64_t rows = 1, bytes = 1;          // that are there
    int64_t left = 0, right = 0, top = 0, bottom = 0;
  };

  Status load(const StmtNode& leaf) {
    Expr value = leaf.value;
    const std::vector<InstructionLoop> whole = scope_.loops();
    int64_t fill = 0;
    ASSIGN_OR_RETURN(const Linear to, byte_of(leaf.buffer, leaf.indices));
    while (value->kind == ExprKind::kSelect && is_const_int(value->operands[2], &fill)) {
      if (fill != 0)
        return invalid_config("npu: a tile of ", leaf.buffer->name, " is filled up with ", fill, ", not 0");
      if (!scope_.narrow(value->operands[0]))
        return invalid_config("npu: ", to_text(value->operands[0]), " cuts no rectangle out of the tile of ",
                              leaf.buffer->name);
      value = Expr(value->operands[1]);
    }
    const bool nothing_there = scope_.is_empty();
    const std::vector<InstructionLoop> there = nothing_there ? whole : scope_.loops();
    if (value->kind != ExprKind::kLoad || !places_in_dram_.contains(value->buffer.get()) ||
        value->dtype != leaf.buffer->dtype)
      return invalid_config("npu: ", leaf.buffer->name, " is no copy of an argument: ", to_text(leaf.value));
    scope_.begin(whole);  // as `to`: only the steps count, and the base is the same
    Linear from = to;
    if (!nothing_there) {
      LinearScope inside = scope_;
      inside.begin(there);
      std::swap(scope_, inside);
      const Result<Linear> found = byte_of(value->buffer, value->operands);
      std::swap(scope_, inside);
      RETURN_IF_ERROR(found.status());
      from = *found;
    }
    return load_box(leaf, to, from, whole, there, nothing_there);
  }

  // Loops of one iteration are none. Two loops over elements at equal distances in every memory are one: the
  // inner one is run through, and the outer one goes on where it ends.
  static void merge_loops(std::vector<InstructionLoop>& whole, std::vector<InstructionLoop>& there,
                          std::initializer_list<Linear*> places) {
    const auto drop = [&](size_t i) {
      whole.erase(whole.begin() + static_cast<std::ptrdiff_t>(i));
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(i));
      for (Linear* place : places) place->by.erase(place->by.begin() + static_cast<std::ptrdiff_t>(i));
    };
    for (size_t i = whole.size(); i-- > 0;) {
      if (whole[i].end - whole[i].begin > 1) continue;
      for (Linear* place : places) place->base += place->by[i] * whole[i].begin;
      drop(i);
    }
    for (size_t i = whole.size(); i-- > 1;) {
      const int64_t n = whole[i].end - whole[i].begin;
      const bool is_whole = whole[i].begin == there[i].begin && whole[i].end == there[i].end;
      const bool goes_on = std::ranges::all_of(
          places, [&](const Linear* place) { return place->by[i - 1] == place->by[i] * n; });
      // What is zeros at either end of a row becomes padding of as many bytes.
      const int64_t before = (there[i - 1].begin - whole[i - 1].begin) * n,
                    behind = (whole[i - 1].end - there[i - 1].end) * n;
      if (!is_whole || !goes_on || std::max(before, behind) > kMostSidePadding) continue;
      for (Linear* place : places) {
        place->base += place->by[i] * whole[i].begin;
        place->by[i - 1] = place->by[i];
      }
      for (std::vector<InstructionLoop>* loops : {&whole, &there}) {
        (*loops)[i - 1].begin *= n;
        (*loops)[i - 1].end *= n;
      }
      drop(i);
    }
  }

  // Chooses the loop along rows and the one from row to row; the others run here.
  Status load_box(const StmtNode& leaf, Linear to, Linear from, std::vector<InstructionLoop> whole,
                  std::vector<InstructionLoop> there, bool nothing_there) {
    merge_loops(whole, there, {&to, &from});
    const size_t none = whole.size();
    size_t column = none, row = none;
    const auto extent = [&](size_t i) { return i == none ? 1 : whole[i].end - whole[i].begin; };
    for (size_t i = 0; i < whole.size(); ++i)
      if (extent(i) > 1 && to.by[i] == 1 && (from.by[i] == 1 || nothing_there)) column = i;
    for (size_t i = 0; i < whole.size(); ++i)
      if (i != column && extent(i) > 1) row = i;  // the innermost
    std::vector<int64_t> at;
    for (const InstructionLoop& loop : whole) at.push_back(loop.begin);
    for (;;) {
      Rectangle r;
      bool inside = !nothing_there;
      int64_t target = to.base, source = from.base;
      for (size_t i = 0; i < whole.size(); ++i) {
        target += to.by[i] * at[i];
        const bool runs = i == column || i == row;
        source += from.by[i] * (runs ? there[i].begin : at[i]);
        if (!runs && (at[i] < there[i].begin || at[i] >= there[i].end)) inside = false;
      }
      ASSIGN_OR_RETURN(r.word, aligned(target, leaf));
      r.dram = source;
      if (row != none) {
        ASSIGN_OR_RETURN(r.stride, aligned(to.by[row], leaf));
        r.dram_stride = from.by[row];
        r.rows = there[row].end - there[row].begin;
        r.top = there[row].begin - whole[row].begin;
        r.bottom = whole[row].end - there[row].end;
      }
      if (column != none) {
        r.bytes = there[column].end - there[column].begin;
        r.left = there[column].begin - whole[column].begin;
        r.right = whole[column].end - there[column].end;
      }
      RETURN_IF_ERROR(inside ? load_rectangle(r) : load_fill(r.word, r.stride, extent(row), extent(column)));
      loads_[buffer_at(static_cast<uint32_t>(r.word))] = code_.size();
      size_t i = whole.size();
      for (; i > 0; --i) {
        if (i - 1 == column || i - 1 == row) continue;
        if (++at[i - 1] < whole[i - 1].end) break;
        at[i - 1] = whole[i - 1].begin;
      }
      if (i == 0) return Status::ok();
    }
  }

  Result<int64_t> aligned(int64_t bytes, const StmtNode& leaf) const {
    if (bytes % m_.bank_bytes == 0) return bytes / m_.bank_bytes;
    return invalid_config("npu: rows of ", leaf.buffer->name, " do not begin at words of the scratchpad");
  }

  Status load_rectangle(Rectangle r) {
    const int64_t width = r.left + r.bytes + r.right, words = ceil_div(width, m_.bank_bytes);
    if (r.bytes > kMostLoadBytes) return load_in_parts(r);
    if (r.left > kMostSidePadding || r.right > kMostSidePadding)
      return invalid_config("npu: a row of ", r.left, " + ", r.bytes, " + ", r.right,
                            " bytes is longer than a load takes");
    // Rows that lie side by side in both memories are one: its bursts are full.
    const bool padded = r.left + r.right > 0 || r.bytes % m_.bank_bytes != 0;
    if (!padded && r.rows > 1 && r.dram_stride == r.bytes && r.stride * m_.bank_bytes == r.bytes) {
      const int64_t each = std::max<int64_t>(1, kMostLoadBytes / r.bytes);
      if (r.top > 0) RETURN_IF_ERROR(load_fill(r.word, r.stride, r.top, width));
      for (int64_t row = 0; row < r.rows; row += each)
        RETURN_IF_ERROR(emit({.op = Op::kLoad,
                              .dram = static_cast<uint32_t>(r.dram + row * r.bytes),
                              .target = static_cast<uint32_t>(r.word + (r.top + row) * r.stride),
                              .rows = 1,
                              .bytes = static_cast<uint32_t>(std::min(each, r.rows - row) * r.bytes)}));
      if (r.bottom > 0)
        RETURN_IF_ERROR(load_fill(r.word + (r.top + r.rows) * r.stride, r.stride, r.bottom, width));
      return Status::ok();
    }
    if (r.rows > 1 && r.stride < words)
      return invalid_config("npu: rows of a load overlap in the scratchpad");
    const bool long_top = r.top > kMostEndPadding, long_bottom = r.bottom > kMostEndPadding;
    const int64_t first = r.word + r.top * r.stride;
    if (long_top) RETURN_IF_ERROR(load_fill(r.word, r.stride, r.top, width));
    if (r.rows + r.top + r.bottom > 1)
      RETURN_IF_ERROR(set_strides(Op::kSetLoad, r.rows > 1 ? r.dram_stride : 0, r.stride));
    for (int64_t row = 0; row < r.rows; row += kMostLoadRows) {
      const bool is_first = row == 0, is_last = row + kMostLoadRows >= r.rows;
      const int64_t top = is_first && !long_top ? r.top : 0;
      RETURN_IF_ERROR(emit({.op = Op::kLoad,
                            .dram = static_cast<uint32_t>(r.dram + row * r.dram_stride),
                            .target = static_cast<uint32_t>(first + (row - top) * r.stride),
                            .rows = static_cast<uint32_t>(std::min(kMostLoadRows, r.rows - row)),
                            .bytes = static_cast<uint32_t>(r.bytes),
                            .left = static_cast<uint32_t>(r.left),
                            .right = static_cast<uint32_t>(r.right),
                            .top = static_cast<uint32_t>(top),
                            .bottom = static_cast<uint32_t>(is_last && !long_bottom ? r.bottom : 0)}));
    }
    if (!long_bottom) return Status::ok();
    return load_fill(first + r.rows * r.stride, r.stride, r.bottom, width);
  }

  // Rows that are longer than a load takes.
  Status load_in_parts(const Rectangle& r) {
    Rectangle first = r, rest = r;
    first.right = rest.left = 0;
    first.bytes = kMostLoadBytes / m_.bank_bytes * m_.bank_bytes - r.left % m_.bank_bytes;
    rest.bytes -= first.bytes;
    rest.dram += first.bytes;
    rest.word += (r.left + first.bytes) / m_.bank_bytes;
    RETURN_IF_ERROR(load_rectangle(first));
    return load_rectangle(rest);
  }

  // Rows of padding and nothing else: they come from the zeros in DRAM.
  Status load_fill(int64_t word, int64_t stride, int64_t rows, int64_t bytes) {
    if (bytes > kMostLoadBytes)
      return invalid_config("npu: a row of ", bytes, " bytes is longer than a load takes");
    RETURN_IF_ERROR(set_strides(Op::kSetLoad, 0, stride));
    for (int64_t row = 0; row < rows; row += kMostLoadRows)
      RETURN_IF_ERROR(emit({.op = Op::kLoad,
                            .dram = static_cast<uint32_t>(zeros_at_),
                            .target = static_cast<uint32_t>(word + row * stride),
                            .rows = static_cast<uint32_t>(std::min(kMostLoadRows, rows - row)),
                            .bytes = static_cast<uint32_t>(bytes)}));
    return Status::ok();
  }

  // --- stores ---

  // Bias and scale of all channels, as `store_scales` wants them: of each block of columns first all biases,
  // then all scales.
  struct Table {
    const BufferNode *bias, *scale;
    uint32_t begin;
    int64_t channels;
  };

  int64_t block_words() const { return 8 * m_.array_columns / m_.bank_bytes; }

  Status load_tables() {
    Status status;
    visit(program_.body, [&](const Stmt& s) {
      if (s->kind != StmtKind::kStore || !status.is_ok() || !places_in_dram_.contains(s->buffer.get()))
        return;
      const std::optional<RequantisedSum> out = match_requantised(s->value);
      if (out) status = load_table(*out);
    });
    return status;
  }

  Status load_table(const RequantisedSum& out) {
    const BufferNode* const bias = out.bias.defined() ? out.bias->buffer.get() : nullptr;
    const BufferNode* const scale = out.scale->buffer.get();
    if (find_table(out) != nullptr) return Status::ok();
    if (!places_in_dram_.contains(scale) || (bias != nullptr && !places_in_dram_.contains(bias)) ||
        scale->shape.size() != 1 || (bias != nullptr && bias->shape != scale->shape))
      return invalid_config("npu: bias and scale of ", scale->name,
                            " are no arguments with a number per channel");
    const int64_t half = 4 * m_.array_columns;
    if (half % m_.bank_bytes != 0)
      return invalid_config("npu: ", half, " bytes of scales are no whole number of words of ",
                            m_.bank_bytes);
    const int64_t channels = scale->shape[0], blocks = ceil_div(channels, m_.array_columns);
    const Table table{bias, scale, next_word_, channels};
    RETURN_IF_ERROR(new_buffer(blocks * block_words()));
    tables_.push_back(table);
    notes_.emplace_back(static_cast<uint32_t>(code_.size()),
                        str("the tables of ", scale->name, bias == nullptr ? "" : " and " + bias->name));
    for (const BufferNode* half_of : {bias, scale}) {
      Rectangle r{.word = table.begin + (half_of == scale ? half / m_.bank_bytes : 0),
                  .stride = block_words()};
      if (half_of == nullptr) {
        RETURN_IF_ERROR(load_fill(r.word, r.stride, blocks, half));
        continue;
      }
      r.dram = static_cast<int64_t>(places_in_dram_.at(half_of));
      r.dram_stride = r.bytes = half;
      r.rows = channels / m_.array_columns;
      if (r.rows > 0) RETURN_IF_ERROR(load_rectangle(r));
      const int64_t rest = channels % m_.array_columns;
      if (rest == 0) continue;
      r.dram += r.rows * half;
      r.word += r.rows * r.stride;
      r.rows = 1;
      r.bytes = 4 * rest;
      r.right = half - r.bytes;
      RETURN_IF_ERROR(load_rectangle(r));
    }
    return Status::ok();
  }
  const Table* find_table(const RequantisedSum& out) const {
    const BufferNode* const bias = out.bias.defined() ? out.bias->buffer.get() : nullptr;
    for (const Table& t : tables_)
      if (t.bias == bias && t.scale == out.scale->buffer.get()) return &t;
    return nullptr;
  }

  Status store(const StmtNode& leaf) {
    const std::optional<RequantisedSum> out = match_requantised(leaf.value);
    if (!out)
      return invalid_config("npu: has no instruction for \"", leaf.buffer->name, " = ", to_text(leaf.value),
                            "\": sums leave the accumulators requantised to 8 bits");
    ASSIGN_OR_RETURN(Linear to, byte_of(leaf.buffer, leaf.indices));
    if (out->bias.defined() && !equal(out->bias->operands[0], out->scale->operands[0]))
      return invalid_config("npu: bias and scale of ", leaf.buffer->name, " are those of different channels");
    std::optional<Linear> channel = scope_.linear(out->sum->operands.back()),
                          scale_of = scope_.linear(out->scale->operands[0]);
    if (!channel || !scale_of)
      return invalid_config("npu: the channels of ", leaf.buffer->name, " are out of order");
    ASSIGN_OR_RETURN(SumRows sums, row_of_sums(out->sum));
    std::vector<InstructionLoop> loops = scope_.loops(), same = loops;
    merge_loops(loops, same, {&to, &*channel, &*scale_of, &sums.row});
    const size_t none = loops.size();
    const auto extent = [&](size_t i) { return i == none ? 1 : loops[i].end - loops[i].begin; };
    // The column is the last index of the sums; the row is the innermost other loop.
    size_t column = none, row = none;
    for (size_t i = 0; i < loops.size(); ++i)
      if (channel->by[i] != 0) {
        if (column != none || channel->by[i] != 1 || to.by[i] != 1 || scale_of->by[i] != 1)
          return invalid_config("npu: the channels of ", leaf.buffer->name, " do not lie side by side");
        column = i;
      }
    for (size_t i = 0; i < loops.size(); ++i)
      if (i != column && sums.row.by[i] == 1) row = i;
    std::vector<int64_t> at;
    for (const InstructionLoop& loop : loops) at.push_back(loop.begin);
    for (;;) {
      int64_t dram = to.base, sum_row = sums.row.base, first = channel->base, first_scale = scale_of->base;
      for (size_t i = 0; i < loops.size(); ++i) {
        dram += to.by[i] * at[i];
        sum_row += sums.row.by[i] * at[i];
        first += channel->by[i] * at[i];
        first_scale += scale_of->by[i] * at[i];
      }
      if (first % m_.array_columns != 0 || first_scale % m_.array_columns != 0)
        return invalid_config("npu: a store of ", leaf.buffer->name, " begins within a block of columns");
      RETURN_IF_ERROR(store_rectangle(*out, *sums.sums, dram, row == none ? 0 : to.by[row], sum_row,
                                      extent(row), first / m_.array_columns, first_scale / m_.array_columns,
                                      extent(column)));
      size_t i = loops.size();
      for (; i > 0; --i) {
        if (i - 1 == column || i - 1 == row) continue;
        if (++at[i - 1] < loops[i - 1].end) break;
        at[i - 1] = loops[i - 1].begin;
      }
      if (i == 0) return Status::ok();
    }
  }

  // As sums_of(), of a column that moves.
  Result<SumRows> row_of_sums(const Expr& operand) {
    std::vector<Expr> indices = operand->operands;
    indices.back() = Expr(0);
    return sums_of(tuner::load(operand->buffer, std::move(indices)));
  }

  Status store_rectangle(const RequantisedSum& out, FragmentSums& sums, int64_t dram, int64_t dram_stride,
                         int64_t row, int64_t rows, int64_t block, int64_t scale_block, int64_t bytes) {
    const int64_t blocks = ceil_div(bytes, m_.array_columns);
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t r = 0; r < rows; ++r)
        if (sums.state(row + r, block + b) != FragmentSums::State::kSummed)
          return invalid_config("npu: sums are stored that no product has made");
    for (int64_t b = 0; b < blocks; b += npu::kMostScaleBlocks) {
      const int64_t some = std::min<int64_t>(npu::kMostScaleBlocks, blocks - b);
      RETURN_IF_ERROR(take_scales(out, scale_block + b, some));
      RETURN_IF_ERROR(set_strides(Op::kSetStore, rows > 1 ? dram_stride : 0, 0));
      const int64_t first = b * m_.array_columns;
      for (int64_t r = 0; r < rows; r += kMostStoreRows)
        RETURN_IF_ERROR(
            emit({.op = Op::kStoreSums,
                  .dram = static_cast<uint32_t>(dram + first + r * dram_stride),
                  .sums = static_cast<uint32_t>(sums.row(row + r, block + b)),
                  .rows = static_cast<uint32_t>(std::min(kMostStoreRows, rows - r)),
                  .bytes = static_cast<uint32_t>(std::min(some * m_.array_columns, bytes - first)),
                  .outer_stride = static_cast<uint32_t>(sums.rows())}));
    }
    return Status::ok();
  }

  Status take_scales(const RequantisedSum& out, int64_t block, int64_t blocks) {
    const Table* const table = find_table(out);
    const auto word = static_cast<int64_t>(table->begin) + block * block_words();
    const Scales wanted{word, blocks, out.zero_point->buffer.get(), out.least, out.most};
    if (scales_ == wanted) return Status::ok();
    scales_ = wanted;
    const bool is_u8 = out.zero_point->dtype == DType::kUInt8;
    const int32_t low = is_u8 ? 0 : -128;
    const auto operand = operand_number(out.zero_point->buffer);
    if (!operand || out.zero_point->buffer->elements() != 1)
      return invalid_config("npu: ", out.zero_point->buffer->name, " is no argument of one number");
    const auto number = static_cast<uint32_t>(code_.size());
    RETURN_IF_ERROR(emit({.op = Op::kStoreScales,
                          .is_unsigned = is_u8,
                          .source = static_cast<uint32_t>(word),
                          .blocks = static_cast<uint32_t>(blocks),
                          .low = low,
                          .high = low + 255}));
    using Field = npu::KernelPatch::Field;
    kernel_.patches.push_back({number, *operand, Field::kZero, 0});
    // Farther than 255 is as good as nothing.
    const auto whole = [](double bound) { return static_cast<int32_t>(std::clamp(bound, -256.0, 256.0)); };
    if (out.least) kernel_.patches.push_back({number, *operand, Field::kLow, whole(*out.least)});
    if (out.most) kernel_.patches.push_back({number, *operand, Field::kHigh, whole(*out.most)});
    return Status::ok();
  }
  std::optional<uint32_t> operand_number(const Buffer& buffer) const {
    const auto found = std::find(program_.args.begin(), program_.args.end(), buffer);
    if (found == program_.args.end()) return std::nullopt;
    return static_cast<uint32_t>(found - program_.args.begin());
  }

  // --- the end ---

  Result<NpuProgram> finish() {
    ASSIGN_OR_RETURN(npu::Allocation placed, npu::allocate_scratchpad(m_, code_, buffers_));
    Result<npu::Code> ordered = npu::place_tokens(m_, std::move(placed.code), kernel_.dram_bytes);
    if (!ordered.is_ok()) return Status(invalid_config("npu: ", ordered.message()));
    kernel_.code = *std::move(ordered);
    kernel_.machine = m_.name();
    return NpuProgram{.kernel = std::move(kernel_), .notes = std::move(notes_)};
  }

  struct Weights {
    int64_t word = -1, stride = 0;
    size_t loaded = 0;
    bool operator==(const Weights&) const = default;
  };

  // What the latest store_scales has taken.
  struct Scales {
    int64_t word = 0, blocks = 0;
    const BufferNode* zero_point = nullptr;
    std::optional<double> least, most;
    bool operator==(const Scales&) const = default;
  };

  const Program& program_;
  const npu::Machine m_;
  LinearScope scope_;
  std::vector<std::pair<const VarNode*, int64_t>> around_;  // loops that run here
  std::unordered_map<const StmtNode*, Nest> nests_;

  std::map<const BufferNode*, uint64_t> places_in_dram_;
  std::map<const BufferNode*, SharedPlace> shared_;
  std::map<const BufferNode*, FragmentSums> fragments_;
  std::vector<const BufferNode*> fragment_order_;  // that of the Program, which is the same in every process
  std::vector<npu::ScratchpadBuffer> buffers_;
  std::map<size_t, size_t> loads_;  // by buffer: one number behind the latest load into it
  std::vector<Table> tables_;
  uint32_t next_word_ = 0;
  uint64_t zeros_at_ = 0;

  npu::Code code_;
  npu::KernelFile kernel_;
  std::vector<std::pair<uint32_t, std::string>> notes_;
  std::optional<std::pair<int64_t, int64_t>> load_strides_, store_strides_;
  std::optional<Scales> scales_;
  std::optional<Weights> weights_;
  std::optional<size_t> latest_matmul_;
  bool must_swap_ = false;
};

}  // namespace

Result<NpuProgram> lower_to_npu(const Program& program, const npu::Machine& machine) {
  return NpuLowering(program, machine).run();
}

}  // namespace tuner

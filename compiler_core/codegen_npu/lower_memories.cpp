// Where arguments, shared buffers and fragments lie.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "compiler_core/base/int_math.h"
#include "compiler_core/codegen_npu/npu_lowering.h"
#include "compiler_core/ir/visitor.h"

namespace tuner {
namespace {

constexpr int64_t kMostVirtualWords = 1 << 20;  // what allocate_scratchpad() takes
// Zeros in DRAM, which loads bring where a tile reaches beyond its tensor: DRAM that nobody fills is 0.
constexpr int64_t kZeroBytes = 1 << 14;
// Places of a fragment: more than a few are never in use.
constexpr int64_t kMostCopies = 4;

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

}  // namespace

Status NpuLowering::place_arguments() {
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

Status NpuLowering::place_buffers() {
  std::set<const BufferNode*> staged, made;
  visit(program_.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kStore || s->buffer->scope != MemoryScope::kShared) return;
    visit(s->value, [&](const Expr& e) {
      if (e->kind == ExprKind::kLoad && e->buffer->scope == MemoryScope::kShared)
        made.insert(s->buffer.get());
    });
  });
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
      status = place_shared(*s->buffer, staged.contains(s->buffer.get()), made.contains(s->buffer.get()));
    else if (s->buffer->scope == MemoryScope::kFragment)
      status = add_fragment(*s->buffer);
    else if (s->buffer->scope == MemoryScope::kRegister)
      status = Status::ok();  // part of the instruction that reads it (lower_rows.cpp)
    else
      status = invalid_config("npu: ", s->buffer->name, " is in ", memory_scope_name(s->buffer->scope),
                              " memory; the device has shared memory (the scratchpad) and fragments "
                              "(accumulators)");
  });
  RETURN_IF_ERROR(status);
  return place_fragments();
}

Status NpuLowering::place_shared(const BufferNode& b, bool staged, bool made) {
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
  // Each stage is a buffer of its own.
  const int64_t parts = staged ? b.shape[0] : 1;
  if (rows == parts) place.pitch = round_up(place.pitch, m_.bank_bytes);  // a row alone
  if (place.pitch % m_.bank_bytes != 0)
    return invalid_config("npu: ", b.name, ": a row of ", place.pitch,
                          " bytes is no whole number of words of ", m_.bank_bytes);
  const int64_t words = rows / parts * (place.pitch / m_.bank_bytes);
  if (made && !staged) place.places = places_;
  place.words = words;
  for (int64_t part = 0; part < parts * place.places; ++part) {
    if (place.places > 1) turning_[buffers_.size()] = &b;
    RETURN_IF_ERROR(new_buffer(words));
  }
  shared_[&b] = place;
  return Status::ok();
}

void NpuLowering::begin_turn(const BufferNode* buffer) {
  const auto found = shared_.find(buffer);
  if (found == shared_.end() || !std::exchange(found->second.is_read, false)) return;
  ++found->second.turn;
}

Status NpuLowering::follow_turns(const npu::Instruction& i) {
  const auto& set = npu::queue_of(i.op) == npu::Queue::kLoad ? load_strides_ : store_strides_;
  const auto [dram, local] = set.value_or(std::pair<int64_t, int64_t>());
  npu::make_plan(m_, i, {static_cast<uint32_t>(dram), static_cast<uint32_t>(local)}, plan_);
  for (const uint32_t entry : plan_.words) {
    const uint32_t word = npu::Plan::word(entry);
    const auto turning = turning_.find(buffer_at(word));
    if (turning == turning_.end()) continue;
    SharedPlace& place = shared_.at(turning->second);
    if (npu::Plan::writes(entry)) {
      turn_of_word_[word] = place.turn;
      continue;
    }
    const auto made = turn_of_word_.find(word);
    if (made == turn_of_word_.end() || made->second != place.turn)
      return invalid_config("npu: ", turning->second->name, " is read behind the turn that made it");
    place.is_read = true;
  }
  return Status::ok();
}

Status NpuLowering::new_buffer(int64_t words) {
  if (next_word_ + words > kMostVirtualWords || words > m_.words())
    return invalid_config("npu: a buffer of ", words * m_.bank_bytes,
                          " bytes does not fit the scratchpad of ", m_.scratchpad_bytes);
  buffers_.push_back({next_word_, static_cast<uint32_t>(words)});
  next_word_ += static_cast<uint32_t>(words);
  return Status::ok();
}

Status NpuLowering::add_fragment(const BufferNode& b) {
  if (b.dtype != DType::kInt32 || b.shape.empty() || b.shape.back() % m_.array_columns != 0)
    return invalid_config("npu: ", b.name, ": accumulators are rows of ", m_.array_columns, " int32");
  const int64_t blocks = b.shape.back() / m_.array_columns;
  fragments_.emplace(&b, FragmentSums(b.elements() / b.shape.back(), blocks));
  fragment_order_.push_back(&b);
  return Status::ok();
}

Status NpuLowering::place_fragments() {
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

Result<Linear> NpuLowering::byte_of(const Buffer& buffer, const std::vector<Expr>& indices) const {
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
  if (shared == shared_.end()) {
    at.base += static_cast<int64_t>(argument->second);
    return at;
  }
  const SharedPlace& place = shared->second;
  at.base += (place.begin + place.turn % place.places * place.words) * m_.bank_bytes;
  return at;
}

}  // namespace tuner

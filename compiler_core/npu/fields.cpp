#include "compiler_core/npu/fields.h"

#include <bit>

#include "compiler_core/base/status.h"

namespace tuner::npu {
namespace {

using I = Instruction;

constexpr Field plain(std::string_view name, uint32_t I::*member, int width, uint32_t least = 0,
                      uint32_t most = 0) {
  return {.name = name, .width = width, .least = least, .most = most, .number = member};
}
constexpr Field byte(std::string_view name, int32_t I::*member) {
  return {.name = name, .width = 8, .int8 = member};
}
constexpr Field real(std::string_view name, float I::*member) {
  return {.name = name, .width = 32, .real = member};
}
constexpr Field place(std::string_view name, uint32_t I::*member) { return plain(name, member, 20); }

constexpr Field kDramField = plain("dram", &I::dram, 32);
constexpr Field kSumsField = plain("sums", &I::sums, 16);
constexpr Field kSource = place("source", &I::source), kSource2 = place("source2", &I::source2),
                kTarget = place("target", &I::target);
constexpr Field kZero = byte("zero", &I::zero), kLow = byte("low", &I::low), kHigh = byte("high", &I::high);
constexpr Field kTapsX = plain("taps_x", &I::taps_x, 4, 1), kStepX = plain("step_x", &I::step_x, 8),
                kTapsY = plain("taps_y", &I::taps_y, 4, 1), kStepY = plain("step_y", &I::step_y, 12);
constexpr Field kBlocks = plain("blocks", &I::blocks, 4, 1, kMostScaleBlocks);

constexpr Field kStrides[] = {plain("dram_stride", &I::dram_stride, 32), plain("stride", &I::stride, 16)};
constexpr Field kLoadFields[] = {kDramField,
                                 kTarget,
                                 plain("rows", &I::rows, 10, 1),
                                 plain("bytes", &I::bytes, 14, 1),
                                 plain("left", &I::left, 10),
                                 plain("right", &I::right, 10),
                                 plain("top", &I::top, 4),
                                 plain("bottom", &I::bottom, 4),
                                 byte("fill_value", &I::fill_value)};
constexpr Field kMatmulFields[] = {kSource,
                                   kSource2,
                                   kSumsField,
                                   plain("rows", &I::rows, 10),
                                   plain("outer", &I::outer, 8),
                                   plain("stride", &I::stride, 8),
                                   plain("outer_stride", &I::outer_stride, 12),
                                   plain("stride2", &I::stride2, 8)};
constexpr Field kMatmulOsFields[] = {kSource,
                                     kSource2,
                                     kSumsField,
                                     plain("rows", &I::rows, 12, 1),
                                     plain("stride", &I::stride, 8),
                                     plain("stride2", &I::stride2, 8)};
constexpr Field kVectorFields[] = {real("scale_a", &I::scale_a),
                                   real("scale_b", &I::scale_b),
                                   byte("zero_a", &I::zero_a),
                                   byte("zero_b", &I::zero_b),
                                   kZero,
                                   kLow,
                                   kHigh};
constexpr Field kScalesFields[] = {kSource, kBlocks, kZero, kLow, kHigh};
constexpr Field kDrainFields[] = {kSumsField,
                                  kTarget,
                                  plain("rows", &I::rows, 12, 1),
                                  kBlocks,
                                  plain("outer_stride", &I::outer_stride, 16),
                                  plain("stride", &I::stride, 12)};
constexpr Field kAddFields[] = {kSource, kSource2, kTarget, plain("rows", &I::rows, 16, 1)};
constexpr Field kPoolFields[] = {kSource,
                                 kTarget,
                                 plain("rows", &I::rows, 10, 1),
                                 plain("stride", &I::stride, 10),
                                 plain("stride2", &I::stride2, 8),
                                 kTapsX,
                                 kStepX,
                                 kTapsY,
                                 kStepY};
constexpr Field kMaccFields[] = {
    kSource, kSource2, kSumsField, plain("rows", &I::rows, 10, 1), plain("stride", &I::stride, 10), kTapsX,
    kStepX,  kTapsY,   kStepY};
constexpr Field kRowsFields[] = {kSource,
                                 kSource2,
                                 kTarget,
                                 plain("rows", &I::rows, 10, 1),
                                 plain("bytes", &I::bytes, 12, 1),
                                 plain("stride", &I::stride, 8)};
constexpr Field kStoreFields[] = {kSource, kDramField, plain("rows", &I::rows, 12, 1),
                                  plain("bytes", &I::bytes, 14, 1)};
constexpr Field kStoreSumsFields[] = {kSumsField, kDramField, plain("rows", &I::rows, 12, 1),
                                      plain("bytes", &I::bytes, 14, 1),
                                      plain("outer_stride", &I::outer_stride, 16)};

// By Op, without kNone.
constexpr OpRow kRows[] = {
    {"set_load", kStrides},
    {"load", kLoadFields},
    {.name = "matmul",
     .fields = kMatmulFields,
     .accumulates = true,
     .swaps = true,
     .fills = true,
     .may_be_unsigned = true},
    {.name = "matmul_os", .fields = kMatmulOsFields, .accumulates = true, .may_be_unsigned = true},
    {.name = "set_vector", .fields = kVectorFields, .may_be_unsigned = true},
    {.name = "scales", .fields = kScalesFields, .may_be_unsigned = true},
    {"drain", kDrainFields},
    {"add", kAddFields},
    {.name = "pool", .fields = kPoolFields, .may_be_unsigned = true},
    {.name = "macc", .fields = kMaccFields, .accumulates = true, .may_be_unsigned = true},
    {"table", kAddFields},
    {"softmax", kRowsFields},
    {"norm", kRowsFields},
    {"set_store", kStrides},
    {.name = "store_scales", .fields = kScalesFields, .may_be_unsigned = true},
    {"store", kStoreFields},
    {"store_sums", kStoreSumsFields},
};
static_assert(std::size(kRows) == kOps - 1);

constexpr bool all_fit() {
  for (const OpRow& row : kRows) {
    int bits = 16;
    for (const Field& field : row.fields) bits += field.width;
    if (bits > 128) return false;
  }
  return true;
}
static_assert(all_fit(), "an instruction has 128 bits");

int32_t signed_byte(uint64_t raw) { return static_cast<int8_t>(raw); }

}  // namespace

uint64_t Field::raw(const Instruction& i) const {
  if (real != nullptr) return std::bit_cast<uint32_t>(i.*real);
  if (int8 != nullptr) return static_cast<uint8_t>(i.*int8);
  return i.*number;
}

void Field::set_raw(Instruction& i, uint64_t raw) const {
  if (real != nullptr)
    i.*real = std::bit_cast<float>(static_cast<uint32_t>(raw));
  else if (int8 != nullptr)
    i.*int8 = i.is_unsigned ? static_cast<int32_t>(raw) : signed_byte(raw);
  else
    i.*number = static_cast<uint32_t>(raw);
}

const OpRow& row_of(Op op) {
  CHECK(op != Op::kNone && static_cast<int>(op) < kOps) << "an operation without a row";
  return kRows[static_cast<int>(op) - 1];
}

std::string_view name_of(Queue queue) {
  constexpr std::string_view kNames[] = {"load", "compute", "store"};
  return kNames[static_cast<int>(queue)];
}

}  // namespace tuner::npu

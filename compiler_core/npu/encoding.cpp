#include "compiler_core/npu/encoding.h"

#include <cmath>

#include "compiler_core/npu/fields.h"

namespace tuner::npu {
namespace {

// Bits of the header, which all instructions share. The fields follow from bit 16 on.
constexpr int kOpBits = 6, kWaitsAt = 6, kGivesAt = 9, kFlagsAt = 12, kHeaderBits = 16;
constexpr uint64_t kAccumulateFlag = 1, kSwapFlag = 2, kFillFlag = 4, kUnsignedFlag = 8;

void put(Word128& word, int at, int width, uint64_t value) {
  word[at / 64] |= value << (at % 64);
  if (at / 64 == 0 && at % 64 + width > 64) word[1] |= value >> (64 - at);
}

uint64_t take(const Word128& word, int at, int width) {
  uint64_t value = word[at / 64] >> (at % 64);
  if (at / 64 == 0 && at % 64 + width > 64) value |= word[1] << (64 - at);
  return value & ((uint64_t{1} << width) - 1);
}

Status check_fields(const Instruction& i, const OpRow& row) {
  for (const Field& field : row.fields) {
    if (field.real != nullptr) {
      if (!std::isfinite(i.*field.real))
        return invalid_argument(row.name, ": ", field.name, ": expected a finite number");
    } else if (field.int8 != nullptr) {
      const int32_t least = i.is_unsigned ? 0 : -128, most = least + 255;
      if (i.*field.int8 < least || i.*field.int8 > most)
        return invalid_argument(row.name, ": ", field.name, ": expected a number from ", least, " to ", most,
                                ", found ", i.*field.int8);
    } else {
      const uint64_t most = field.most > 0 ? field.most : field.highest();
      if (i.*field.number < field.least || i.*field.number > most)
        return invalid_argument(row.name, ": ", field.name, ": expected a number from ", field.least, " to ",
                                most, ", found ", i.*field.number);
    }
  }
  return Status::ok();
}

// What no field tells alone.
Status check_together(const Instruction& i, const OpRow& row) {
  if (i.low > i.high)
    return invalid_argument(row.name, ": expected low <= high, found ", i.low, " and ", i.high);
  if (i.op != Op::kMatmul) return Status::ok();
  if ((i.rows == 0) != (i.outer == 0))
    return invalid_argument("matmul: expected rows and outer both 0, or neither, found ", i.rows, " and ",
                            i.outer);
  if (i.rows == 0 && (!i.fill || i.accumulate))
    return invalid_argument("matmul: one without rows only fills weights: expected fill, and no accumulate");
  return Status::ok();
}

// The instruction with nothing but what its row lists.
Instruction listed_part(const Instruction& i, const OpRow& row) {
  Instruction part{.op = i.op, .waits = i.waits, .gives = i.gives};
  part.accumulate = row.accumulates && i.accumulate;
  part.swap = row.swaps && i.swap;
  part.fill = row.fills && i.fill;
  part.is_unsigned = row.may_be_unsigned && i.is_unsigned;
  for (const Field& field : row.fields) field.set_raw(part, field.raw(i));
  return part;
}

Status check_tokens(const Instruction& i, const OpRow& row) {
  const uint8_t own = bit(queue_of(i.op));
  if (i.waits >= 1 << kQueues || i.gives >= 1 << kQueues)
    return invalid_argument(row.name, ": waits and gives name queues beyond the third");
  if (((i.waits | i.gives) & own) != 0)
    return invalid_argument(row.name, ": waits or gives names its own queue, ", name_of(queue_of(i.op)),
                            ", which is in order without tokens");
  return Status::ok();
}

}  // namespace

Status check(const Instruction& i) {
  if (i.op == Op::kNone || static_cast<int>(i.op) >= kOps)
    return invalid_argument("opcode ", static_cast<int>(i.op), " is none; they go from 1 to ", kOps - 1);
  const OpRow& row = row_of(i.op);
  RETURN_IF_ERROR(check_tokens(i, row));
  RETURN_IF_ERROR(check_fields(i, row));
  if (!(listed_part(i, row) == i))
    return invalid_argument(row.name, ": a field or flag is set that it does not have");
  return check_together(i, row);
}

Word128 encode(const Instruction& i) {
  const Status status = check(i);
  CHECK(status.is_ok()) << status.message();
  Word128 word{};
  put(word, 0, kOpBits, static_cast<uint64_t>(i.op));
  put(word, kWaitsAt, kQueues, i.waits);
  put(word, kGivesAt, kQueues, i.gives);
  put(word, kFlagsAt, 4,
      (i.accumulate ? kAccumulateFlag : 0) | (i.swap ? kSwapFlag : 0) | (i.fill ? kFillFlag : 0) |
          (i.is_unsigned ? kUnsignedFlag : 0));
  int at = kHeaderBits;
  for (const Field& field : row_of(i.op).fields) {
    put(word, at, field.width, field.raw(i));
    at += field.width;
  }
  return word;
}

Result<Instruction> decode(const Word128& word) {
  const uint64_t op = take(word, 0, kOpBits);
  if (op == 0 || op >= kOps)
    return invalid_argument("bits 0-5: opcode ", op, " is none; they go from 1 to ", kOps - 1);
  Instruction i{.op = static_cast<Op>(op),
                .waits = static_cast<uint8_t>(take(word, kWaitsAt, kQueues)),
                .gives = static_cast<uint8_t>(take(word, kGivesAt, kQueues))};
  const OpRow& row = row_of(i.op);
  const uint64_t flags = take(word, kFlagsAt, 4);
  const uint64_t known = (row.accumulates ? kAccumulateFlag : 0) | (row.swaps ? kSwapFlag : 0) |
                         (row.fills ? kFillFlag : 0) | (row.may_be_unsigned ? kUnsignedFlag : 0);
  if ((flags & ~known) != 0)
    return invalid_argument(row.name, ": bits 12-15: flags ", flags, ", of which it takes ", known);
  i.accumulate = (flags & kAccumulateFlag) != 0;
  i.swap = (flags & kSwapFlag) != 0;
  i.fill = (flags & kFillFlag) != 0;
  i.is_unsigned = (flags & kUnsignedFlag) != 0;
  int at = kHeaderBits;
  for (const Field& field : row.fields) {
    field.set_raw(i, take(word, at, field.width));
    at += field.width;
  }
  const uint64_t rest_low = at < 64 ? word[0] >> at : 0;
  const uint64_t rest_high = at < 128 ? (at > 64 ? word[1] >> (at - 64) : word[1]) : 0;
  if (rest_low != 0 || rest_high != 0)
    return invalid_argument(row.name, ": bits ", at, "-127: expected zeros");
  RETURN_IF_ERROR(check_tokens(i, row));
  RETURN_IF_ERROR(check_fields(i, row));
  RETURN_IF_ERROR(check_together(i, row));
  return i;
}

}  // namespace tuner::npu

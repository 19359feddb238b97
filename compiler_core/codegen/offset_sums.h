// Sums of an operand that every row of a tile adds: added once, behind the loop. Private to codegen.
#pragma once

namespace llvm {
class Function;
}

namespace tuner::codegen {

// AArch64 with dot products, but none of mixed signs, takes 128 off the unsigned side (emit_dot.cpp). What
// that takes off the sums depends on the signed side alone, so all rows share it:
//
//   before   loop: sum = sdot(sum, u - 128, s) + (sdot(0, 1, s) << 7)        in each row
//   after    loop: sum = sdot(sum, u - 128, s)                               in each row
//                  offset = sdot(offset, 1, s)                               once
//            sum += offset << 7
//
// Sums of integers wrap, so that their order does not matter. Loops with branches inside keep what they have.
void add_offsets_behind_loops(llvm::Function& function);

}  // namespace tuner::codegen

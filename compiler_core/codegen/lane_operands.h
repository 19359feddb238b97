// Broadcasts as lanes of a vector, for machines that multiply by a lane: AArch64's "fmla v0.4s, v1.4s,
// v2.s[3]". Private to codegen.
#pragma once

namespace llvm {
class Function;
}

namespace tuner::codegen {

// Numbers of 32 bits that lie near one another and are broadcast one by one are loaded together; each
// broadcast then is a lane, which the multiply-add takes as it is.
//
//   before   x = load a[0]   b = splat x            after   v = load a[0..4]
//            y = load a[1]   c = splat y                    b = splat v[0]
//            ...                                            c = splat v[1]
//
// What lies between the first and the last number of a run may be loaded, too; nothing outside. Loads stay
// single where the vectors would need more registers than `registers` leaves beside the sums.
void broadcast_from_lanes(llvm::Function& function, int registers);

}  // namespace tuner::codegen

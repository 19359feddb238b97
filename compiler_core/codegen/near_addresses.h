// Pointers near what is accessed, for machines whose instructions hold small displacements. Private to
// codegen.
#pragma once

namespace llvm {
class Function;
}

namespace tuner::codegen {

// AArch64's loads and stores hold 0 to 4095 times their own size, or -256 to 255 bytes. Where a block
// accesses memory farther from a pointer, each access takes an instruction for its address (a window that
// begins in the padding lies before the pixel, rows of an image lie apart). They get pointers of their own,
// which move along with the loop as the pointer does.
void bring_pointers_near(llvm::Function& function);

}  // namespace tuner::codegen

// Changes from one stack to another. The C library's swapcontext() asks the kernel for signal masks each
// time, which takes longer than most threads run between two barriers.
#include "state.h"

#if defined(__x86_64__)

// Registers that a function keeps for its caller stay on the stack that is left.
asm(R"(
        .text
        .p2align 4
        .globl  host_cuda_change
        .type   host_cuda_change, @function
host_cuda_change:
        pushq   %rbp
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        movq    %rsp, (%rdi)
        movq    (%rsi), %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret
        .size   host_cuda_change, .-host_cuda_change
)");
extern "C" void host_cuda_change(void** from, void** to);

namespace host_cuda {

void change_stack(Place& from, Place& to) { host_cuda_change(&from.stack, &to.stack); }
void begin_stack(Place& place, char* stack, size_t bytes, void (*main)()) {
  void** const top = (void**)(stack + bytes);  // a multiple of 16
  top[-1] = nullptr;                           // main() has no caller
  top[-2] = (void*)main;
  for (int i = 3; i <= 8; ++i) top[-i] = nullptr;
  place.stack = top - 8;
}

}  // namespace host_cuda

#elif defined(__aarch64__)

asm(R"(
        .text
        .p2align 4
        .globl  host_cuda_change
        .type   host_cuda_change, %function
host_cuda_change:
        stp     x19, x20, [sp, #-160]!
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x9, sp
        str     x9, [x0]
        ldr     x9, [x1]
        mov     sp, x9
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x19, x20, [sp], #160
        ret
        .size   host_cuda_change, .-host_cuda_change
)");
extern "C" void host_cuda_change(void** from, void** to);

namespace host_cuda {

void change_stack(Place& from, Place& to) { host_cuda_change(&from.stack, &to.stack); }
void begin_stack(Place& place, char* stack, size_t bytes, void (*main)()) {
  void** const low = (void**)(stack + bytes) - 20;
  for (int i = 0; i < 20; ++i) low[i] = nullptr;
  low[11] = (void*)main;  // x30
  place.stack = low;
}

}  // namespace host_cuda

#else

namespace host_cuda {

void change_stack(Place& from, Place& to) { swapcontext(&from.context, &to.context); }
void begin_stack(Place& place, char* stack, size_t bytes, void (*main)()) {
  getcontext(&place.context);
  place.context.uc_stack.ss_sp = stack;
  place.context.uc_stack.ss_size = bytes;
  place.context.uc_link = nullptr;
  makecontext(&place.context, main, 0);
}

}  // namespace host_cuda

#endif

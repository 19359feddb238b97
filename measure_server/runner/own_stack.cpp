#include "measure_server/runner/own_stack.h"

#include <cstring>
#include <utility>

namespace tuner {

#if defined(__x86_64__)
// int32_t tuner_call_on_stack(KernelEntry entry, void* const* args, void* top)
extern "C" int32_t tuner_call_on_stack(KernelEntry entry, void* const* args, void* top);
asm(R"(
  .text
  .p2align 4
  .type tuner_call_on_stack, @function
tuner_call_on_stack:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, tuner_callers_stack(%rip)
  movq %rdx, %rsp
  movq %rdi, %rax
  movq %rsi, %rdi
  xorl %esi, %esi
  xorl %edx, %edx
  xorl %ecx, %ecx
  xorl %r8d, %r8d
  xorl %r9d, %r9d
  xorl %r10d, %r10d
  xorl %r11d, %r11d
  xorl %ebp, %ebp
  xorl %ebx, %ebx
  xorl %r12d, %r12d
  xorl %r13d, %r13d
  xorl %r14d, %r14d
  xorl %r15d, %r15d
  callq *%rax
  movq tuner_callers_stack(%rip), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
  .cfi_endproc
  .size tuner_call_on_stack, .-tuner_call_on_stack
  .local tuner_callers_stack
  .comm tuner_callers_stack, 8, 8
)");
#endif

Result<OwnStack> OwnStack::make(Placement& placement) {
  constexpr int64_t kBytes = 8 << 20;
  OwnStack made;
  ASSIGN_OR_RETURN(made.stack_, GuardedBuffer::create(kBytes, GuardedBuffer::Sharing::kPrivate,
                                                      placement.next(GuardedBuffer::mapped_bytes(kBytes))));
  made.left_out_ = placement.stack_bytes();
  return made;
}

Result<void* const*> OwnStack::page_of(const std::vector<void*>& args) {
  const auto bytes = static_cast<int64_t>(args.size() * sizeof(void*));
  ASSIGN_OR_RETURN(GuardedBuffer page, GuardedBuffer::create(bytes, GuardedBuffer::Sharing::kPrivate));
  std::memcpy(page.data(), args.data(), static_cast<size_t>(bytes));
  page.make_read_only();
  pages_.push_back(std::move(page));
  return reinterpret_cast<void* const*>(pages_.back().data());
}

int32_t OwnStack::call(KernelEntry entry, void* const* args) const {
#if defined(__x86_64__)
  return tuner_call_on_stack(entry, args, stack_.data() + stack_.bytes() - left_out_);
#else
  return entry(args, nullptr);
#endif
}

}  // namespace tuner

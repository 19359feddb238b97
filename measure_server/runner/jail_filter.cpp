#include "measure_server/runner/jail_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tuner {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArch = AUDIT_ARCH_AARCH64;
#else
#error "seccomp: name the architecture here"
#endif

constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;

// What pthread_create() of glibc asks for.
constexpr uint32_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                             CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

// The low half of an argument; every checked one is an int. Both architectures are little-endian.
constexpr uint32_t argument_offset(int i) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<uint32_t>(i);
}

}  // namespace

// What is called most comes first. The host's threads are started before the filter is there, so nothing here
// makes one, and none is pinned elsewhere; a candidate with threads of its own makes those that glibc makes:
// of this process, with all its flags.
const std::vector<JailRule>& jail_rules() {
  using enum JailRule::Kind;
  static const std::vector<JailRule> rules = {
      {"clock_gettime", SYS_clock_gettime, kAllowed, "CPU time of a sample"},
      {"futex", SYS_futex, kAllowedIf, "turns; threads that wait for work",
       /*argument=*/1, /*mask=*/~static_cast<uint32_t>(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME),
       /*values=*/{FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET}},
      // Pages of a shared mapping stay when the process gives them back, and are then nobody's; huge pages of
      // the system's pool are in no resident size.
      {"mmap", SYS_mmap, kAllowedIf, "loading; malloc", /*argument=*/3, /*mask=*/MAP_TYPE | MAP_HUGETLB,
       /*values=*/{MAP_PRIVATE}, /*self=*/false, /*trapped_otherwise=*/true},
      {"munmap", SYS_munmap, kAllowed, "loading; free"},
      {"mprotect", SYS_mprotect, kAllowed, "loading; outputs of the first run become read-only"},
      {"mremap", SYS_mremap, kAllowed, "realloc; inputs change places"},
      {"madvise", SYS_madvise, kAllowed, "malloc returns pages"},
      {"brk", SYS_brk, kAllowed, "malloc"},
      {"read", SYS_read, kAllowed, "loading"},
      {"pread64", SYS_pread64, kAllowed, "loading"},
      {"fstat", SYS_fstat, kAllowed, "loading; are the descriptors as they were"},
      {"close", SYS_close, kAllowed, "loading"},
      {"openat", SYS_openat, kTrapped, "loading: of the candidate only"},
      {"newfstatat", SYS_newfstatat, kTrapped, "loading: libc's fstat()"},
      {"getrusage", SYS_getrusage, kAllowed, "page faults of a run"},
      {"write", SYS_write, kAllowedIf, "messages of a kernel, which go nowhere", /*argument=*/0,
       /*mask=*/~0u, /*values=*/{1, 2}},
      {"clock_nanosleep", SYS_clock_nanosleep, kAllowed, "a kernel that waits; tests"},
      {"sched_getaffinity", SYS_sched_getaffinity, kAllowed, "malloc asks for the number of CPUs"},
      {"getpid", SYS_getpid, kAllowed, "abort"},
      {"gettid", SYS_gettid, kAllowed, "abort"},
      {"tgkill", SYS_tgkill, kAllowedIf, "abort", /*argument=*/0, /*mask=*/~0u, /*values=*/{},
       /*self=*/true},
      {"kill", SYS_kill, kAllowedIf, "a kernel that ends itself", /*argument=*/0, /*mask=*/~0u,
       /*values=*/{}, /*self=*/true},
      {"rt_sigaction", SYS_rt_sigaction, kAllowed, "abort"},
      {"rt_sigprocmask", SYS_rt_sigprocmask, kAllowed, "abort"},
      {"rt_sigreturn", SYS_rt_sigreturn, kAllowed, "the end of our handler of traps"},
      {"restart_syscall", SYS_restart_syscall, kAllowed, "a wait goes on after SIGSTOP and SIGCONT"},
      {"exit_group", SYS_exit_group, kAllowed, "the end"},
      // The flags are in memory, where no filter sees them; glibc then takes clone.
      {.name = "clone3",
       .number = SYS_clone3,
       .kind = kUnknown,
       .needed_for = "threads",
       .for_threads = true},
      {.name = "clone",
       .number = SYS_clone,
       .kind = kAllowedIf,
       .needed_for = "threads",
       .values = {kThread},
       .for_threads = true},
      {.name = "set_robust_list",
       .number = SYS_set_robust_list,
       .kind = kAllowed,
       .needed_for = "threads",
       .for_threads = true},
      {.name = "rseq", .number = SYS_rseq, .kind = kAllowed, .needed_for = "threads", .for_threads = true},
      {.name = "sched_yield",
       .number = SYS_sched_yield,
       .kind = kAllowed,
       .needed_for = "threads that spin",
       .for_threads = true},
      {.name = "exit", .number = SYS_exit, .kind = kAllowed, .needed_for = "threads", .for_threads = true},
  };
  return rules;
}

JailFilter::JailFilter(std::string_view without, std::string_view unchecked, bool own_threads) {
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const JailRule& rule : jail_rules())
    if (rule.name != without && (own_threads || !rule.for_threads))
      add_rule(rule, /*checked=*/rule.name != unchecked);
  add(BPF_RET | BPF_K, kRefused);
}

void JailFilter::add(unsigned short op, uint32_t k, uint8_t yes, uint8_t no) {
  code_.push_back({op, yes, no, k});
}

void JailFilter::add_rule(const JailRule& rule, bool checked) {
  if (rule.kind != JailRule::kAllowedIf || !checked) {
    const uint32_t answer = rule.kind == JailRule::kUnknown              ? SECCOMP_RET_ERRNO | ENOSYS
                            : rule.kind == JailRule::kTrapped && checked ? SECCOMP_RET_TRAP
                                                                         : SECCOMP_RET_ALLOW;
    add(BPF_JMP | BPF_JEQ | BPF_K, rule.number, 0, 1);
    add(BPF_RET | BPF_K, answer);
    return;
  }
  const size_t values = rule.self ? 1 : rule.values.size();
  // Skips the check: load, mask, one comparison a value, two answers.
  add(BPF_JMP | BPF_JEQ | BPF_K, rule.number, 0, static_cast<uint8_t>(values + 4));
  add(BPF_LD | BPF_W | BPF_ABS, argument_offset(rule.argument));
  add(BPF_ALU | BPF_AND | BPF_K, rule.mask);
  for (size_t i = 0; i < values; ++i) {
    if (rule.self) self_.push_back(code_.size());
    add(BPF_JMP | BPF_JEQ | BPF_K, rule.self ? 0 : rule.values[i], static_cast<uint8_t>(values - i), 0);
  }
  add(BPF_RET | BPF_K, rule.trapped_otherwise ? SECCOMP_RET_TRAP : kRefused);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

int JailFilter::install() {
  const auto self = static_cast<uint32_t>(getpid());
  for (const size_t i : self_) code_[i].k = self;
  const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  constexpr unsigned kFlags = SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_TSYNC;
  const long failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &program);
  return failed == 0 ? 0 : failed > 0 ? EBUSY : errno;  // positive: a thread that cannot have it
}

namespace {

uint32_t* told_of_shared = nullptr;  // in the candidate's report

// Runs inside the candidate's process, which may have called anything with anything.
void on_trap(int, siginfo_t* info, void* context) {
  const int saved = errno;
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const greg_t* const r = machine.gregs;
  const long arguments[4] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10]};
#else
  const long arguments[4] = {static_cast<long>(machine.regs[0]), static_cast<long>(machine.regs[1]),
                             static_cast<long>(machine.regs[2]), static_cast<long>(machine.regs[3])};
#endif
  const auto* const path = reinterpret_cast<const char*>(arguments[1]);
  long answer = -EPERM;
  if (info->si_syscall == SYS_openat && std::strcmp(path, kCandidatePath) == 0) answer = kCandidateFd;
  if (info->si_syscall == SYS_newfstatat && (arguments[3] & AT_EMPTY_PATH) != 0 && path[0] == '\0')
    answer = syscall(SYS_fstat, arguments[0], arguments[2]) == 0 ? 0 : -errno;
  if (info->si_syscall == SYS_mmap) {
    answer = -ENOMEM;
    if (told_of_shared != nullptr) *told_of_shared = 1;
  }
#if defined(__x86_64__)
  machine.gregs[REG_RAX] = answer;
#else
  machine.regs[0] = static_cast<unsigned long long>(answer);
#endif
  errno = saved;
}

}  // namespace

void handle_traps(uint32_t* told) {
  told_of_shared = told;
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  sigaction(SIGSYS, &action, nullptr);
}

}  // namespace tuner

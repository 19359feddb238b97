#include "compiler_core/foreign/confined_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "compiler_core/foreign/descriptor.h"
#include "compiler_core/foreign/guardian.h"
#include "compiler_core/foreign/landlock_rules.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Ids that neither distributions nor systemd give to anybody (60578 to 61183).
constexpr uid_t kNobodys = 60'600;

// The folder and all in it become that user's.
Status give_to(const std::string& folder, uid_t user) {
  std::error_code error;
  if (::lchown(folder.c_str(), user, user) != 0) return failed(folder, ": ", std::strerror(errno));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    if (::lchown(entry.path().c_str(), user, user) != 0)
      return failed(entry.path().string(), ": ", std::strerror(errno));
  return error ? failed(folder, ": ", error.message()) : Status::ok();
}

// Reads what it says until the guardian ends, the time is over, or somebody stops it.
void listen(int output, pid_t guardian, const ConfinedProgram& program, ConfinedEnd& end) {
  const int64_t look_ms = program.stop ? 50 : 1000;
  const auto until = steady_clock::now() + program.deadline;
  const Descriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, guardian, 0U)));
  bool open = true;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
    end.timed_out = left <= 0;
    end.stopped = program.stop && program.stop();
    if (end.timed_out || end.stopped) return;
    pollfd wait[2] = {{ended.fd(), POLLIN, 0}, {open ? output : -1, POLLIN, 0}};
    if (::poll(wait, 2, static_cast<int>(std::min<int64_t>(left, look_ms))) < 0 && errno != EINTR) {
      end.timed_out = true;
      return;
    }
    char piece[4096];
    if (open && wait[1].revents != 0) {
      const ssize_t n = ::read(output, piece, sizeof piece);
      if (n > 0)
        end.output.append(piece, std::min(static_cast<size_t>(n), program.output_bytes - end.output.size()));
      open = n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
      continue;  // all that was said before it ended is read first
    }
    if (wait[0].revents != 0) return;
  }
}

}  // namespace

Status can_confine() {
  if (landlock_version() >= 1) return Status::ok();
  return unavailable(
      "this kernel has no Landlock (", std::strerror(errno),
      "): code of users cannot be confined; Linux 5.13 or newer, booted with lsm=landlock, has it");
}

Result<ConfinedEnd> run_confined(const ConfinedProgram& program, bool confine) {
  std::vector<std::string> texts = program.words;
  for (const char* text : {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}) texts.emplace_back(text);
  texts.push_back("TMPDIR=" + program.folder);
  texts.push_back("HOME=" + program.folder);
  texts.insert(texts.end(), program.environment.begin(), program.environment.end());
  ChildPlan plan{.program = &program};
  if (program.untrusted && ::geteuid() == 0) {
    plan.user = kNobodys + static_cast<uid_t>(::getpid()) % 500;
    RETURN_IF_ERROR(give_to(program.folder, plan.user));
  }
  for (size_t i = 0; i < texts.size(); ++i)
    (i < program.words.size() ? plan.words : plan.environment).push_back(texts[i].data());
  plan.words.push_back(nullptr);
  plan.environment.push_back(nullptr);
  plan.most_cpus = std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  for (const int cpu : program.cpus) CPU_SET(static_cast<size_t>(cpu), &plan.cpus);
  if (confine) {
    RETURN_IF_ERROR(can_confine());
    ASSIGN_OR_RETURN(plan.rules, rules_for(program));
  }
  const Descriptor rules(plan.rules);
  int output[2], told[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return failed("pipe: ", std::strerror(errno));
  Descriptor output_in(output[1]);
  const Descriptor output_out(output[0]);
  if (::pipe2(told, O_CLOEXEC) != 0) return failed("pipe: ", std::strerror(errno));
  Descriptor told_in(told[1]);
  const Descriptor told_out(told[0]);
  const pid_t parent = ::getpid();
  const pid_t guardian = ::_Fork();  // no handlers of libraries: the child runs none of their code
  if (guardian < 0) return failed(program.path, ": cannot be started: ", std::strerror(errno));
  if (guardian == 0) guard(plan, parent, output_in.fd(), told_in.fd());
  output_in.close();
  told_in.close();
  ConfinedEnd end;
  listen(output_out.fd(), guardian, program, end);
  if (end.timed_out || end.stopped) ::kill(guardian, SIGTERM);
  int of_guardian = 0;
  while (::waitpid(guardian, &of_guardian, 0) < 0 && errno == EINTR) {
  }
  bool ended = false;
  int64_t begun_ns = 0;
  for (GuardianWord word; ::read(told_out.fd(), &word, sizeof word) == sizeof word;) {
    if (word.what == GuardianWord::kRefused)
      return failed(program.path, ": cannot be started: ", guardian_step(word.step), ": ",
                    std::strerror(word.value));
    if (word.what == GuardianWord::kBegins) begun_ns = word.at_ns;
    if (word.what != GuardianWord::kEnded) continue;
    ended = true;
    end.status = word.value;
    end.wall_ns = static_cast<double>(word.at_ns - begun_ns);
    end.cpu_ns = static_cast<double>(word.cpu_ns);
  }
  if (ended) return end;
  return failed(program.path, ": the process that guards it was ended; what it started may go on");
}

}  // namespace tuner

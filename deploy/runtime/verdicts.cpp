#include "deploy/runtime/verdicts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <thread>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"

namespace tuner::runtime {
namespace {

constexpr std::string_view kVerdictFile = "tuner-verdict 1";
constexpr size_t kLongestVerdict = 1 << 20;

std::string kernel_line(const Function& f) {
  const Manifest& m = f.choice().kernel.manifest();
  return str(m.digest, " ", m.entry, ", ", m.threads, " threads");
}

// Held until it goes, or the process ends.
class RaceLock {
 public:
  explicit RaceLock(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  ~RaceLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  RaceLock(const RaceLock&) = delete;
  bool is_there() const { return fd_ >= 0; }
  // False: another process has it. Where files cannot be locked, nobody does.
  bool try_lock() const { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

 private:
  const int fd_;
};

}  // namespace

std::string verdict_subject(const Function& kernel, const Function& plain, const std::string& hardware) {
  return str(kernel.workload_key(), "\nkernel ", kernel_line(kernel), "\ndefault ", kernel_line(plain),
             "\non ", hardware, "\n");
}

std::string Verdicts::file(const std::string& subject) const {
  return directory_.empty() ? std::string() : str(directory_, "/", sha256_hex(subject));
}

std::optional<FirstUse> Verdicts::load(const std::string& subject) const {
  const Result<std::string> text = read_whole(file(subject), kLongestVerdict);
  // First line, why, subject.
  if (!text || !text->ends_with("\n" + subject)) return std::nullopt;
  std::istringstream in(text->substr(0, text->size() - subject.size()));
  in.imbue(std::locale::classic());
  std::string word, version, name;
  FirstUse found;
  in >> word >> version >> name >> found.kernel_ns >> found.default_ns;
  const std::optional<Verdict> verdict = verdict_from_name(name);
  if (!in || str(word, " ", version) != kVerdictFile || !verdict) return std::nullopt;
  found.verdict = *verdict;
  in.ignore(1);
  std::getline(in, found.why);
  return found;
}

void Verdicts::save(const std::string& subject, const FirstUse& found) const {
  std::string why = found.why;
  std::ranges::replace(why, '\n', ' ');
  const std::string text = str(kVerdictFile, " ", verdict_name(found.verdict), " ", found.kernel_ns, " ",
                               found.default_ns, "\n", why, "\n", subject);
  static_cast<void>(replace_file(file(subject), text));
}

FirstUse Verdicts::of(const std::string& subject, const std::function<FirstUse()>& race,
                      std::chrono::milliseconds patience) const {
  if (directory_.empty()) return race();
  if (std::optional<FirstUse> kept = load(subject)) return *std::move(kept);
  if (!make_folders(directory_)) return race();
  const RaceLock lock(file(subject) + ".lock");
  if (!lock.is_there()) return race();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!lock.try_lock()) {
    if (std::optional<FirstUse> kept = load(subject)) return *std::move(kept);
    if (std::chrono::steady_clock::now() >= until)
      return {.verdict = Verdict::kUndecided, .why = "another process is racing it", .passing = true};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // Who had the lock before may have kept a verdict.
  if (std::optional<FirstUse> kept = load(subject)) return *std::move(kept);
  FirstUse found = race();
  if (!found.passing) save(subject, found);
  return found;
}

}  // namespace tuner::runtime

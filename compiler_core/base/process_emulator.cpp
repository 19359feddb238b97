#include "compiler_core/base/process_emulator.h"

#include <elf.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tuner {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
#else
#error "process_emulator: name this architecture here"
#endif

std::string text_of(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string target_of_link(const char* path) {
  char target[PATH_MAX];
  const ssize_t bytes = ::readlink(path, target, sizeof target);
  return bytes > 0 ? std::string(target, static_cast<size_t>(bytes)) : std::string();
}

// "a\0b\0" -> {"a", "b"}.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// The thread's own name of the process, which qemu 7.2 passes on to the kernel.
constexpr const char* kRealProgram = "/proc/thread-self/exe";

bool runs_in_foreign_program() {
  std::ifstream in(kRealProgram, std::ios::binary);
  char begin[sizeof(Elf64_Ehdr)] = {};
  in.read(begin, sizeof begin);
  return is_foreign_program({begin, static_cast<size_t>(in.gcount())});
}

}  // namespace

bool is_foreign_program(std::string_view bytes) {
  // The machine has the same place in files of 32 and of 64 bits.
  if (bytes.size() < sizeof(Elf32_Ehdr) || !bytes.starts_with(std::string_view(ELFMAG, SELFMAG)))
    return false;
  Elf32_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header.e_machine != kMachine;
}

bool is_foreign_cpuinfo(std::string_view text) {
  const bool of_x86 = text.find("vendor_id\t") != std::string_view::npos,
             of_arm = text.find("CPU implementer\t") != std::string_view::npos;
  return kMachine == EM_X86_64 ? of_arm && !of_x86 : of_x86 && !of_arm;
}

bool is_emulated_process() {
  static const bool emulated = runs_in_foreign_program() || is_foreign_cpuinfo(text_of("/proc/cpuinfo"));
  return emulated;
}

std::vector<std::string> words_before_program(std::vector<std::string> all,
                                              const std::vector<std::string>& own, std::string_view program) {
  if (all.size() <= own.size()) return {};
  all.resize(all.size() - own.size());
  // A system that knows the emulator (binfmt_misc) may name the program and its first word.
  while (all.size() > 1 && all.back() == program) all.pop_back();
  return all;
}

const std::vector<std::string>& emulator_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> found;
    if (!runs_in_foreign_program()) return found;
    found = words_before_program(words_of(text_of("/proc/thread-self/cmdline")),
                                 words_of(text_of("/proc/self/cmdline")), path_of_this_program());
    // Its options, as it was called; its path, as the system knows it.
    if (found.empty()) found.emplace_back();
    found[0] = target_of_link(kRealProgram);
    return found;
  }();
  return words;
}

std::string path_of_this_program() { return target_of_link("/proc/self/exe"); }

}  // namespace tuner

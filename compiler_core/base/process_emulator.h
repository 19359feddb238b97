// Is this process run by an emulator of its architecture (qemu-user)? Times that are measured then are those
// of no machine: they are recorded for a target of their own ("-emulated").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuner {

// True if a program that begins with these bytes (64 are enough) is for another architecture than this one.
bool is_foreign_program(std::string_view bytes);
// True if /proc/cpuinfo with this text is that of another architecture than this one.
bool is_foreign_cpuinfo(std::string_view text);

// True if an emulator runs this process. qemu answers /proc/self/exe for the program that it runs, but not
// other names of the same file, which show qemu itself; a later one may, so /proc/cpuinfo is asked, too.
bool is_emulated_process();

// The emulator and its options, as the words in front of a program that it is to run. Empty where there is
// none, or where its program is not to be found. A system without binfmt_misc starts programs like this one
// only so.
const std::vector<std::string>& emulator_words();

// The path of this program, also where an emulator runs it. Empty: /proc is not mounted.
std::string path_of_this_program();

// Which of an emulator's words stand in front of its program: of `all`, those that `own` does not end with,
// less the path of the program itself.
std::vector<std::string> words_before_program(std::vector<std::string> all,
                                              const std::vector<std::string>& own, std::string_view program);

}  // namespace tuner

// The binary of an artifact of kind "command": a program of a user's with the files around it, how to run it,
// and how to read what it took.
//
// "tuner-command 1\n", a line of JSON, then the files' bytes. Needs neither LLVM nor gRPC.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

namespace binary_kind {
inline constexpr std::string_view kCommand = "command";
}

// How a program says what it took.
struct PrintedResult {
  // A text in which {number} stands for the number and * for anything; white space is as good as other white
  // space. The last line that has it counts. Empty: the wall clock of the program counts.
  std::string pattern;
  // From the number to nanoseconds: number * scale_ns, or scale_ns / number if it is a rate.
  double scale_ns = 1;
  bool is_rate = false;
  std::string unit = "ns";  // for messages
};

struct CommandBundle {
  struct File {
    std::string name;  // relative, "/" between folders, no ".."
    bool executable = false;
    std::string bytes;
  };
  std::vector<File> files;
  std::vector<std::string> run;          // words; the first is a program of the host's list, or ./FILE
  std::vector<std::string> environment;  // NAME=VALUE
  PrintedResult result;

  std::string to_bytes() const;
};
// InvalidArgument: it is none, or damaged, or a name leads out of its folder.
Result<CommandBundle> parse_command_bundle(std::string_view bytes);

// The place of a pattern's number in a line; empty: the line has it not. `line` outlives the result.
std::string_view number_in_line(std::string_view line, std::string_view pattern);

// What a program that printed `output` took, in nanoseconds; not for results without a pattern.
// InvalidArgument in one line: no line has the pattern, or the number is none, not above 0, or longer than
// eleven days.
Result<double> printed_ns(std::string_view output, const PrintedResult& result);

}  // namespace tuner

// ForeignCode: C or C++ text of a user's, or a whole program of his, where a Program otherwise has loops.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tuner {

// A program that is built and run in place of a function. What it takes is what it prints, or its wall clock
// (PrintedResult in artifact/command_bundle.h).
struct ForeignCommand {
  std::vector<std::string> build, run;   // words of one config; `build` may be empty
  std::vector<std::string> environment;  // NAME=VALUE, of both
  std::string pattern, unit;
  double scale_ns = 1;
  bool is_rate = false;
};

struct ForeignCode {
  struct File {
    std::string name, text;  // name: relative, without ".."
  };
  std::shared_ptr<const std::vector<File>> files;
  bool cxx = false;
  std::string
      compiler;  // a name of the operator's list (compilers.h): "cc"; of a command names of commands.h
  std::vector<std::string> words;  // of its command line: flags, -DNAME=value. Checked by whoever made them
  std::string source;              // the file that has the function
  // The function's arguments as C expressions, in its order; {0} is the pointer to the Program's first
  // argument, and so on: "(const float*){0}", "(int32_t)20".
  std::string function;
  std::vector<std::string> arguments;
  // Its parameters as its user may declare them in C: {"const float*", "in"}.
  struct Parameter {
    std::string type, name;
  };
  std::vector<Parameter> parameters;
  // If not null, there is no function: source, arguments and parameters are empty, the Program has no
  // arguments, and `words` are what the config would define.
  std::shared_ptr<const ForeignCommand> command;
};

}  // namespace tuner

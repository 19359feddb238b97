// ForeignCode: C or C++ text of a user's, where a Program otherwise has loops.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tuner {

struct ForeignCode {
  struct File {
    std::string name, text;  // name: relative, without ".."
  };
  std::shared_ptr<const std::vector<File>> files;
  bool cxx = false;
  std::string compiler;            // a name of the operator's list (compilers.h): "cc"
  std::vector<std::string> words;  // of its command line: flags, -DNAME=value. Checked by whoever made them
  std::string source;              // the file that has the function
  // The function's arguments as C expressions, in its order; {0} is the pointer to the Program's first argument, and so on:
  // "(const float*){0}", "(int32_t)20".
  std::string function;
  std::vector<std::string> arguments;
  // Its parameters as its user may declare them in C: {"const float*", "in"}.
  struct Parameter {
    std::string type, name;
  };
  std::vector<Parameter> parameters;
};

}  // namespace tuner

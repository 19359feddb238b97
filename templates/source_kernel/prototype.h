// Functions that a C or C++ text defines, as far as their prototypes go.
//
// Before preprocessing: what a macro makes of a prototype is not seen, and of several branches of an #if all
// are read. Methods of classes and templates' instances are not functions here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuner {

struct Parameter {
  std::string name;  // empty: it has none
  std::string type;  // its words without const, restrict and volatile: "unsigned long", "std::size_t"
  int pointers = 0;  // how many * and [] follow the type
  bool reference = false;
  bool constant = false;  // what it is, or points to, is const
};

struct Prototype {
  std::string name;     // with its namespaces: "statistics::histogram"
  std::string returns;  // as Parameter::type, with * for pointers
  std::vector<Parameter> parameters;
  bool is_template = false;
  bool on_device = false;  // __global__: a host launches it on a GPU
  int line = 1;
};

// In the order of the text. Any text has an answer.
std::vector<Prototype> functions_in(std::string_view text);

}  // namespace tuner

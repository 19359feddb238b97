// The program's command line, with what CLI11 has no place for: what completion offers for values of options.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "tuner/command_line/offers.h"

namespace tuner {

class ProgramApp : public CLI::App {
 public:
  ProgramApp(std::string description, std::string name) : CLI::App(std::move(description), std::move(name)) {}

  std::map<const CLI::Option*, Offers> offers;  // filled by Option::offers()
};

}  // namespace tuner

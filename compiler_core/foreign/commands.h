// The programs that jobs may run on this host ("language": "command"): a list that its operator keeps.
//
//   TUNER_COMMANDS=make,python3,bench=/opt/bench
//
// A job may run these, and files of its own (`./prog`); all in the jail of confined_program.h. "./" in the
// list stands for the job's own files, which any other entry allows, too. Without the variable a job may run
// nothing, but for what the `tuner` command runs for the person who types it (allow_own_commands()).
//
// Needs and offers are names: "command:make", and "command:./" of a job's own files. What a job needs is a
// list of them with commas; where it needs nothing but its own files, that name alone.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"

namespace tuner {

inline constexpr std::string_view kCommandWord = "command:";

// The list becomes make,cc,c++,sh,python3 for this process and those that it starts, unless the variable is
// set.
void allow_own_commands();

// What is to be executed for the first word of a command: a file of `folder`, or a program of the list.
// NotFound: it is not listed, not there, or where the user that runs programs of jobs cannot get at it.
Result<std::string> command_path(const std::string& word, const std::string& folder);

// What this host offers, by name, with what records name as the toolchain: ("command:make",
// "command:make GNU Make 4.3"). Programs that are not there are left out.
std::vector<std::pair<std::string, std::string>> command_offers();

// What records of a job with these needs name as their toolchain here: the offers' texts, joined by "; ".
// NotFound: one of them is not to be had here.
Result<std::string> commands_toolchain(std::string_view needs);
// What a record with this toolchain would name today; empty: something of it is not here.
std::string commands_now(std::string_view toolchain);

}  // namespace tuner

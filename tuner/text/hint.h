// Commands that messages tell people to run, as they can be pasted: the program as it was called, with the
// --db or --daemon that this command was given, quoted for the shell.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace tuner {

// `argv0`: how the program was called; `app`: its commands, which outlive every message.
void remember_program(const char* argv0, const CLI::App& app);
// The command that runs, for the options it was given.
void remember_command(const CLI::App& command);

// The subcommand of that name, or null.
const CLI::App* subcommand_named(const CLI::App& app, std::string_view name);

// The program as it was called, quoted: "tuner", "build/bin/tuner".
const std::string& program_name();

// "x.json", "'my file.json'".
std::string shell_quoted(std::string_view text);

// "build/bin/tuner submit x.json --db t.db" of "submit x.json". Options are added that this command was given
// and that one takes.
std::string command_line(std::string_view verb_and_arguments);

// A message in which other parts of the program name commands ("To measure it again: tuner revalidate"), with
// each of them as it can be pasted. What command_line() made stays as it is.
std::string with_commands(std::string_view message);

}  // namespace tuner

// Makes the commands in messages ready to paste: the program as it was called, with the --db or --daemon of
// this command, quoted for the shell.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace tuner {

// `argv0`: how the program was called. `app`: its commands, which must outlive every message.
void remember_program(const char* argv0, const CLI::App& app);
// Remembers the running command, for the options it was given.
void remember_command(const CLI::App& command);

// Returns the subcommand of that name, or null.
const CLI::App* subcommand_named(const CLI::App& app, std::string_view name);

// Returns the program as it was called, quoted: "tuner", "build/bin/tuner".
const std::string& program_name();

// Quotes for the shell if needed: "x.json", "'my file.json'".
std::string shell_quoted(std::string_view text);

// Turns "submit x.json" into "build/bin/tuner submit x.json --db t.db". Adds options that this command was
// given and that the named one takes.
std::string command_line(std::string_view verb_and_arguments);

// Returns the running command with all that it was given, to be pasted once more: "tuner compile m.onnx
// --output net --batch 1".
std::string this_command();

// Makes every command in a message ready to paste ("To measure it again: tuner revalidate"). Text that
// command_line() made stays as it is.
std::string with_commands(std::string_view message);

}  // namespace tuner

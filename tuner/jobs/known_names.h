// Names that may stand where a command expects one, for completion: those the program knows, and of jobs,
// trials and targets a few that a database has, the newest first. Found in milliseconds however large it is.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuner {

// Each with a line about it, which may be empty. `kind`: "job", "trial" (the results of the newest jobs),
// "target", "op", "strategy", "algorithm", "layout" or "format"; nothing for any other. `db`: the database;
// empty: the usual one. One that is not there or cannot be read has no names.
std::vector<std::pair<std::string, std::string>> known_names(std::string_view kind, const std::string& db);

}  // namespace tuner

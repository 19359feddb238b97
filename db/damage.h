// Whether a file that cannot be opened was once a database.
#pragma once

#include <string>

namespace tuner {

// True for a file that begins as a database does and cannot be read: it was cut, or its first pages are
// damaged. False for all others: those that can be opened, and those that were never a database.
bool is_damaged_database(const std::string& path);

}  // namespace tuner

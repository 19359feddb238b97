// What the environment says to the CUDA driver for tests, and the files it keeps for the test to read.
#pragma once

#include <string>

namespace fake_cuda {

const char* setting(const char* name);  // null: not set, or empty
int number(const char* name, int otherwise);
void make_file(const char* path);
// Adds a line to the file that a setting names, if it is set.
void note(const char* name, const std::string& line);

}  // namespace fake_cuda

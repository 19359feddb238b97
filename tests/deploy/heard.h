// The runtime library with its messages heard: sources that are opened, described and closed.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tests/deploy/runtime_fixture.h"

namespace tuner::testing {

// Messages of a source, in place of stderr.
struct Heard {
  std::mutex mutex;
  std::vector<std::string> lines;
  static void hear(void* user, const char* line) {
    auto* heard = static_cast<Heard*>(user);
    const std::lock_guard lock(heard->mutex);
    heard->lines.emplace_back(line);
  }
};

class ListeningTest : public RuntimeTest {
 protected:
  ~ListeningTest() override {
    for (tuner_source* s : sources_) tuner_close(s);
  }
  tuner_source* open(const std::string& file, tuner_options options = {}) {
    return open_path(file.c_str(), options);
  }
  // The default database.
  tuner_source* open_default(tuner_options options = {}) { return open_path(nullptr, options); }
  // Why it cannot be opened.
  static std::string refusal(const std::string& file, tuner_code expected, tuner_options options = {}) {
    options.struct_bytes = sizeof options;
    tuner_source* source = nullptr;
    EXPECT_EQ(tuner_open(file.c_str(), &options, &source), expected);
    EXPECT_EQ(source, nullptr);
    return tuner_last_error();
  }
  static tuner_answer describe(const tuner_function* f) {
    tuner_answer answer{.struct_bytes = sizeof answer};
    EXPECT_EQ(tuner_describe(f, &answer), TUNER_OK) << tuner_last_error();
    return answer;
  }
  void write(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  Heard heard_;
  std::vector<tuner_source*> sources_;

 private:
  tuner_source* open_path(const char* file, tuner_options options) {
    options.struct_bytes = sizeof options;
    if (options.message == nullptr) options.message = Heard::hear, options.message_user = &heard_;
    tuner_source* source = nullptr;
    EXPECT_EQ(tuner_open(file, &options, &source), TUNER_OK) << tuner_last_error();
    sources_.push_back(source);
    return source;
  }
};

}  // namespace tuner::testing

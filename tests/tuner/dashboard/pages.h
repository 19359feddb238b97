// A program that serves the dashboard: tuner dashboard, or tuner serve --http.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/support/text_client.h"
#include "tests/tuner/command_line.h"
#include "tests/tuner/processes.h"

namespace tuner::testing {

// The program, and how it is asked.
class Pages {
 public:
  Pages(const CommandLine& shell, const std::string& words, const std::string& name)
      : program_({"/bin/sh", "-c",
                  str("cd ", shell.folder().string(), " && XDG_RUNTIME_DIR=", shell.folder().string(),
                      " exec ", TUNER_BIN_DIR, "/tuner ", words)},
                 (shell.folder() / name).string()) {
    std::smatch found;
    EXPECT_TRUE(eventually(std::chrono::seconds(30), [&] {
      const std::string out = program_.out();
      if (!std::regex_search(out, found, std::regex("dashboard on http://([0-9.:]+)/(?:#token=(\\w+))?\n")))
        return false;
      address_ = found[1], token_ = found[2];
      return true;
    })) << program_.err();
  }
  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }
  Process& program() { return program_; }

  std::string said(const std::string& line, const std::string& body = "") const {
    const TextClient client(address_);
    client.send_text(str(line, " HTTP/1.1\r\nHost: ", address_,
                         "\r\nConnection: close\r\nContent-Length: ", body.size(),
                         token_.empty() ? "" : "\r\nAuthorization: Bearer " + token_, "\r\n\r\n", body));
    return client.rest(std::chrono::seconds(60));
  }
  nlohmann::json told(const std::string& path) const {
    const std::string all = said("GET " + path);
    const size_t head = all.find("\r\n\r\n");
    return head == std::string::npos ? nlohmann::json()
                                     : nlohmann::json::parse(all.substr(head + 4), nullptr, false);
  }

 private:
  Process program_;
  std::string address_, token_;
};

}  // namespace tuner::testing

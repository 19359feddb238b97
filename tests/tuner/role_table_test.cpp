// The role table names every call of proto/, and the daemon asks for each what its row says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "measure.pb.h"
#include "tests/tuner/guarded_daemon.h"
#include "tuner/identity/roles.h"
#include "tuning.pb.h"

namespace tuner::identity {
namespace {

using testing::GuardedDaemon;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAreArray;

// "/tuner.v1.Jobs/Submit" for each call of each service in each file of proto/, also one that nobody links yet.
std::vector<std::string> calls_of_proto() {
  static const std::regex kPackage(R"(^package ([\w.]+);)"), kService(R"(^service (\w+) \{)"),
      kCall(R"(^\s*rpc\s+(\w+)\s*\()");
  std::vector<std::string> calls;
  for (const auto& entry : std::filesystem::directory_iterator(TUNER_SOURCE_DIR "/proto")) {
    if (entry.path().extension() != ".proto") continue;
    std::ifstream in(entry.path());
    std::string package, service;
    std::smatch match;
    for (std::string line; std::getline(in, line);) {
      if (std::regex_search(line, match, kPackage)) package = match[1];
      if (std::regex_search(line, match, kService)) service = match[1];
      if (std::regex_search(line, match, kCall))
        calls.push_back(str("/", package, ".", service, "/", match[1].str()));
    }
  }
  return calls;
}

// The same as the compiled messages tell it.
std::vector<std::string> calls_of(const google::protobuf::FileDescriptor* file) {
  std::vector<std::string> calls;
  for (int s = 0; s < file->service_count(); ++s)
    for (int m = 0; m < file->service(s)->method_count(); ++m)
      calls.push_back("/" + file->service(s)->full_name() + "/" + file->service(s)->method(m)->name());
  return calls;
}

TEST(RoleTable, HasOneRowForEachCallAndNoOther) {
  const std::vector<std::string> calls = calls_of_proto();
  EXPECT_THAT(calls, IsSupersetOf(calls_of(v1::SubmitRequest::descriptor()->file())));
  EXPECT_THAT(calls, IsSupersetOf(calls_of(v1::SyncRequest::descriptor()->file())));
  ASSERT_GE(calls.size(), 11u) << "proto/ was not found";
  std::vector<std::string> rows;
  for (const CallRule& rule : role_table()) rows.emplace_back(rule.method);
  EXPECT_THAT(rows, UnorderedElementsAreArray(calls)) << "a new call needs a row in tuner/identity/roles.cpp";
}

class RoleTableTest : public ::testing::Test {
 protected:
  const std::vector<std::string> calls_ = calls_of_proto();
  GuardedDaemon daemon_;
};

TEST_F(RoleTableTest, NoCallIsAnsweredToWhoIsNotKnown) {
  DaemonAccess wrong = daemon_.nobody();
  wrong.token = "tuner_0123";
  DaemonAccess plain{.address = daemon_.address(GuardedDaemon::kPlain)};
  const std::string ask =
      ": ask the farm's administrator for credentials (tuner admin token), and give them as --daemon FILE";
  for (const auto& [access, why] :
       {std::pair(daemon_.nobody(), "this daemon answers nobody it does not know" + ask),
        std::pair(plain, "this daemon answers nobody it does not know" + ask),
        std::pair(wrong, "the token is not known here" + ask)}) {
    const auto channel = testing::dial(access);
    for (const std::string& method : calls_) {
      const grpc::Status status = testing::call(access, channel, method);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
      EXPECT_EQ(status.error_message(), why) << method;
    }
  }
}

TEST_F(RoleTableTest, EachCallIsAnsweredToItsRoleAndDeniedToOthers) {
  int denied = 0, answered = 0;
  for (const Role role : {Role::kQuery, Role::kSubmit, Role::kWork, Role::kAdmin}) {
    const std::string name = std::string("has-") + std::string(role_name(role));
    const DaemonAccess access = daemon_.person(name, role);
    const auto channel = testing::dial(access);
    // The daemon looks at its folder once a second.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (testing::call(access, channel, calls_[0]).error_code() == grpc::StatusCode::UNAUTHENTICATED)
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "the token does not become known";
    for (const std::string& method : calls_) {
      SCOPED_TRACE(str(name, " calls ", method));
      const grpc::Status status = testing::call(access, channel, method);
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
      if (Roles(role).allow(role_of(method))) {
        ++answered;
        // A worker may be itself only.
        EXPECT_TRUE(status.error_code() != grpc::StatusCode::PERMISSION_DENIED ||
                    status.error_message().starts_with("has-work may register as has-work or "))
            << status.error_message();
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << "nobody serves it";
        EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      } else {
        ++denied;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
        EXPECT_EQ(status.error_message(),
                  str(name, " may ", role_name(role), "; ", method.substr(method.rfind('/') + 1),
                      " needs the role ", role_name(role_of(method))));
      }
    }
  }
  EXPECT_GT(denied, 10);
  EXPECT_GT(answered, 10);
}

TEST(RoleTableDeathTest, ACallWithoutARowStopsTheProgram) {
  EXPECT_DEATH((void)role_of("/tuner.v1.Jobs/NoSuchCall"),
               "/tuner.v1.Jobs/NoSuchCall has no row in the role table");
}

}  // namespace
}  // namespace tuner::identity

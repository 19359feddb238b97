// The role table names every call of proto/, and the daemon answers each to the callers that docs/farm.md
// names, and to no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
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

// "/tuner.v1.Jobs/Submit" for each call of each service in each file of proto/, also one that nobody links
// yet.
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

// What the table of docs/farm.md says, written out: who may call what. Not read from the product's own table.
struct May {
  std::string_view method;
  bool query, submit, work, admin;

  bool is_for(Role role) const {
    switch (role) {
      case Role::kQuery:
        return query;
      case Role::kSubmit:
        return submit;
      case Role::kWork:
        return work;
      case Role::kAdmin:
        return admin;
    }
    return false;
  }
  // The role that a refusal names: the one that is given out for this call.
  std::string_view asked() const { return work ? "work" : query ? "query" : submit ? "submit" : "admin"; }
};
// clang-format off
constexpr May kMay[] = {
    //                              query  submit work   admin
    {"/tuner.v1.Jobs/Query",        true,  true,  false, true},
    {"/tuner.v1.Jobs/List",         true,  true,  false, true},
    {"/tuner.v1.Jobs/ListWorkers",  true,  true,  false, true},
    {"/tuner.v1.Jobs/Watch",        true,  true,  false, true},
    {"/tuner.v1.Jobs/ReadJobFile",  true,  true,  false, true},
    {"/tuner.v1.Jobs/Records",      true,  true,  false, true},
    {"/tuner.v1.Jobs/Races",        true,  true,  false, true},
    {"/tuner.v1.Jobs/Submit",       false, true,  false, true},
    {"/tuner.v1.Jobs/Cancel",       false, true,  false, true},
    {"/tuner.v1.Jobs/Rerun",        false, true,  false, true},
    {"/tuner.v1.Jobs/Remeasure",    false, true,  false, true},
    {"/tuner.v1.Admin/Drain",       false, false, false, true},
    {"/tuner.v1.Admin/Prune",       false, false, false, true},
    {"/tuner.v1.Workers/Register",  false, false, true,  false},
    {"/tuner.v1.Workers/Sync",      false, false, true,  false},
    {"/tuner.v1.Blobs/Read",        false, false, true,  false},
    {"/tuner.v1.Blobs/Write",       false, false, true,  false},
};
// clang-format on

TEST(RoleTable, GivesEachCallToTheRolesOfThePageAndToNoOther) {
  std::vector<std::string> named;
  for (const May& may : kMay) {
    named.emplace_back(may.method);
    for (const Role role : {Role::kQuery, Role::kSubmit, Role::kWork, Role::kAdmin})
      EXPECT_EQ(Roles(role).allow(role_of(may.method)), may.is_for(role))
          << may.method << " for " << role_name(role);
  }
  EXPECT_THAT(named, UnorderedElementsAreArray(calls_of_proto())) << "a new call needs a line in this test";
}

// The page names what `submit` adds, so that whoever gives a role out knows what it allows.
TEST(RoleTable, ThePageNamesTheCallsThatHaveTrialsRun) {
  std::ifstream page(TUNER_SOURCE_DIR "/docs/farm.md");
  std::string row;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `submit` |")) row = line;
  ASSERT_NE(row, "") << "docs/farm.md has no table of roles";
  for (const May& may : kMay) {
    std::string word(may.method.substr(may.method.rfind('/') + 1));
    word[0] = static_cast<char>(std::tolower(word[0]));
    const bool in_row = std::regex_search(row.substr(10), std::regex("\\b" + word + "\\b"));
    EXPECT_EQ(in_row, may.submit && !may.query) << word << " in: " << row;
  }
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
  for (const Role role : {Role::kQuery, Role::kSubmit, Role::kWork, Role::kAdmin}) {
    const std::string name = std::string("has-") + std::string(role_name(role));
    const DaemonAccess access = daemon_.person(name, role);
    const auto channel = testing::dial(access);
    // The daemon looks at its folder once a second.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (testing::call(access, channel, calls_[0]).error_code() == grpc::StatusCode::UNAUTHENTICATED)
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "the token does not become known";
    for (const May& may : kMay) {
      const std::string method(may.method);
      SCOPED_TRACE(str(name, " calls ", method));
      const grpc::Status status = testing::call(access, channel, method);
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
      if (may.is_for(role)) {
        // A worker may be itself only.
        EXPECT_TRUE(status.error_code() != grpc::StatusCode::PERMISSION_DENIED ||
                    status.error_message().starts_with("has-work may register as has-work or "))
            << status.error_message();
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << "nobody serves it";
        EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      } else {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
        EXPECT_EQ(status.error_message(),
                  str(name, " may ", role_name(role), "; ", method.substr(method.rfind('/') + 1),
                      " needs the role ", may.asked()));
      }
    }
  }
}

TEST(RoleTableDeathTest, ACallWithoutARowStopsTheProgram) {
  EXPECT_DEATH((void)role_of("/tuner.v1.Jobs/NoSuchCall"),
               "/tuner.v1.Jobs/NoSuchCall has no row in the role table");
}

}  // namespace
}  // namespace tuner::identity

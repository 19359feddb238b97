// A dashboard about a database whose times are a formula, asked without sockets.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tuner/report/report_fixture.h"
#include "tuner/dashboard/dashboard.h"
#include "tuner/dashboard/store_facts.h"

namespace tuner::testing {

inline constexpr char kOwnHost[] = "127.0.0.1:7071";

class DashboardTest : public ReportTest {
 protected:
  using Json = nlohmann::ordered_json;

  std::shared_ptr<dashboard::FactSource> facts_here() const {
    std::shared_ptr<Store> read = Store::open(folder_.file("db"), Store::Mode::kRead).value();
    return dashboard::facts_of_store(read, dashboard::LiveDaemon::of_database(folder_.file("db")));
  }
  dashboard::Dashboard dashboard() const {
    return dashboard::Dashboard(
        {.facts = facts_here(), .beside = beside_, .page = {}, .visitor = [this](const http::Request&) {
           return visitor_;
         }});
  }
  // As the server would send it: a late answer is waited for.
  static http::Reply whole(http::Reply reply) { return reply.later ? reply.later() : reply; }
  http::Reply ask(http::Request request) const {
    if (request.host.empty()) request.host = kOwnHost;
    if (request.method.empty()) request.method = "GET";
    const size_t mark = request.path.find('?');
    if (mark != std::string::npos) request.query = request.path.substr(mark + 1), request.path.resize(mark);
    return whole(dashboard().answer(request, {.address = kOwnHost}));
  }
  Json told(const std::string& path) const {
    const http::Reply reply = ask({.path = path});
    EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
    return Json::parse(reply.body, nullptr, false);
  }

  std::shared_ptr<dashboard::FactSource> beside_;
  dashboard::Visitor visitor_{.reads = true, .changes = true};
};

}  // namespace tuner::testing

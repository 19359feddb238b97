// Dashboard: answers the requests of the page. No sockets here: dashboard_server.h has them.
//
//   GET  /                        the page and its files, for everybody
//   GET  /api/about               what is shown, and what the visitor may do
//   GET  /api/jobs                ?from=&count=      newest first
//   GET  /api/jobs/ID             a job's tasks, with best time, default and roofline, and its races
//   GET  /api/jobs/ID/curve       ?after=&count=     its results in order
//   GET  /api/jobs/ID/races/N     samples of each finalist
//   GET  /api/answers             ?from=&count=
//   GET  /api/task                ?workload=&target=&constants=
//   GET  /api/task/records        the same, and ?after=&count=
//   GET  /api/workers
//   GET  /api/events              server-sent events: "news" when something is new
//   POST /api/jobs                a job file; ?check=1 only checks it
//   POST /api/jobs/ID/cancel
//   POST /api/jobs/ID/tune        ?trials=           goes on with it for so many more trials per task
//   POST /api/task/tune           as /api/task, and ?trials=
//   POST /api/task/verify         as /api/task: measures the answer again, on this host
//   POST /api/task/library        as /api/task: its library, as an archive
//   GET  /api/beside/...          the same of the source beside, if there is one: jobs, answers, tasks
//
// Every request is checked first (request_check.h). /api/ needs a visitor who may read, POST one who may
// change. An error is {"error": one line} with its status. All answers have the same strict headers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tuner/dashboard/fact_source.h"
#include "tuner/dashboard/page_files.h"
#include "tuner/dashboard/request_check.h"
#include "tuner/dashboard/visitor.h"
#include "tuner/http/http_message.h"

namespace tuner::dashboard {

struct DashboardParts {
  std::shared_ptr<FactSource> facts;
  std::shared_ptr<FactSource> beside = {};  // shown beside it, and never changed; null: none
  PageFiles page;
  std::function<Visitor(const http::Request&)> visitor;  // called from the server's thread
};

class Dashboard {
 public:
  explicit Dashboard(DashboardParts parts) : parts_(std::move(parts)) {}
  http::Reply answer(const http::Request& request, const OwnAddress& own) const;

 private:
  http::Reply answer_api(const http::Request& request) const;
  http::Reply answer_change(const http::Request& request, const Visitor& visitor) const;
  DashboardParts parts_;
};

}  // namespace tuner::dashboard

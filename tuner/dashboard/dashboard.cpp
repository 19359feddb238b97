#include "tuner/dashboard/dashboard.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/dashboard/request_words.h"
#include "tuner/text/facts.h"

namespace tuner::dashboard {
namespace {

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr int64_t kMostTrials = 1'000'000;  // that a page asks for

http::Reply with_headers(http::Reply reply) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Content-Security-Policy", kPolicy},
           {"Referrer-Policy", "no-referrer"},
           {"X-Frame-Options", "DENY"},
           {"Cross-Origin-Opener-Policy", "same-origin"},
           {"Cross-Origin-Resource-Policy", "same-origin"}})
    reply.headers.emplace_back(name, value);
  return reply;
}

http::Reply json_reply(std::string body, int status = 200) {
  return with_headers(
      {.status = status, .type = "application/json; charset=utf-8", .body = std::move(body) + "\n"});
}
http::Reply error_reply(int status, const std::string& why) {
  return json_reply(one_line({{"error", why}}), status);
}

int status_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kAborted:
      return 409;
    case StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}
http::Reply reply_of(const Result<std::string>& answer) {
  return answer ? json_reply(*answer) : error_reply(status_of(answer.status()), answer.status().message());
}

// Facts wait for a disk or a daemon: they are told on another thread.
template <class Ask>
http::Reply later(Ask ask) {
  return {.later = [ask = std::move(ask)] { return reply_of(ask()); }};
}

Result<Part> part_of(const Query& query) {
  Part part;
  ASSIGN_OR_RETURN(part.from, query.number("from", 0, 0, int64_t{1} << 40));
  ASSIGN_OR_RETURN(part.count, query.number("count", Part::kUsual, 1, Part::kMost));
  return part;
}
Result<After> after_of(const Query& query) {
  After after;
  ASSIGN_OR_RETURN(after.id, query.number("after", 0, 0, INT64_MAX));
  ASSIGN_OR_RETURN(after.count, query.number("count", After::kMost, 1, After::kMost));
  return after;
}
Result<TaskName> task_of(const Query& query) {
  TaskName task{.workload = query.text("workload"), .target = query.text("target")};
  if (task.workload.empty() || task.target.empty())
    return invalid_argument("query: expected workload=KEY&target=TARGET, found none of one");
  if (const std::string constants = query.text("constants"); !constants.empty()) task.constants = constants;
  if (task.constants != "warm" && task.constants != "cold")
    return invalid_argument("query: constants: expected warm or cold, found another word");
  return task;
}

// Words behind /api/, and what is asked for behind '?'.
struct Asked {
  std::vector<std::string> words;
  Query query;
};
Result<Asked> asked_by(const http::Request& request) {
  Asked asked;
  ASSIGN_OR_RETURN(asked.words, words_of_path(request.path));
  ASSIGN_OR_RETURN(asked.query, Query::parse(request.query));
  asked.words.erase(asked.words.begin());
  return asked;
}

http::Reply no_such_path() {
  return error_reply(404, "no such path. docs/dashboard.md lists the paths of the API");
}

// What is told of one job.
Result<http::Reply> answer_job(const std::shared_ptr<FactSource>& facts, const Asked& asked,
                               const Tenant& tenant) {
  const std::vector<std::string>& words = asked.words;
  const std::string& id = words[1];
  if (words.size() == 2) return later([facts, id, tenant] { return facts->job(id, tenant); });
  if (words.size() == 3 && words[2] == "curve") {
    ASSIGN_OR_RETURN(const After after, after_of(asked.query));
    return later([facts, id, after, tenant] { return facts->curve(id, after, tenant); });
  }
  if (words.size() == 4 && words[2] == "races") {
    ASSIGN_OR_RETURN(const Query word, Query::parse("race=" + words[3]));
    ASSIGN_OR_RETURN(const int64_t race, word.number("race", 0, 0, INT64_MAX));
    return later([facts, id, race, tenant] { return facts->race(id, race, tenant); });
  }
  return no_such_path();
}

Result<http::Reply> answer_read(const std::shared_ptr<FactSource>& facts, const Asked& asked,
                                const Tenant& tenant) {
  const std::vector<std::string>& words = asked.words;
  if (words.empty()) return no_such_path();
  if (words[0] == "jobs" && words.size() > 1) return answer_job(facts, asked, tenant);
  if (words[0] == "task" && words.size() <= 2) {
    ASSIGN_OR_RETURN(const TaskName task, task_of(asked.query));
    if (words.size() == 1) return later([facts, task, tenant] { return facts->task(task, tenant); });
    if (words[1] != "records") return no_such_path();
    ASSIGN_OR_RETURN(const After after, after_of(asked.query));
    return later([facts, task, after, tenant] { return facts->records(task, after, tenant); });
  }
  if (words.size() > 1) return no_such_path();
  if (words[0] == "workers") return later([facts, tenant] { return facts->workers(tenant); });
  if (words[0] == "events")
    return with_headers({.type = "text/event-stream", .body = "retry: 2000\n\n", .follows = true});
  ASSIGN_OR_RETURN(const Part part, part_of(asked.query));
  if (words[0] == "jobs") return later([facts, part, tenant] { return facts->jobs(part, tenant); });
  if (words[0] == "answers") return later([facts, part] { return facts->answers(part); });
  return no_such_path();
}

http::Reply download_reply(const Result<Download>& made) {
  if (!made) return reply_of(made.status());
  http::Reply reply = with_headers({.type = made->type, .body = made->bytes});
  reply.headers.emplace_back("Content-Disposition", "attachment; filename=\"" + made->name + "\"");
  return reply;
}

// Changes, and what takes long.
Result<http::Reply> answer_work(const std::shared_ptr<FactSource>& facts, const Asked& asked,
                                const Tenant& tenant) {
  const std::vector<std::string>& words = asked.words;
  const auto trials = [&] { return asked.query.number("trials", 128, 1, kMostTrials); };
  if (words.size() == 3 && words[0] == "jobs" && words[2] == "tune") {
    ASSIGN_OR_RETURN(const int64_t count, trials());
    return later([facts, id = words[1], count, tenant] {
      return facts->tune_job_on(id, static_cast<int>(count), tenant);
    });
  }
  if (words.size() != 2 || words[0] != "task") return no_such_path();
  ASSIGN_OR_RETURN(const TaskName task, task_of(asked.query));
  if (words[1] == "verify") return later([facts, task] { return facts->verify(task); });
  if (words[1] == "library")
    return http::Reply{.later = [facts, task] { return download_reply(facts->library(task)); }};
  if (words[1] != "tune") return no_such_path();
  ASSIGN_OR_RETURN(const int64_t count, trials());
  return later([facts, task, count] { return facts->tune_on(task, static_cast<int>(count)); });
}

}  // namespace

http::Reply Dashboard::answer_change(const http::Request& request, const Visitor& visitor) const {
  if (!visitor.changes) return error_reply(visitor.refused_status, visitor.why_not_change);
  const Result<Asked> asked = asked_by(request);
  if (!asked) return error_reply(400, asked.message());
  const std::vector<std::string>& words = asked->words;
  const std::shared_ptr<FactSource> facts = parts_.facts;
  if (words == std::vector<std::string>{"jobs"})
    return later([facts, body = request.body, check = asked->query.text("check") == "1"] {
      return facts->submit(body, check);
    });
  if (words.size() == 3 && words[0] == "jobs" && words[2] == "cancel")
    return later([facts, id = words[1]] { return facts->cancel(id); });
  const Result<http::Reply> reply = answer_work(facts, *asked, visitor.tenant);
  return reply ? *reply : error_reply(status_of(reply.status()), reply.status().message());
}

http::Reply Dashboard::answer_api(const http::Request& request) const {
  const Visitor visitor = parts_.visitor(request);
  if (!visitor.reads) {
    http::Reply refused = error_reply(visitor.refused_status, visitor.why_not_read);
    if (refused.status == 401) refused.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tuner\"");
    return refused;
  }
  if (request.method == "POST") return answer_change(request, visitor);
  if (request.path == "/api/about")
    return json_reply(one_line({{"source", parts_.facts->name()},
                                {"beside", parts_.beside ? parts_.beside->name() : ""},
                                {"may_change", visitor.changes},
                                {"why_not_change", visitor.why_not_change}}));
  Result<Asked> asked = asked_by(request);
  if (!asked) return error_reply(400, asked.message());
  std::shared_ptr<FactSource> facts = parts_.facts;
  if (!asked->words.empty() && asked->words[0] == "beside") {
    asked->words.erase(asked->words.begin());
    const bool told = !asked->words.empty() && asked->words[0] != "events" && asked->words[0] != "workers";
    if (parts_.beside == nullptr || !told) return no_such_path();
    facts = parts_.beside;
  }
  const Result<http::Reply> reply = answer_read(facts, *asked, visitor.tenant);
  return reply ? *reply : error_reply(status_of(reply.status()), reply.status().message());
}

http::Reply Dashboard::answer(const http::Request& request, const OwnAddress& own) const {
  if (const Status allowed = check_request(request, own); !allowed)
    return error_reply(403, allowed.message());
  const bool api = request.path.starts_with("/api/");
  if (request.method != "GET" && request.method != "HEAD" && !(api && request.method == "POST"))
    return error_reply(405, "expected GET, HEAD, or POST below /api");
  if (api) return answer_api(request);
  if (const PageFiles::File* file = parts_.page.find(request.path))
    return with_headers({.type = file->type, .body = file->bytes});
  return error_reply(404, "no such file. The page is at /");
}

}  // namespace tuner::dashboard

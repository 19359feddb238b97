// The side of who asks: writes the request, starts the runner, reads what came of it.
#include "measure_server/runner/function_trial.h"

#include <sys/wait.h>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/output_file.h"
#include "measure_server/runner/runner_client.h"

namespace tuner {
namespace {

using nlohmann::json;

json request_json(const FunctionTrial& trial, const std::string& results) {
  json buffers = json::array(), functions = json::array();
  for (const FunctionTrial::Buffer& b : trial.buffers)
    buffers.push_back({{"file", b.file}, {"bytes", b.bytes}, {"given", b.given}, {"result", b.result}});
  for (const FunctionTrial::Function& f : trial.functions) {
    json args = json::array();
    for (const FunctionTrial::Argument& a : f.args)
      args.push_back({{"buffer", a.buffer}, {"offset", a.offset}});
    functions.push_back({{"library", f.library},
                         {"symbol", f.symbol},
                         {"args", args},
                         {"workspace_bytes", f.workspace_bytes},
                         {"workspace_bytes_per_thread", f.workspace_bytes_per_thread}});
  }
  return {{"threads", trial.threads}, {"buffers", buffers}, {"functions", functions}, {"results", results}};
}

Result<FunctionTimes> read_results(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_whole(path));
  ASSIGN_OR_RETURN(const json document, json_input::parse(text));
  FunctionTimes times;
  std::string problem;
  json_input::Reader in(document, "");
  in.read("problem", problem);
  in.read("times_ns", times.ns);
  RETURN_IF_ERROR(in.status());
  if (!problem.empty()) return invalid_argument(problem);
  return times;
}

// Nothing: it was stopped, at the limit or by an interruption.
std::optional<int> wait_or_stop(pid_t child, std::chrono::milliseconds limit,
                                const std::function<bool()>& interrupted) {
  constexpr std::chrono::milliseconds kLook{50};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!interrupted() && std::chrono::steady_clock::now() < end)
    if (const std::optional<int> status = wait_for_end(child, kLook)) return status;
  end_program(child, std::chrono::milliseconds(0));
  return std::nullopt;
}

}  // namespace

Result<FunctionTimes> try_functions(const FunctionTrial& trial, const std::string& folder,
                                    std::chrono::milliseconds limit,
                                    const std::function<bool()>& interrupted) {
  const std::string request = folder + "/request.json", results = folder + "/results.json";
  ASSIGN_OR_RETURN(const std::string runner, find_runner());
  RETURN_IF_ERROR(replace_file(results, ""));
  RETURN_IF_ERROR(replace_file(request, request_json(trial, results).dump()));
  ASSIGN_OR_RETURN(const pid_t child, start_program({.path = runner,
                                                     .words = {"runner", "--try-function", request},
                                                     .log = folder + "/output"}));
  const std::optional<int> status = wait_or_stop(child, limit, interrupted);
  if (!status && interrupted()) return Status(StatusCode::kAborted, "interrupted");
  if (!status)
    return invalid_argument("has not returned after ", static_cast<double>(limit.count()) / 1000, " s");
  if (WIFSIGNALED(*status)) return invalid_argument("crashes: ", signal_text(WTERMSIG(*status)));
  // It may have called exit().
  const Result<std::string> said = read_whole(results);
  if (!said || said->empty()) return invalid_argument("ends the process: ", ending_text(*status));
  return read_results(results);
}

}  // namespace tuner

// Arrows between folders point one way. Reads every #include of ours and compares it with the table below,
// which has the rules of docs/architecture.md ("How the folders meet") as data. A new arrow is a decision:
// change the table, say why beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/layering/tree.h"

namespace tuner::tree {
namespace {

struct Rule {
  std::string folder;                 // files below it, unless a longer rule matches
  std::vector<std::string> may_read;  // folders or files, besides itself
};

// What is not on the right is not included.
const std::vector<Rule> kRules = {
    {"compiler_core/base", {}},
    {"compiler_core/target.h", {"compiler_core/base", "compiler_core/target_family.h"}},
    {"compiler_core/target_family.h", {"compiler_core/base"}},
    {"compiler_core/target.cpp",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/host_spelling.h"}},
    {"compiler_core/target_families.cpp", {"compiler_core/target.h", "compiler_core/target_family.h"}},
    // The door that every back end stands behind; the list of them knows all.
    {"compiler_core/backend.h",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/ir", "compiler_core/artifact"}},
    {"compiler_core/backend.cpp", {"compiler_core/backend.h"}},
    {"compiler_core/backends",
     {"compiler_core/backend.h", "compiler_core/codegen/cpu_backend.h",
      "compiler_core/codegen_cuda/cuda_backend.h", "compiler_core/codegen_npu/npu_backend.h"}},
    {"compiler_core/ir", {"compiler_core/base"}},
    {"compiler_core/arith", {"compiler_core/base", "compiler_core/ir"}},
    {"compiler_core/analysis", {"compiler_core/base", "compiler_core/ir", "compiler_core/arith"}},
    {"compiler_core/te",
     {"compiler_core/base", "compiler_core/ir", "compiler_core/arith", "compiler_core/analysis"}},
    // Networks of operators whose math is written with te. Who evaluates it is passed in.
    {"compiler_core/graph", {"compiler_core/base", "compiler_core/ir", "compiler_core/te"}},
    {"compiler_core/schedule",
     {"compiler_core/base", "compiler_core/ir", "compiler_core/arith", "compiler_core/analysis"}},
    {"compiler_core/lower",
     {"compiler_core/base", "compiler_core/ir", "compiler_core/arith", "compiler_core/analysis"}},
    {"compiler_core/oracle", {"compiler_core/base", "compiler_core/ir", "compiler_core/arith"}},
    // Fission, and the lowered form it starts from. Interpreting or compiling the result is up to the caller.
    {"compiler_core/emulator",
     {"compiler_core/base", "compiler_core/ir", "compiler_core/arith", "compiler_core/analysis",
      "compiler_core/lower", "compiler_core/oracle"}},
    // Sources of users are confined as those for CPUs are.
    {"compiler_core/codegen_cuda",
     {"compiler_core/base", "compiler_core/foreign", "compiler_core/runtime/cuda_fit.h",
      "compiler_core/backend.h", "compiler_core/target.h", "compiler_core/ir", "compiler_core/arith",
      "compiler_core/analysis", "compiler_core/lower", "compiler_core/artifact"}},
    // Its door: the emulator's Programs are compiled by the CPU back end, and devices are the driver's to
    // tell.
    {"compiler_core/codegen_cuda/cuda_backend.cpp",
     {"compiler_core/backend.h", "compiler_core/host_spelling.h", "compiler_core/codegen",
      "compiler_core/codegen_cuda", "compiler_core/foreign", "compiler_core/ir", "compiler_core/lower",
      "compiler_core/runtime"}},
    // The machine, its code and its simulator: no IR.
    {"compiler_core/npu", {"compiler_core/base"}},
    // Its back end: all loops run while compiling, so no pass of lower/ is needed.
    {"compiler_core/codegen_npu",
     {"compiler_core/base", "compiler_core/backend.h", "compiler_core/target.h", "compiler_core/ir",
      "compiler_core/npu", "compiler_core/runtime/npu_loader.h", "compiler_core/runtime/cpu_hardware.h"}},
    // What programs know that read records.
    {"compiler_core/codegen_npu/npu_family.h", {"compiler_core/target.h", "compiler_core/npu/machine.h"}},
    {"compiler_core/codegen_npu/npu_family.cpp", {"compiler_core/codegen_npu/npu_family.h"}},
    // Texts of users, by compilers of the host: no lowering, no LLVM.
    {"compiler_core/foreign",
     {"compiler_core/base", "compiler_core/backend.h", "compiler_core/ir", "compiler_core/artifact"}},
    // The same of CUDA sources, run on the host.
    {"compiler_core/host_cuda", {"compiler_core/base", "compiler_core/ir", "compiler_core/foreign"}},
    {"compiler_core/artifact", {"compiler_core/base"}},
    {"compiler_core/runtime", {"compiler_core/base", "compiler_core/artifact"}},
    // A process of the host runs kernels of the NPU on its simulator.
    {"compiler_core/runtime/npu_loader.cpp",
     {"compiler_core/runtime", "compiler_core/artifact", "compiler_core/npu"}},
    // The reference answer is an unscheduled Program compiled in double precision and run in process.
    {"compiler_core/codegen",
     {"compiler_core/base", "compiler_core/backend.h", "compiler_core/target.h", "compiler_core/ir",
      "compiler_core/foreign", "compiler_core/arith", "compiler_core/analysis", "compiler_core/lower",
      "compiler_core/te", "compiler_core/schedule", "compiler_core/artifact", "compiler_core/runtime"}},
    // emulated_run compiles what fission makes of a GPU Program and runs it in process, or interprets it.
    {"compiler_core/codegen/emulated_run.h",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/ir", "compiler_core/lower",
      "compiler_core/artifact", "compiler_core/emulator"}},
    {"compiler_core/codegen/emulated_run.cpp",
     {"compiler_core/base", "compiler_core/codegen", "compiler_core/emulator", "compiler_core/oracle",
      "compiler_core/runtime"}},
    {"db", {"compiler_core/base", "compiler_core/target.h", "compiler_core/target_family.h"}},
    // Learns from records by the interface; what asks it is not its business.
    {"db/learning",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/target_family.h", "db/device_records.h",
      "db/records.h", "db/store.h", "templates"}},
    {"db/resolve", {"compiler_core/base", "compiler_core/target.h", "db", "templates"}},
    // What a template is; the math, the knobs and the schedules it needs have rooms of their own.
    {"templates",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/schedule", "templates/fitted_defaults",
      "templates/space", "templates/workload"}},
    {"templates/fitted_defaults",
     {"compiler_core/base", "compiler_core/target.h", "templates/space", "templates/workload"}},
    {"templates/fragment_stages.h", {"compiler_core/schedule"}},
    {"templates/fragment_stages.cpp", {"templates/fragment_stages.h", "compiler_core/ir"}},
    {"templates/space", {"compiler_core/base"}},
    // What names a kernel's document is what names an artifact.
    {"templates/source_kernel",
     {"compiler_core/base", "compiler_core/artifact/artifact.h", "compiler_core/ir", "templates/space"}},
    // The workload `program` is a fragment of a graph.
    {"templates/workload",
     {"compiler_core/base", "compiler_core/ir", "compiler_core/arith", "compiler_core/analysis",
      "compiler_core/te", "compiler_core/graph"}},
    // A user's source is a workload, too.
    {"templates/workload/operators/kernel.cpp",
     {"compiler_core/base", "templates/source_kernel", "templates/workload"}},
    {"templates/workload/key_document.cpp", {"templates/source_kernel", "templates/workload"}},
    {"templates/source_kernel_instance.h", {"templates/schedule_template.h", "templates/source_kernel"}},
    {"templates/cpu/source_kernel_cpu.cpp",
     {"templates/cpu", "templates/source_kernel", "templates/source_kernel_instance.h",
      "templates/workload"}},
    {"templates/cuda/source_kernel_cuda.cpp",
     {"templates/cuda", "templates/source_kernel", "templates/source_kernel_instance.h",
      "templates/workload"}},
    // The steps of recurrent layers come as a program: its graph says which they are.
    {"templates/cpu/recurrence_cpu.cpp", {"compiler_core/graph/operators/recurrent.h", "templates/cpu"}},
    {"templates/cpu",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/ir", "compiler_core/arith",
      "compiler_core/analysis", "compiler_core/te", "compiler_core/schedule", "templates/space",
      "templates/workload", "templates/schedule_template.h", "templates/fragment_stages.h"}},
    // Which of a fragment's nodes have steps is told by its graph.
    {"templates/cuda/program_cuda.cpp", {"compiler_core/graph/graph.h", "templates/cuda"}},
    {"templates/cuda",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/ir", "compiler_core/arith",
      "compiler_core/analysis", "compiler_core/te", "compiler_core/schedule", "templates/space",
      "templates/workload", "templates/schedule_template.h", "templates/fragment_stages.h"}},
    // What fits a machine is asked of its numbers. Some write stages of their own; a program's graph says
    // which operator it is.
    {"templates/npu",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/te", "compiler_core/schedule",
      "compiler_core/graph/operator.h", "compiler_core/codegen_npu/npu_family.h",
      "compiler_core/codegen_npu/row_math.h", "compiler_core/npu/machine.h", "templates/space",
      "templates/workload", "templates/schedule_template.h"}},
    {"templates/registry",
     {"compiler_core/base", "templates/cpu/cpu_templates.h", "templates/cuda/cuda_templates.h",
      "templates/fitted_defaults", "templates/npu/npu_templates.h", "templates/schedule_template.h"}},
    // Records and tuned configs are the store's types, so convert knows the store's header as well as the
    // templates'.
    {"proto", {"compiler_core/base", "compiler_core/target.h", "templates", "db"}},
    // Programs of users run here as their builds do: the same jail, the same list of the operator's.
    {"measure_server/runner",
     {"compiler_core/base", "compiler_core/runtime", "compiler_core/artifact",
      "compiler_core/foreign/confined_program.h", "compiler_core/foreign/commands.h"}},
    {"measure_server", {"compiler_core", "templates", "proto"}},
    // Only the runner's client: `tuner verify` runs candidates as safely as a worker does. Worker code stays
    // out.
    {"tuner", {"compiler_core", "templates", "proto", "db", "measure_server/runner"}},
    {"tuner/search", {"compiler_core/base", "templates", "tuner/cost_model"}},
    {"tuner/cost_model", {"compiler_core/base"}},
    // What is known ahead is computed by the oracle, or compiled.
    {"tuner/model", {"compiler_core", "db", "templates", "tuner/bundle", "tuner/jobs", "tuner/text"}},
    // Needs a daemon to tune and all that tuner/model knows. Functions of --use are tried in a runner, on the
    // data of verify.
    // Of a planned network's kernels a library for GPUs. What runs it is compiler_core/runtime's.
    {"tuner/gpu_model", {"compiler_core", "templates", "tuner/bundle", "tuner/model", "tuner/text"}},
    {"tuner/compile",
     {"compiler_core", "db", "measure_server/runner", "templates", "tuner/bundle", "tuner/client",
      "tuner/gpu_model", "tuner/jobs", "tuner/model", "tuner/study", "tuner/text", "tuner/verify"}},
    // A daemon measures, records tell what is stale.
    {"tuner/revalidate",
     {"compiler_core", "db", "templates", "tuner/client", "tuner/daemon", "tuner/jobs", "tuner/search",
      "tuner/study", "tuner/text", "tuner/verify"}},
    // Compiles, reads and runs; what is a user's kernel is told by tuner/jobs.
    {"tuner/judge",
     {"compiler_core", "measure_server/runner", "templates/workload", "tuner/jobs", "tuner/text"}},
    {"tuner/text", {"compiler_core", "db", "templates"}},
    {"tuner/command_line", {"compiler_core/base", "tuner/text"}},
    {"tuner/jobs", {"compiler_core", "db", "templates", "tuner/search"}},
    // Sockets and frames in front of a server that it does not know.
    {"tuner/transport", {"compiler_core/base"}},
    // Who calls, by what the socket told and what a farm's files say. It knows no call but by name.
    {"tuner/identity",
     {"compiler_core/base", "proto/daemon_access.h", "tuner/text", "tuner/transport/peer.h"}},
    // Pages over HTTP. What they say, and to whom, is told by a handler.
    {"tuner/http", {"compiler_core/base", "tuner/transport"}},
    {"tuner/daemon",
     {"compiler_core", "db", "proto", "templates", "tuner/http", "tuner/identity", "tuner/jobs",
      "tuner/search", "tuner/transport"}},
    // From the inside out: values, one job's search, messages, rooms. What is around them reads all.
    {"tuner/daemon/tables",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/backend.h", "compiler_core/artifact",
      "compiler_core/runtime/cuda_fit.h", "db", "templates/workload", "tuner/identity/share.h"}},
    {"tuner/daemon/search", {"compiler_core", "db", "templates", "tuner/daemon/tables", "tuner/search"}},
    {"tuner/daemon/edge",
     {"compiler_core", "db", "proto", "templates", "tuner/daemon/search", "tuner/daemon/tables", "tuner/jobs",
      "tuner/transport"}},
    {"tuner/daemon/rooms",
     {"compiler_core", "db", "proto", "templates/workload", "tuner/daemon/edge", "tuner/daemon/search",
      "tuner/daemon/tables", "tuner/search"}},
    {"tuner/client", {"compiler_core/base", "db", "proto", "tuner/daemon", "tuner/text"}},
    // Workers that a scheduler places: text, programs of the scheduler, and the daemon's list of workers.
    {"tuner/farm", {"compiler_core/base", "proto", "tuner/text"}},
    {"tuner/bundle", {"compiler_core", "db", "templates", "tuner/jobs", "tuner/text"}},
    {"tuner/pack",
     {"compiler_core", "db", "measure_server/runner", "templates", "tuner/jobs", "tuner/study"}},
    {"tuner/verify",
     {"compiler_core", "db", "measure_server/runner", "templates", "tuner/jobs", "tuner/text"}},
    {"tuner/study",
     {"compiler_core", "db", "measure_server/runner", "templates", "tuner/daemon", "tuner/jobs",
      "tuner/search", "tuner/text"}},
    // Whoever answers: a database, a daemon, a lock file, what was built.
    {"tuner/answers",
     {"compiler_core", "db", "proto", "templates", "tuner/bundle", "tuner/client", "tuner/jobs",
      "tuner/study", "tuner/text"}},
    // Facts of databases and daemons, over HTTP.
    {"tuner/dashboard",
     {"compiler_core", "db", "proto", "templates", "tuner/client", "tuner/daemon/daemon_host.h", "tuner/http",
      "tuner/identity", "tuner/jobs", "tuner/text", "tuner/transport"}},
    {"tuner/report",
     {"compiler_core/base", "db", "templates", "tuner/cost_model", "tuner/daemon", "tuner/jobs",
      "tuner/search", "tuner/study", "tuner/text"}},
    // Programs of a workload tell its operands; compiling them is builder_llvm.cpp's.
    {"deploy",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/ir", "compiler_core/runtime",
      "compiler_core/artifact", "db", "templates"}},
    // It races a kernel at its first use by the runner's sampling, on the inputs that workers draw: another
    // way of timing would come to other verdicts than the races behind the answer.
    {"deploy/runtime",
     {"compiler_core/base", "compiler_core/target.h", "compiler_core/ir", "compiler_core/runtime",
      "compiler_core/artifact", "db", "measure_server/runner/calm_gate.h",
      "measure_server/runner/input_data.h", "measure_server/runner/pulse.h",
      "measure_server/runner/sampling.h", "templates"}},
    // Messages on the wire, by what right they are sent, and nothing else of ours.
    {"deploy/client", {"compiler_core/base", "proto/daemon_access.h", "proto/grpc_access.h"}},
    // Modules for Python: kernels by the runtime library's C API, and the search by itself.
    {"deploy/python/module", {"compiler_core/base", "deploy/runtime/tuner_runtime_api.h"}},
    {"deploy/python/module/search_module.cpp",
     {"compiler_core/analysis/features.h", "compiler_core/base", "templates/source_kernel", "tuner/search"}},
    // ONNX Runtime's nodes: read as the models of `tuner compile` are, and run as its libraries are. What
    // compiles is another process.
    {"deploy/onnxruntime",
     {"compiler_core/artifact", "compiler_core/base", "compiler_core/oracle/oracle.h",
      "compiler_core/runtime", "tuner/model/onnx.pb.h", "tuner/model/read_model.h",
      "tuner/model/tensor_data.h"}},
    {"deploy/runtime/builder_llvm.cpp", {"compiler_core/codegen", "deploy/runtime"}},
};

// Headers of heavy libraries and the only folders that may see them.
const std::vector<Rule> kLibraries = {
    {"llvm/", {"compiler_core/codegen"}},
    {"lld/", {"compiler_core/codegen"}},
    {"grpc", {"proto", "measure_server/worker", "tuner/daemon", "tuner/client", "deploy/client"}},
    // Parsing the command line. A verb that saw it would take three times as long to compile.
    {"CLI/",
     {"tuner/command_line", "tuner/cli/app.cpp", "tuner/cli/main.cpp", "tuner/text/hint.cpp",
      "measure_server/worker/main.cpp", "measure_server/worker/program_parts.h",
      "measure_server/worker/program_parts.cpp", "measure_server/worker/runner_main.cpp"}},
    {"xgboost/", {"tuner/cost_model"}},
    {"pybind11/", {"deploy/python/module/search_module.cpp"}},
    {"Python.h", {"deploy/python/module/operand.h"}},
    {"numpy/", {"deploy/python/module/operand.cpp"}},
    {"sqlite3.h", {"db/sqlite"}},
    {"google/protobuf/",
     {"proto", "measure_server/worker", "tuner/daemon/edge/event_log.cpp", "tuner/model/read_model.cpp"}},
    // Messages of model files stay in their sources: no header hands them on.
    {"tuner/model/onnx.pb.h",
     {"deploy/onnxruntime/part_model.cpp", "tuner/model/branches.cpp", "tuner/model/control_flow.cpp",
      "tuner/model/graph_reader.cpp", "tuner/model/node_attribute.cpp", "tuner/model/raw_data.cpp",
      "tuner/model/read_model.cpp", "tuner/model/row_bounds.cpp", "tuner/model/subgraph.cpp",
      "tuner/model/tensor_data.cpp", "tuner/model/unrolled_loop.cpp", "tuner/model/unrolled_scan.cpp"}},
    // An engine; db/open chooses it. made_index.cpp has a file of its own, which is no database of records.
    {"db/sqlite/", {"db/sqlite", "db/open", "db/blobs/made_index.cpp"}},
    {"boost/", {"compiler_core/base/student.cpp", "tuner/http/http_server.cpp"}},
    {"openssl/",
     {"compiler_core/artifact/artifact.cpp", "db/blobs/blob_store.cpp", "db/exchange/identity.cpp",
      "tuner/identity", "tuner/transport/tls.cpp", "tuner/transport/tls_context.h",
      "tuner/transport/tls_context.cpp"}},
};

bool is_under(const std::string& path, const std::string& folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

const Rule* rule_of(const std::string& path) {
  const Rule* best = nullptr;
  for (const Rule& rule : kRules)
    if (is_under(path, rule.folder) && (best == nullptr || rule.folder.size() > best->folder.size()))
      best = &rule;
  return best;
}

bool allowed(const Rule& rule, const std::string& included) {
  if (is_under(included, rule.folder)) return true;
  for (const std::string& folder : rule.may_read)
    if (is_under(included, folder)) return true;
  return false;
}

TEST(Layering, IncludesFollowTheArrows) {
  const std::vector<Include> includes = includes_of_the_tree();
  ASSERT_GT(includes.size(), 300u) << "the tree was not found below " << TUNER_SOURCE_DIR;
  for (const Include& i : includes) {
    if (!is_ours(i)) continue;
    const Rule* rule = rule_of(i.file);
    ASSERT_NE(rule, nullptr) << i.file << ": no rule for this folder; add one to kRules";
    EXPECT_TRUE(allowed(*rule, i.included)) << i.file << ":" << i.line << " includes " << i.included
                                            << ", which " << rule->folder << " may not read";
  }
}

TEST(Layering, HeavyLibrariesStayBehindTheirFolder) {
  for (const Include& i : includes_of_the_tree()) {
    for (const Rule& library : kLibraries) {
      if (!i.included.starts_with(library.folder)) continue;
      EXPECT_TRUE(allowed({"-", library.may_read}, i.file))
          << i.file << ":" << i.line << " includes " << i.included << ", which belongs behind "
          << library.may_read[0];
    }
  }
}

// What is built in is decided once, by CMake. A source that looks for a header by itself may come to another
// answer than the link line, when a package arrives between configuring and building.
TEST(Layering, SourcesDoNotLookForHeadersThemselves) {
  const std::string question = std::string("__has_") + "include";
  std::vector<std::string> folders = kProgram;
  folders.insert(folders.end(), {"tests", "examples"});
  for (const SourceFile& file : read_files(folders, {".h", ".cpp", ".c"}))
    for (size_t i = 0; i < file.lines.size(); ++i)
      EXPECT_EQ(file.lines[i].find(question), std::string::npos)
          << file.path << ":" << i + 1 << " asks " << question << "; let CMake define TUNER_HAVE_... instead";
}

// Tables of the daemon are values: each can be tested, and played with made-up time, alone.
TEST(Layering, TablesOfTheDaemonKnowNoStoreMessageClockOrThread) {
  const fs::path tables = "tuner/daemon/tables";
  const std::set<std::string> readable = {"compiler_core/base/status.h",
                                          "compiler_core/base/outcome.h",         // words alone
                                          "compiler_core/base/measure_limits.h",  // numbers alone
                                          "compiler_core/base/statistics.h",
                                          "compiler_core/target.h",
                                          "compiler_core/backend.h",
                                          "compiler_core/artifact/artifact.h",  // sha256_hex
                                          "compiler_core/runtime/cuda_fit.h",   // rules alone
                                          "db/records.h",
                                          "db/death.h",
                                          "db/plausible.h",
                                          "db/blobs/blob_store.h",  // names of blobs
                                          "templates/workload/workload.h",
                                          "tuner/identity/share.h",
                                          "db/resolve/default_time.h"};  // DefaultConfig
  const std::set<std::string> outside = {"chrono", "ctime", "thread", "mutex", "condition_variable",
                                         "random"};
  size_t seen = 0;
  for (const Include& i : includes_of_the_tree()) {
    const fs::path file = i.file, included = i.included;
    if (file.parent_path() != tables) continue;
    ++seen;
    const bool of_language = included.parent_path().empty() && included.extension().empty();
    EXPECT_TRUE(included.parent_path() == tables || readable.contains(i.included) ||
                (of_language && !outside.contains(i.included)))
        << i.file << ":" << i.line << " includes " << i.included << "; that is a room's business";
  }
  EXPECT_GT(seen, 50u) << tables << " was not found";
}

TEST(Layering, TheRulesRefuseABackwardArrow) {
  EXPECT_FALSE(allowed(*rule_of("compiler_core/ir/expr.cpp"), "compiler_core/schedule/schedule.h"));
  EXPECT_FALSE(allowed(*rule_of("templates/registry/registry.cpp"), "compiler_core/codegen/compile.h"));
  EXPECT_FALSE(allowed(*rule_of("measure_server/runner/main.cpp"), "templates/workload/workload.h"));
  EXPECT_FALSE(allowed(*rule_of("measure_server/worker/main.cpp"), "db/store.h"));
  EXPECT_TRUE(allowed(*rule_of("templates/cpu/matmul_cpu.cpp"), "compiler_core/schedule/schedule.h"));
}

}  // namespace
}  // namespace tuner::tree

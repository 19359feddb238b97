// tuner build FILE -o DIR: the tuned kernel as something a program can link.
//
//   DIR/libNAME.so  NAME.h  tuner_runtime.h  manifest.json  schedule.txt        (DIR/NAME/... for each entry
//   of a list)
//
// and for a CUDA target
//
//   DIR/NAME.cubin  NAME.cu  NAME.c  NAME.h  manifest.json  schedule.txt        NAME.c launches the cubin
//
// Every kernel gets an entry symbol of its own, so that several can be linked into one program. The measured
// artifact has the template's symbol instead; whether the code is otherwise the measured one is checked by
// building that too and comparing digests, and stands in the manifest.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/runtime_header.h"  // generated
#include "compiler_core/codegen/compile.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "tuner/cli/c_header.h"
#include "tuner/cli/command.h"
#include "tuner/cli/facts.h"
#include "tuner/cli/format.h"
#include "tuner/cli/tasks.h"

namespace tuner::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Options {
  std::string file, directory, db, target, name;
  bool json = false;
};

Status write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  return out ? Status::ok() : failed(path.string(), ": cannot be written");
}

// The same Program under another entry symbol.
Program renamed(Program program, const std::string& name) {
  if (program.packing != nullptr) {
    Program packing = *program.packing;
    packing.name = name + "_pack";
    program.packing = std::make_shared<const Program>(std::move(packing));
  }
  program.name = name;
  return program;
}

ordered_json manifest_json(const CliTask& task, const ChosenKernel& kernel, const Artifact& artifact,
                           const std::string& name) {
  ordered_json out = ordered_json::parse(artifact.manifest.to_json());
  out["function"] = name;
  out["header"] = name + ".h";
  if (task.target.is_cuda()) {
    out["cubin"] = name + ".cubin";
    out["source"] = name + ".cu";
    out["launcher"] = name + ".c";
    out["alignment_bytes"] = 16;
  } else {
    out["library"] = "lib" + name + ".so";
    out["alignment_bytes"] = 64;
  }
  int64_t packed_bytes = 0;
  for (const ArgInfo& arg : artifact.manifest.pack_args)
    if (arg.role == "packed") packed_bytes += arg.bytes;
  out["packed_bytes"] = packed_bytes;
  out["workload"] = task.key;
  out["flops"] = task.workload.flops();
  out["template"] = kernel.schedule_template->name();
  out["template_version"] = kernel.schedule_template->version();
  out["algorithm"] = kernel.schedule_template->algorithm();
  out["config"] = config_json(kernel.config.to_text());
  out["tuned"] = kernel.tuned.has_value();
  return out;
}

Result<Artifact> compile_for(const Program& program, const Target& target) {
  return target.is_cuda() ? compile_cuda(program, target) : compile(program, target);
}

Status write_cpu_files(const fs::path& directory, const Artifact& artifact, const HeaderText& text) {
  RETURN_IF_ERROR(write_file(directory / ("lib" + text.name + ".so"), artifact.binary));
  RETURN_IF_ERROR(write_file(directory / (text.name + ".h"), c_header(artifact.manifest, text)));
  return write_file(directory / "tuner_runtime.h", kRuntimeHeader);
}

Status write_cuda_files(const fs::path& directory, const std::string& name, const Program& program,
                        const Artifact& artifact, const std::string& about) {
  ASSIGN_OR_RETURN(const Target target, parse_target(artifact.manifest.target));
  ASSIGN_OR_RETURN(const std::string source, emit_cuda(program, target));
  const CudaLauncher launcher = cuda_launcher(artifact.manifest, name, about);
  RETURN_IF_ERROR(write_file(directory / (name + ".cubin"), artifact.binary));
  RETURN_IF_ERROR(write_file(directory / (name + ".cu"), source));
  RETURN_IF_ERROR(write_file(directory / (name + ".c"), launcher.source));
  return write_file(directory / (name + ".h"), launcher.header);
}

// What is known of the tuned config, and whether the code built here is the code that was measured.
Status add_measurement(const CliTask& task, const ChosenKernel& kernel, const Program& program,
                       ordered_json& manifest) {
  if (!kernel.tuned) return Status::ok();
  ASSIGN_OR_RETURN(const Artifact measured, compile_for(program, task.target));
  manifest["measured"] = tuned_json(*kernel.tuned, task.workload.flops());
  manifest["same_code_as_measured"] = measured.manifest.digest == kernel.tuned->artifact_digest;
  if (measured.manifest.digest != kernel.tuned->artifact_digest)
    std::fprintf(stderr,
                 "tuner: %s: this program generates other code for the config than was measured (by %s; here "
                 "%s), so the "
                 "stated time is that of the measured code\n",
                 task.key.c_str(), kernel.tuned->environment.toolchain.c_str(),
                 measured.manifest.toolchain.c_str());
  return Status::ok();
}

Result<ordered_json> build_one(const CliTask& task, const ChosenKernel& kernel, const std::string& name,
                               const fs::path& directory) {
  if (task.target.emulated)
    return invalid_argument(
        "\"", task.target_name,
        "\" stands for the emulator's CPU Programs: nothing is shipped for it. Build for \"",
        task.target_name.substr(0, task.target_name.find(" -emulated")), "\"");
  if (!kernel.note.empty()) std::fprintf(stderr, "tuner: %s: %s\n", task.key.c_str(), kernel.note.c_str());
  ASSIGN_OR_RETURN(const Program program, kernel.instance->instantiate(kernel.config));
  const Program named = renamed(program, "tuner_" + name);
  ASSIGN_OR_RETURN(const Artifact artifact, compile_for(named, task.target));
  ASSIGN_OR_RETURN(const std::string schedule, kernel.instance->schedule_text(kernel.config));
  ordered_json manifest = manifest_json(task, kernel, artifact, name);
  RETURN_IF_ERROR(add_measurement(task, kernel, program, manifest));

  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return invalid_argument(directory.string(), ": cannot be made: ", error.message());
  std::string origin =
      kernel.tuned
          ? str("tuned: ",
                format_time(kernel.tuned->time_ns, kernel.tuned->time_low_ns, kernel.tuned->time_high_ns),
                " in trial ", kernel.tuned->trial_id, "; config ", kernel.config.to_text())
          : "not tuned: default config " + kernel.config.to_text();
  if (const std::string mark = algorithm_mark(kernel.schedule_template->name()); !mark.empty())
    origin += "\n * algorithm " + mark;
  if (task.target.is_cuda())
    RETURN_IF_ERROR(write_cuda_files(directory, name, named, artifact, str(task.key, "\n * ", origin)));
  else
    RETURN_IF_ERROR(write_cpu_files(directory, artifact, {name, task.key, origin}));
  RETURN_IF_ERROR(write_file(directory / "schedule.txt", schedule));
  RETURN_IF_ERROR(write_file(directory / "manifest.json", pretty(manifest) + "\n"));
  return manifest;
}

bool is_c_identifier(const std::string& name) {
  return !name.empty() && (name[0] < '0' || name[0] > '9') &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string::npos;
}

Status build(const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_tasks(options.file, options.target));
  if (!options.name.empty() && !is_c_identifier(options.name))
    return invalid_argument("--name: expected a C identifier, found \"", options.name, "\"");
  if (!options.name.empty() && tasks.size() > 1)
    return invalid_argument("--name: ", options.file, " holds ", tasks.size(), " entries; a name fits one");
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, open_if_there(options.db));
  ordered_json built = ordered_json::array();
  int defaults = 0;
  for (const CliTask& task : tasks) {
    const std::string name = options.name.empty() ? kernel_name(task) : options.name;
    const fs::path directory =
        tasks.size() == 1 ? fs::path(options.directory) : fs::path(options.directory) / name;
    ASSIGN_OR_RETURN(const ChosenKernel kernel, choose_kernel(task, store.get()));
    ASSIGN_OR_RETURN(ordered_json manifest, build_one(task, kernel, name, directory));
    defaults += kernel.tuned ? 0 : 1;
    if (!options.json)
      std::printf("%s: %s%s%s, %s.h, manifest.json (%s)\n", directory.c_str(),
                  task.target.is_cuda() ? "" : "lib", name.c_str(),
                  task.target.is_cuda() ? ".cubin, .cu, .c" : ".so", name.c_str(),
                  kernel.tuned ? format_time(kernel.tuned->time_ns).c_str() : "not tuned");
    built.push_back(std::move(manifest));
  }
  if (options.json) std::printf("%s\n", pretty(tasks.size() == 1 ? built[0] : built).c_str());
  if (defaults > 0)
    std::fprintf(stderr, "tuner: %d of %zu kernels run default configs. To tune them: tuner submit %s\n",
                 defaults, tasks.size(), options.file.c_str());
  return Status::ok();
}

}  // namespace

void add_build_command(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, context, "build",
                  "Write the tuned kernel as a shared library, or for a GPU a cubin, with its C header",
                  [options] { return report(build(*options)); });
  command->add_option("FILE", options->file, "Job file; - is standard input")->required();
  command->add_option("-o,--output", options->directory, "Folder to write into, made when missing")
      ->type_name("DIR")
      ->required();
  command->add_option("--name", options->name, "Name of the C function and the library");
  add_db_option(*command, options->db);
  add_target_option(*command, options->target);
  add_json_option(*command, options->json);
}

}  // namespace tuner::cli

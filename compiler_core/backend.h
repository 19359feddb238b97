// Backend: one kind of device, as the rest of the system sees it.
//
// Everything that differs from device to device is asked here: whether candidates can be compiled, what code
// looks like, what of it runs on this machine, how an application gets it. Nothing outside back ends,
// templates and target.h asks which kind of device a target is.
//
// A back end is one folder: codegen/ (CPUs, by LLVM), codegen_cuda/ (NVIDIA GPUs, by NVRTC). It consists of
//   a TargetFamily   names of targets and what records of them mean; needs no compiler (target_family.h)
//   a Backend        this page; in the tuner and in the worker's builder process
//   a runner side    how the runner brings an artifact to life: a KernelLoader (runtime/kernel_loader.h), or,
//                    for a device with a driver, a process that holds it
//                    (measure_server/runner/device_host.h)
// docs/backends.md walks through adding one, inside the tree and outside of it (examples/my_backend).
//
// Everything here may be called from any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/stmt.h"
#include "compiler_core/target.h"

namespace tuner {

// A text of generated code: `tuner show --as NAME`.
struct CodeForm {
  std::string_view name;     // "asm"
  std::string_view comment;  // what begins a comment line in it: "#"; empty: it has none
  // Of a file of it in a bundle (`tuner build --emit NAME`), ".s"; empty: not emitted.
  std::string_view ending;
};

// What bounds a kernel on the machine of a target.
struct MachineRoofs {
  struct Level {
    std::string name;  // "L2"
    int64_t capacity_bytes = 0;
    double read_gbps = 0;  // gigabytes a second, of all threads; 0: not measured
  };
  double fma_gflops = 0;      // float32 multiply-adds of all threads of the target; 0: not known
  double peak_gflops = 0;     // of the fastest unit for the type asked for
  std::vector<Level> levels;  // smallest first; the last one is memory
  bool measured = false;      // here and now
};

// A kernel as an application gets it.
struct ShippedKernel {
  // Files of a kernel that stands alone, below the folder of the bundle. `role` is its key in manifest.json.
  // Several kernels may bring the same file, with the same bytes.
  struct File {
    std::string role, path, bytes;
  };
  Manifest manifest;
  std::string object;  // ELF, to be linked with others into one library; empty: the kernel stands alone
  // What the CPU must have, as GCC names them (AArch64: LLVM).
  std::vector<std::string> instruction_sets;
  std::vector<File> files;
  int alignment_bytes = 64;  // of every operand
};

struct ShipRequest {
  std::string function;  // C name of the kernel
  std::string library;   // C name of its bundle: symbols of two bundles must not clash
  std::string about;     // lines for people, in C comments
};

// A library of ours that runs a device's kernels on the host: the device simulated. `program` is the role of
// the file that ship() gives a kernel as; `step`, `costs` and `timeline` are functions as tuner_npu_step(),
// tuner_npu_costs() and tuner_npu_timeline() (compiler_core/npu/tuner_npu.h).
struct HostLibrary {
  std::string_view file, program, step, costs, timeline;
};

// A user's kernel for a device, and the text of its assembler that its binary was made from: whoever reads
// it has seen all of the user's that will run.
struct ListedCode {
  std::string text;
  Artifact artifact;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const TargetFamily& family() const = 0;

  // --- here ---
  // Five questions that are easily mixed up: can code be compiled here (available), which targets is this
  // machine (targets_of_host), is it the machine of a target (hardware_here), may a worker here measure the
  // target (runs_here), may that worker elsewhere (measures).
  //
  // OK, or Unavailable with the reason why this process cannot compile: "no libnvrtc in ...".
  virtual Status available() const = 0;
  // "llvm 22.1.8 codegen 1": part of every record; begins with family().toolchain_word(). It changes when
  // generated code does.
  virtual std::string toolchain() const = 0;
  // Of this Program: of code of a user's it is his compiler's. Errors as compile().
  virtual Result<std::string> toolchain_for(const Program& program) const;
  // A spelling that means this host: "cpu -threads=all", "cuda -arch=native". Empty: `text` is none. Errors
  // say what is missing here.
  virtual Result<std::optional<Target>> resolve_here(std::string_view text) const;
  // InvalidArgument for words of the name that the compiler does not know.
  virtual Status check_words(const Target& target) const;
  // Names of all targets that describe this machine, from the most general to the most specific; none if it
  // has no such device. `device`: the device as the runner's probe calls it (DeviceInfo::fingerprint), for
  // back ends whose device only the runner may touch; else empty.
  virtual std::vector<std::string> targets_of_host(std::string_view device) const = 0;
  // Features of this host that decide what code it runs (see measures()); for a worker to tell.
  virtual std::vector<std::string> host_features() const { return {}; }
  // The hardware fingerprint of this machine if the target stands for it; otherwise empty.
  virtual std::string hardware_here(const Target& target) const = 0;
  // OK when a worker on this machine can measure the target; else InvalidArgument with the reason.
  virtual Status runs_here(const Target& target) const = 0;
  // True if code compiled for target `code` may be measured by a worker that offers target `there` and has
  // these features (host_features()) and `max_threads` CPUs.
  virtual bool measures(const Target& code, const Target& there, std::span<const std::string> features,
                        int max_threads) const;

  // --- code ---
  // Everything below takes targets of this family only. Compiles a scheduled Program, to the same bytes in
  // every process. InvalidConfig: the config cannot be compiled, or a static filter refuses it; Unavailable:
  // there is no compiler here; Internal: a bug of ours. `cache` is a folder where results may be kept between
  // calls; empty: nowhere.
  virtual Result<Artifact> compile(const Program& program, const Target& target,
                                   const std::string& cache = {}) const = 0;
  // Of a user's kernel for a device, for whoever must read it before it runs. Errors as compile();
  // InvalidArgument: its code is of another kind, of which nobody reads a text.
  virtual Result<ListedCode> compile_listed(const Program& program, const Target& target) const;
  // The texts it has of a Program, in the order of a help page.
  virtual std::span<const CodeForm> forms() const = 0;
  // `form`: the name of one of forms(). Errors as compile().
  virtual Result<std::string> text(std::string_view form, const Program& program,
                                   const Target& target) const = 0;
  // The names of its lowering passes, in order; `tuner show --after` takes them. Empty: it shows none.
  virtual std::vector<std::string_view> passes() const { return {}; }
  // The loops behind `last`, one of passes(), and all passes before it; for a GPU one text per kernel. Behind
  // the last pass they are what code is generated from. Errors as compile().
  virtual Result<std::string> text_after(std::string_view last, const Program& program,
                                         const Target& target) const;

  // Compiles a text of the device's own language that is no Program: helpers that run beside kernels.
  // Requires compiles_helpers(). Errors as compile().
  virtual bool compiles_helpers() const { return false; }
  virtual Result<std::string> compile_helper(const std::string& source, const Target& target) const;

  // --- proof and estimates without the device ---
  // Its schedules are lowered to kernels (lower_gpu) that the emulator checks on any host; else a candidate
  // is verified by running it.
  virtual bool emulates() const { return false; }
  // The kernels as the emulator's CPU Program, after the filter of compile(). Requires emulates().
  virtual Result<Artifact> compile_emulated(const Program& program, const Target& target) const;
  // estimate_ns() knows something.
  virtual bool estimates() const { return false; }
  // How long one call of the kernel may take, from the Program alone; to rank candidates before they are
  // compiled. Requires estimates(). Errors as compile().
  virtual Result<double> estimate_ns(const Program& program, const Target& target) const;
  // What one call of the compiled kernel takes at least, from its machine code; 0: nothing is known. To rank
  // candidates once more when they have been compiled.
  virtual double least_ns(const Program& program, const Target& target, const Artifact& artifact) const;
  // What the search's models learn of a candidate beside its Program's features: always as many numbers, also
  // of a Program that it refuses.
  virtual std::vector<float> features(const Program& program, const Target& target) const;
  // roofs() knows something; its kernels then have the form "asm", of which the inner loop is read.
  virtual bool has_roofs() const { return false; }
  // Peaks and bandwidths of the target's machine for products of `dtype`; measures for about 0.2 s where that
  // is this machine, else has `recorded_gflops` only. Empty: !has_roofs().
  virtual std::optional<MachineRoofs> roofs(const Target& target, DType dtype, double recorded_gflops) const;

  // --- shipping ---
  // ship() gives objects that one library may hold many of; else each kernel stands alone.
  virtual bool ships_objects() const { return false; }
  // What runs its kernels as steps of a model; nothing: it is no accelerator of models.
  virtual std::optional<HostLibrary> host_library() const { return std::nullopt; }
  // Errors as compile().
  virtual Result<ShippedKernel> ship(const Program& program, const Target& target,
                                     const ShipRequest& request) const = 0;
  // What is appended to a kernel's name in the C identifiers of its header: {"", "_call"}.
  virtual std::span<const std::string_view> identifier_endings() const = 0;
};

// The listed back ends (backends/backends.cpp), then those that were registered.
const std::vector<const Backend*>& all_backends();
// The back end of the target. The program ends (CHECK) if none of its family is linked in.
const Backend& backend_of(const Target& target);
// Null if none is linked in.
const Backend* find_backend(const TargetFamily& family);

// Static objects of it add a back end that is made outside the tree, before main(). `backend` lives for ever.
class RegisterBackend {
 public:
  explicit RegisterBackend(const Backend& backend);
};

// parse_target(), and the spellings that mean this host resolved: "cpu", "cpu -threads=N" or "-threads=all",
// and "cuda -arch=native", the first GPU (asks the driver; InvalidArgument with the reason where there is
// none). What templates ask of the result follows from its name alone. InvalidArgument for words that the
// compiler does not know, too.
Result<Target> resolve_target(std::string_view text);
// From now on resolve_target() calls `tell` with the advice on each target that has any
// (TargetFamily::advice()), from whatever thread it is called on. For a program that tells its user; null:
// nobody is told.
void on_target_advice(void (*tell)(const std::string& advice));
// The toolchains of all back ends that can compile here.
std::vector<std::string> toolchains_here();

// The arguments of a manifest, from the buffers of a Program.
std::vector<ArgInfo> argument_infos(const std::vector<Buffer>& args);

// The same Program under another entry symbol, its packing under NAME_pack.
Program under_name(Program program, const std::string& name);

}  // namespace tuner

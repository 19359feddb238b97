#include "compiler_core/codegen/emulated_run.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/oracle/oracle.h"
#include "compiler_core/runtime/kernel.h"
#include "compiler_core/runtime/thread_pool.h"

namespace tuner {
namespace {

// Code that runs once: what compiles fast is best.
constexpr CompileOptions kCompileOptions{.as_written = true};

class Stopwatch {
 public:
  // Milliseconds since the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

bool is_output(const Buffer& b) { return b->role == BufferRole::kOutput; }

using Values = std::vector<std::vector<float>>;

// What the caller gives for an argument: for what is packed, the constant.
Buffer given_for(const GpuProgram& program, const Buffer& arg) {
  if (program.packing == nullptr || arg->role != BufferRole::kPacked) return arg;
  const Buffer source = packed_source(*program.packing, arg);
  CHECK(source != nullptr) << program.name << ": the packing entry does not write " << arg->name;
  return source;
}

Status check_inputs(const GpuProgram& program, const Values& inputs) {
  size_t next = 0;
  for (const Buffer& arg : program.args) {
    const Buffer given = given_for(program, arg);
    if (arg->dtype == DType::kFloat64)
      return invalid_argument(program.name, ": ", arg->name, " is ", arg->dtype,
                              "; emulated runs take and give float32");
    if (is_output(arg)) continue;
    if (next >= inputs.size() || static_cast<int64_t>(inputs[next].size()) != given->elements())
      return invalid_argument(program.name, ": ", given->name, ": expected ", given->elements(),
                              " elements, found ",
                              next < inputs.size() ? str(inputs[next].size()) : std::string("no data"));
    ++next;
  }
  if (next == inputs.size()) return Status::ok();
  return invalid_argument(program.name, ": expected ", next, " inputs, found ", inputs.size());
}

// Puts what the packing kernels make of constants in their place among the inputs. `run` runs a program like
// the caller does; faults go to `result`.
template <class Run>
Result<Values> with_packed(const GpuProgram& program, const Values& inputs, EmulatedRun& result,
                           const Run& run) {
  if (program.packing == nullptr) return inputs;
  std::map<Buffer, size_t> places;  // among the inputs, of constants and of what is packed of them
  size_t next = 0;
  for (const Buffer& arg : program.args) {
    if (is_output(arg)) continue;
    places[given_for(program, arg)] = places[arg] = next++;
  }
  Values constants;
  for (const Buffer& arg : program.packing->args)
    if (arg->role == BufferRole::kConstant) constants.push_back(inputs[places.at(arg)]);
  ASSIGN_OR_RETURN(EmulatedRun ahead, run(packing_alone(*program.packing), constants));
  result.faults = std::move(ahead.faults);
  Values all = inputs;
  size_t output = 0;
  for (const Buffer& arg : program.packing->args)
    if (arg->role == BufferRole::kPacked) all[places.at(arg)] = std::move(ahead.outputs[output++]);
  return all;
}

// Sorts the arguments of the emulated Program after a run: those of the GPU Program, then .written, then
// faults. `floats` and `ints` give the elements of argument i.
template <class Floats, class Ints>
void collect(const GpuProgram& gpu, const EmulatedProgram& emulated, const Floats& floats, const Ints& ints,
             EmulatedRun& run) {
  const std::vector<Buffer>& args = emulated.program.args;
  for (size_t i = 0; i < gpu.args.size(); ++i)
    if (is_output(gpu.args[i])) run.outputs.push_back(floats(i));
  for (size_t i = gpu.args.size(); i < args.size(); ++i) {
    const std::vector<int32_t> numbers = ints(i);
    if (i + 1 == args.size()) {
      std::ranges::move(describe_faults(emulated, numbers), std::back_inserter(run.faults));
      return;
    }
    std::vector<uint8_t> written;
    for (int32_t n : numbers) written.push_back(n != 0);
    run.written.push_back(std::move(written));
  }
}

}  // namespace

Result<EmulatedRun> run_emulated(const GpuProgram& gpu, const std::vector<std::vector<float>>& given,
                                 const EmulatorOptions& options) {
  RETURN_IF_ERROR(check_inputs(gpu, given));
  EmulatedRun run;
  ASSIGN_OR_RETURN(const Values inputs,
                   with_packed(gpu, given, run, [&](const GpuProgram& packing, const Values& constants) {
                     return run_emulated(packing, constants, {.check = options.check});
                   }));
  Stopwatch watch;
  ASSIGN_OR_RETURN(const EmulatedProgram emulated, emulate(gpu, options));
  run.emulate_ms = watch.lap();
  ASSIGN_OR_RETURN(const Artifact artifact, compile(emulated.program, host_target(1), kCompileOptions));
  ASSIGN_OR_RETURN(const Kernel kernel, Kernel::load(artifact));
  run.compile_ms = watch.lap();

  std::vector<AlignedBuffer> memory;
  std::vector<void*> args;
  size_t next = 0;
  for (const Buffer& arg : emulated.program.args) {
    memory.emplace_back(arg->bytes());
    args.push_back(memory.back().data());
    if (!is_output(arg)) {
      store_elements(inputs[next].data(), arg->elements(), arg->dtype, memory.back().data());
      ++next;
    }
  }
  ThreadPool pool(1);
  const AlignedBuffer workspace(kernel.workspace_bytes(1));
  const tuner_runtime runtime = pool.runtime(workspace.data());
  watch.lap();
  RETURN_IF_ERROR(kernel.call(args.data(), runtime));
  run.run_ms = watch.lap();
  const auto elements = [&](size_t i) { return static_cast<size_t>(emulated.program.args[i]->elements()); };
  collect(
      gpu, emulated,
      [&](size_t i) {
        const Buffer& arg = emulated.program.args[i];
        const std::vector<double> data = load_elements(memory[i].data(), arg->elements(), arg->dtype);
        return std::vector<float>(data.begin(), data.end());
      },
      [&](size_t i) {
        const int32_t* data = memory[i].as<int32_t>();
        return std::vector<int32_t>(data, data + elements(i));
      },
      run);
  return run;
}

Result<EmulatedRun> interpret_emulated(const GpuProgram& gpu, const std::vector<std::vector<float>>& given,
                                       const EmulatorOptions& options) {
  RETURN_IF_ERROR(check_inputs(gpu, given));
  EmulatedRun run;
  ASSIGN_OR_RETURN(const Values inputs,
                   with_packed(gpu, given, run, [&](const GpuProgram& packing, const Values& constants) {
                     return interpret_emulated(packing, constants, {.check = options.check});
                   }));
  Stopwatch watch;
  ASSIGN_OR_RETURN(const EmulatedProgram emulated, emulate(gpu, options));
  run.emulate_ms = watch.lap();
  std::vector<std::vector<double>> args;
  size_t next = 0;
  for (const Buffer& arg : emulated.program.args) {
    args.emplace_back();
    if (is_output(arg)) continue;
    args.back().assign(inputs[next].begin(), inputs[next].end());
    ++next;
  }
  RETURN_IF_ERROR(interpret(emulated.program, args));
  run.run_ms = watch.lap();
  collect(
      gpu, emulated, [&](size_t i) { return std::vector<float>(args[i].begin(), args[i].end()); },
      [&](size_t i) { return std::vector<int32_t>(args[i].begin(), args[i].end()); }, run);
  return run;
}

Result<Artifact> compile_emulated(const GpuProgram& program, const Target& cpu) {
  ASSIGN_OR_RETURN(EmulatedProgram emulated, emulate(program, {.check = false}));
  if (program.packing != nullptr) {
    ASSIGN_OR_RETURN(EmulatedProgram packing, emulate(*program.packing, {.check = false}));
    emulated.program.packing = std::make_shared<const Program>(std::move(packing.program));
  }
  return compile(emulated.program, cpu, kCompileOptions);
}

}  // namespace tuner

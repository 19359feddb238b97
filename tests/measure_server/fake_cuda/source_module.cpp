#include "tests/measure_server/fake_cuda/source_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/sass/cubin_text.h"
#include "compiler_core/host_cuda/host_build.h"
#include "compiler_core/host_cuda/kernel_text.h"
#include "compiler_core/host_cuda/printed_ptx.h"
#include "tests/measure_server/fake_cuda/fake_settings.h"

namespace fake_cuda {
namespace {

using tuner::HostCudaArgument;
using tuner::HostCudaKernel;
using tuner::str;

constexpr int kIllegalAddress = 700, kLaunchFailed = 719;
constexpr uint64_t kMostOperand = uint64_t{64} << 20;
constexpr size_t kMostKnown = 64;  // results of runs

// Behind the user's text: the types of a kernel's parameters, which nobody told this driver.
constexpr char kTypesOfParameters[] = R"(
template <int, class...> struct FakeTypeAt;
template <class A, class... B> struct FakeTypeAt<0, A, B...> { using type = A; };
template <int n, class A, class... B> struct FakeTypeAt<n, A, B...> : FakeTypeAt<n - 1, B...> {};
template <int n, class... A> typename FakeTypeAt<n, A...>::type fake_parameter_of(void (*)(A...));
template <class A> A fake_value(const unsigned char* bytes) { A a; memcpy(&a, bytes, sizeof a); return a; }
)";

void* host(uint64_t address) { return reinterpret_cast<void*>(address); }

std::string numbers_of(const std::string& bytes) {
  std::string text;
  for (const char c : bytes)
    text += str(text.empty() ? "" : ", ", static_cast<int>(static_cast<unsigned char>(c)));
  return text;
}

class Module final : public SourceModule {
 public:
  Module(std::string_view cubin, std::map<std::string, std::vector<std::string>> fields)
      : fields_(std::move(fields)) {
    if (const auto kernels = tuner::read_cubin(cubin); kernels)
      for (const tuner::CubinKernel& kernel : *kernels) parameters_[kernel.name] = kernel.parameter_bytes;
    if (const auto texts = tuner::sass::cubin_texts(cubin); texts) arch_ = texts->sm;
  }
  int arch() const override { return arch_; }
  const std::vector<int>* parameters(const std::string& symbol) const override {
    const auto found = parameters_.find(symbol);
    return found == parameters_.end() ? nullptr : &found->second;
  }

  int run(const SourceRun& run, const std::function<uint64_t(uint64_t)>& end_of, bool& changed) override {
    changed = false;
    std::vector<std::string> given;
    std::vector<uint64_t> addresses;
    const HostCudaKernel kernel = kernel_of(run, end_of, given, addresses);
    const auto program = program_of(kernel);
    if (program == nullptr) return kLaunchFailed;
    // What it wrote from the same bytes before: a kernel is a function of them.
    const std::vector<std::string>& before = known_[launch_key(kernel) + digest_of(given)];
    if (!before.empty()) {
      put_back(before, addresses, given, changed);
      return 0;
    }
    const auto ran = tuner::run_host_program(*program, kernel, given, std::chrono::seconds(60));
    if (!ran || ran->outputs.size() != addresses.size()) {
      note("TUNER_FAKE_CUDA_FAULTS", ran ? ran->fault() : ran.message());
      return ran ? kIllegalAddress : kLaunchFailed;
    }
    put_back(ran->outputs, addresses, given, changed);
    if (known_.size() > kMostKnown) known_.clear();
    known_[launch_key(kernel) + digest_of(given)] = ran->outputs;
    return 0;
  }

 private:
  static void put_back(const std::vector<std::string>& outputs, const std::vector<uint64_t>& addresses,
                       const std::vector<std::string>& given, bool& changed) {
    for (size_t i = 0; i < addresses.size(); ++i) {
      changed |= outputs[i] != given[i];
      std::memcpy(host(addresses[i]), outputs[i].data(), outputs[i].size());
    }
  }
  static std::string digest_of(const std::vector<std::string>& given) {
    std::string all;
    for (const std::string& bytes : given) all += str(bytes.size(), " ") + bytes;
    return tuner::sha256_hex(all);
  }
  static std::string launch_key(const HostCudaKernel& kernel) {
    std::string key = str(kernel.grid[0], " ", kernel.grid[1], " ", kernel.grid[2], " ", kernel.block[0], " ",
                          kernel.block[1], " ", kernel.block[2], " ", kernel.shared_bytes);
    for (const HostCudaArgument& argument : kernel.arguments)
      key += str("\n", argument.bytes(), argument.value);
    return key;
  }

  const std::string& field(const std::string& key) const {
    static const std::string none;
    const auto found = fields_.find(key);
    return found == fields_.end() || found->second.empty() ? none : found->second.front();
  }

  // Buffers go as far as the next one, or to the end of what was allocated: guards and all.
  HostCudaKernel kernel_of(const SourceRun& run, const std::function<uint64_t(uint64_t)>& end_of,
                           std::vector<std::string>& given, std::vector<uint64_t>& addresses) const {
    const std::string& name = field("name");
    HostCudaKernel kernel{.files = {{name, field("source") + kTypesOfParameters}},
                          .source = name,
                          .function = field("kernel"),
                          .grid = {run.grid[0], run.grid[1], run.grid[2]},
                          .block = {run.block[0], run.block[1], run.block[2]},
                          .shared_bytes = run.shared_bytes};
    const auto options = fields_.find("option");
    if (options != fields_.end())
      for (const std::string& option : options->second)
        if (option.starts_with("-D") || option.starts_with("-U")) kernel.words.push_back(option);
    std::set<uint64_t> begins;
    for (const std::string& bytes : run.parameters)
      if (const uint64_t address = pointer_in(bytes); address != 0 && end_of(address) != 0)
        begins.insert(address);
    for (size_t i = 0; i < run.parameters.size(); ++i) {
      const std::string& bytes = run.parameters[i];
      HostCudaArgument argument{.name = str("parameter_", i),
                                .type = str("decltype(fake_parameter_of<", i, ">(&", kernel.function, "))")};
      const uint64_t address = pointer_in(bytes);
      if (begins.contains(address)) {
        const auto next = begins.upper_bound(address);
        const uint64_t end =
            std::min({end_of(address), address + kMostOperand, next == begins.end() ? ~uint64_t{0} : *next});
        argument.elements = static_cast<int64_t>(end - address);
        argument.element_bytes = 1;
        argument.role = tuner::BufferRole::kInOut;
        given.emplace_back(static_cast<const char*>(host(address)), end - address);
        addresses.push_back(address);
      } else {
        argument.value =
            str("fake_value<", argument.type, ">((const unsigned char[]){", numbers_of(bytes), "})");
      }
      kernel.arguments.push_back(std::move(argument));
    }
    return kernel;
  }
  static uint64_t pointer_in(const std::string& bytes) {
    uint64_t address = 0;
    if (bytes.size() == sizeof address) std::memcpy(&address, bytes.data(), sizeof address);
    return address;
  }

  // Compiled once for each launch and its numbers.
  std::shared_ptr<const tuner::HostCudaProgram> program_of(const HostCudaKernel& kernel) {
    const std::string key = launch_key(kernel);
    std::shared_ptr<const tuner::HostCudaProgram>& kept = programs_[key];
    if (kept != nullptr) return kept;
    auto built = built_before(key);
    if (!built) built = tuner::build_host_cuda(kernel);
    if (!built) {
      note("TUNER_FAKE_CUDA_FAULTS", built.message());
      return nullptr;
    }
    kept = std::make_shared<const tuner::HostCudaProgram>(*std::move(built));
    keep(key, *kept);
    return kept;
  }

  // Each process of a race meets the same kernels: TUNER_FAKE_CUDA_PROGRAMS names a folder where they are
  // kept.
  std::string kept_file(const std::string& key) const {
    const char* const folder = setting("TUNER_FAKE_CUDA_PROGRAMS");
    if (folder == nullptr) return {};
    std::string all = key;
    for (const auto& [name, texts] : fields_)
      for (const std::string& text : texts) all += str("\n", name, " ", text);
    return str(folder, "/", tuner::sha256_hex(all));
  }
  tuner::Result<tuner::HostCudaProgram> built_before(const std::string& key) const {
    const std::string file = kept_file(key);
    std::error_code error;
    if (file.empty() || !std::filesystem::exists(file, error)) return tuner::not_found("not built yet");
    auto folder = tuner::ScratchFolder::make("tuner-host-cuda");
    if (!folder) return folder.status();
    std::string path = (*folder)->file("tuner_program");
    if (!std::filesystem::copy_file(file, path, error)) return tuner::failed(file, ": ", error.message());
    return tuner::HostCudaProgram{*std::move(folder), std::move(path)};
  }
  void keep(const std::string& key, const tuner::HostCudaProgram& program) const {
    const std::string file = kept_file(key), half = str(file, ".", getpid());
    std::error_code error;
    if (file.empty() || std::filesystem::exists(file, error)) return;
    if (std::filesystem::copy_file(program.path, half, error)) std::filesystem::rename(half, file, error);
  }

  std::map<std::string, std::vector<std::string>> fields_;
  std::map<std::string, std::vector<int>> parameters_;
  std::map<std::string, std::shared_ptr<const tuner::HostCudaProgram>> programs_;
  std::map<std::string, std::vector<std::string>> known_;
  int arch_ = 0;
};

// Kernels that codegen_cuda printed: one library of this host per cubin, loaded into this process. Memory of
// the device is memory of the host, so that nothing is copied, and a whole network runs in seconds. Nobody
// looks at each access; the emulator and core_host_cuda do.
class PrintedModule final : public SourceModule {
 public:
  PrintedModule(std::string_view cubin, std::string text) : text_(std::move(text)) {
    if (const auto kernels = tuner::read_cubin(cubin); kernels)
      for (const tuner::CubinKernel& kernel : *kernels) parameters_[kernel.name] = kernel.parameter_bytes;
    if (const auto texts = tuner::sass::cubin_texts(cubin); texts) arch_ = texts->sm;
  }
  int arch() const override { return arch_; }
  const std::vector<int>* parameters(const std::string& symbol) const override {
    const auto found = parameters_.find(symbol);
    return found == parameters_.end() ? nullptr : &found->second;
  }
  int run(const SourceRun& run, const std::function<uint64_t(uint64_t)>&, bool& changed) override {
    using Entry = const char*(const unsigned*, const unsigned*, size_t, const unsigned char* const*);
    changed = true;
    if (library_ == nullptr) library_ = load();
    auto* const entry = library_ == nullptr
                            ? nullptr
                            : reinterpret_cast<Entry*>(dlsym(library_, ("run_" + run.symbol).c_str()));
    if (entry == nullptr) return kLaunchFailed;
    std::vector<const unsigned char*> parameters;
    for (const std::string& bytes : run.parameters)
      parameters.push_back(reinterpret_cast<const unsigned char*>(bytes.data()));
    const char* const fault = entry(run.grid, run.block, run.shared_bytes, parameters.data());
    if (fault == nullptr) return 0;
    note("TUNER_FAKE_CUDA_FAULTS", run.symbol + ": " + fault);
    return kIllegalAddress;
  }

 private:
  std::string host_text() const {
    std::string text = "#include \"host_cuda_shim.h\"\n#include <string.h>\n#include <utility>\n" +
                       tuner::for_host_compiler(tuner::with_host_calls(text_)) + R"(
static const unsigned char* const* fake_parameters;
template <class A> A fake_value(const unsigned char* bytes) { A a; memcpy(&a, bytes, sizeof a); return a; }
template <class... A, size_t... i> void fake_call(void (*f)(A...), std::index_sequence<i...>) {
  f(fake_value<A>(fake_parameters[i])...);
}
template <class... A> void fake_call(void (*f)(A...)) { fake_call(f, std::index_sequence_for<A...>()); }
)";
    for (const auto& [symbol, bytes] : parameters_)
      text += str(
          "extern \"C\" const char* run_", symbol,
          "(const unsigned* grid, const unsigned* block, size_t shared, const unsigned char* const* p) {\n"
          "  fake_parameters = p;\n  return host_cuda::fault_of(grid, block, shared, [] { fake_call(&",
          symbol, "); });\n}\n");
    return text;
  }
  // Kept in the folder of TUNER_FAKE_CUDA_PROGRAMS, if there is one.
  void* load() const {
    const std::string text = host_text();
    const char* const kept = setting("TUNER_FAKE_CUDA_PROGRAMS");
    auto folder = tuner::ScratchFolder::make("tuner-printed-cuda");
    if (!folder) return nullptr;
    const std::string made = (*folder)->file("kernels.so"), source = (*folder)->file("kernels.cpp");
    std::error_code error;
    const auto shim = std::filesystem::last_write_time(TUNER_SHIM_LIBRARY, error).time_since_epoch().count();
    const std::string key = tuner::sha256_hex(str(text, "\n", shim, "\n" TUNER_SHIM_FLAGS));
    std::string path = kept == nullptr ? made : str(kept, "/", key, ".so");
    if (kept == nullptr || !std::filesystem::exists(path, error)) {
      if (const auto written = tuner::replace_file(source, text); !written) return nullptr;
      const std::string log = (*folder)->file("log");
      if (std::system(str(TUNER_CXX " " TUNER_SHIM_FLAGS " ", source, " -o ", made,
                          " " TUNER_SHIM_LIBRARY " > ", log, " 2>&1")
                          .c_str()) != 0) {
        const auto said = tuner::read_file(log, "the compiler's log", 1 << 20);
        note("TUNER_FAKE_CUDA_FAULTS",
             "does not compile: " + (said ? said->substr(0, 4000) : said.message()));
        return nullptr;
      }
      if (kept != nullptr) {
        const std::string half = str(path, ".", getpid());
        std::filesystem::copy_file(made, half, error);
        std::filesystem::rename(half, path, error);
      }
    }
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }

  std::string text_;
  std::map<std::string, std::vector<int>> parameters_;
  int arch_ = 0;
  void* library_ = nullptr;
};

}  // namespace
}  // namespace fake_cuda

fake_cuda::SourceModule* fake_source_module(const char* image) {
  const size_t bytes = fake_cuda::image_bytes(image);
  const char* at = image + bytes;
  for (const char c : fake_cuda::kSourceMark)  // one by one: of another cubin nothing is known to follow
    if (*at++ != c) return nullptr;
  std::map<std::string, std::vector<std::string>> fields;
  for (;;) {
    const char* const line = std::strchr(at, '\n');
    const char* const blank = std::strchr(at, ' ');
    if (line == nullptr || blank == nullptr || blank > line) return nullptr;
    const std::string key(at, blank);
    const size_t length = std::strtoull(blank + 1, nullptr, 10);
    at = line + 1;
    if (key == "end") break;
    fields[key].emplace_back(at, length);
    at += length;
  }
  // Users name their kernel; of ours each function is one.
  const auto named = fields.find("kernel");
  if (named == fields.end() || named->second.front().empty())
    return new fake_cuda::PrintedModule({image, bytes}, fields["source"].front());
  return new fake_cuda::Module({image, bytes}, std::move(fields));
}

// Runs printed CUDA on this host: the text that NVRTC gets is compiled by the C++ compiler that built the
// tests, with host_cuda_shim.h in place of CUDA, loaded, and run. Many programs are one library, so that this
// is quick; compiler_core/host_cuda runs one kernel at a time and looks at each access. It proves the
// printer's text, values and vectors included, without a GPU; tests/compiler_core/emulator_test proves
// lowering the other way round.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen_cuda/cuda.h"
#include "compiler_core/codegen_cuda/expr_text.h"
#include "compiler_core/host_cuda/device/software_tensor_map.h"
#include "compiler_core/host_cuda/kernel_text.h"
#include "compiler_core/host_cuda/printed_ptx.h"

namespace tuner::testing {

// Programs that are compiled together (starting a compiler is dear), then run by number.
class HostCuda {
 public:
  HostCuda() = default;
  HostCuda(const HostCuda&) = delete;
  HostCuda& operator=(const HostCuda&) = delete;
  ~HostCuda() {
    if (handle_ != nullptr) dlclose(handle_);
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  // Returns the number of the program. `from` in its text, as the shim has it, becomes `to`: damage that must
  // be seen.
  int add(const GpuProgram& program, const Target& target, const std::string& from = "",
          const std::string& to = "") {
    std::string text = text_of(program, target);
    if (!from.empty()) {
      EXPECT_NE(text.find(from), std::string::npos) << "no place for damage: " << from;
      replace(text, from, to);
    }
    return add_text(program, text);
  }
  // The same, once for each place in the kernels where `from` stands. Returns their numbers.
  std::vector<int> add_each(const GpuProgram& program, const Target& target, const std::string& from,
                            const std::string& to) {
    const std::string text = text_of(program, target);
    std::vector<int> numbers;
    for (size_t at = text.find(from, text.find("__global__")); at != std::string::npos;
         at = text.find(from, at + from.size()))
      numbers.push_back(add_text(program, std::string(text).replace(at, from.size(), to)));
    return numbers;
  }

  // OK, or why there is nothing to run: no compiler, or text that it does not take (then `is_text` is set).
  Status build(bool* is_text = nullptr) {
    if (access(TUNER_CXX, X_OK) != 0) return unavailable("no C++ compiler at " TUNER_CXX);
    std::string pattern = (std::filesystem::temp_directory_path() / "host_cuda_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) return failed("no temporary folder");
    folder_ = pattern;
    std::ofstream(folder_ + "/kernels.cpp") << "#include \"host_cuda_shim.h\"\n" << text_ << entry();
    const std::string command = str(TUNER_CXX " " TUNER_SHIM_FLAGS " ", folder_, "/kernels.cpp -o ", folder_,
                                    "/kernels.so " TUNER_SHIM_LIBRARY " > ", folder_, "/log 2>&1");
    if (std::system(command.c_str()) != 0) {
      if (is_text != nullptr) *is_text = true;
      std::ifstream log(folder_ + "/log");
      return failed(std::string((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>())
                        .substr(0, 4000));
    }
    handle_ = dlopen((folder_ + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) return failed(dlerror());
    run_ = reinterpret_cast<const char* (*)(int, void**)>(dlsym(handle_, "run"));
    return run_ == nullptr ? failed("no entry") : Status::ok();
  }

  // Runs program `number`. `args` are the numbers of the program's arguments, with the constant in place of
  // what is packed of it; outputs are filled. Buffers begin at multiples of 16 bytes and lie between rims of
  // NaN (of integers: of a pattern), which reads carry into the results and writes must leave alone.
  void run(int number, std::vector<std::vector<float>>& args) const {
    const std::string fault = fault_of(number, args);
    ASSERT_EQ(fault, "") << programs_[static_cast<size_t>(number)].name;
  }
  // The same; returns what is wrong, empty if nothing is.
  std::string fault_of(int number, std::vector<std::vector<float>>& args) const {
    const GpuProgram& p = programs_[static_cast<size_t>(number)];
    EXPECT_EQ(args.size(), p.args.size());
    // What is packed, then the constants behind the workspaces.
    std::vector<std::vector<float>> constants;
    if (p.packing != nullptr)
      for (const Buffer& constant : p.packing->args)
        for (size_t i = 0; i < args.size(); ++i)
          if (p.args[i]->role == BufferRole::kPacked && packed_source(*p.packing, p.args[i]) == constant) {
            constants.push_back(args[i]);
            args[i].assign(static_cast<size_t>(p.args[i]->elements()), unwritten(p.args[i]->dtype));
          }
    std::vector<Storage> storage;
    for (size_t i = 0; i < args.size(); ++i) storage.emplace_back(p.args[i]->dtype, args[i]);
    for (const Buffer& b : p.workspace)
      storage.emplace_back(b->dtype,
                           std::vector<float>(static_cast<size_t>(b->elements()), unwritten(b->dtype)));
    size_t constant = 0;
    if (p.packing != nullptr)
      for (const Buffer& b : p.packing->args)
        if (b->role == BufferRole::kConstant) storage.emplace_back(b->dtype, constants.at(constant++));
    std::vector<void*> pointers;
    // Vectors of bytes begin at multiples of 16 bytes in this library; keep to it whatever it does.
    for (Storage& s : storage) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(s.elements()) % 16, 0u);
      pointers.push_back(s.elements());
    }
    std::vector<EncodedMap> maps = encode_maps(p, storage);
    for (EncodedMap& map : maps) pointers.push_back(&map);
    if (const char* const fault = run_(number, pointers.data()); fault != nullptr) return fault;
    for (size_t i = 0; i < storage.size(); ++i) {
      if (!storage[i].rims_are_whole()) return "bounds: wrote beyond a buffer";
      if (i < args.size()) args[i] = storage[i].numbers();
    }
    return "";
  }

 private:
  static std::string text_of(const GpuProgram& program, const Target& target) {
    std::string text = print_cuda(program, target);
    // Several programs in one file: their kernels stay in namespaces.
    replace(text, "extern \"C\" __global__", "static __global__");
    return for_host_compiler(with_host_calls(std::move(text)));
  }
  int add_text(const GpuProgram& program, const std::string& text) {
    const int number = static_cast<int>(programs_.size());
    text_ += str("namespace program_", number, " {\n", text, "}\n");
    programs_.push_back(program);
    return number;
  }

  // The elements of a buffer between two rims.
  class Storage {
   public:
    Storage(DType dtype, const std::vector<float>& numbers) : dtype_(dtype), count_(numbers.size()) {
      const std::vector<float> nans(kRim / sizeof(float), nan());
      rim_.assign(kRim, 0xa5);
      if (dtype == DType::kFloat32) memcpy(rim_.data(), nans.data(), kRim);
      bytes_ = rim_;
      bytes_.resize(kRim + count_ * static_cast<size_t>(dtype_bytes(dtype)));
      bytes_.insert(bytes_.end(), rim_.begin(), rim_.end());
      store_elements(numbers.data(), static_cast<int64_t>(count_), dtype, elements());
    }
    void* elements() { return bytes_.data() + kRim; }
    bool rims_are_whole() const {
      return std::equal(rim_.begin(), rim_.end(), bytes_.begin()) &&
             std::equal(rim_.rbegin(), rim_.rend(), bytes_.rbegin());
    }
    std::vector<float> numbers() const {
      const std::vector<double> values =
          load_elements(bytes_.data() + kRim, static_cast<int64_t>(count_), dtype_);
      return {values.begin(), values.end()};
    }

   private:
    static constexpr size_t kRim = 256;  // bytes, before and behind
    DType dtype_;
    size_t count_;
    std::vector<unsigned char> rim_, bytes_;
  };

  struct alignas(64) EncodedMap {
    unsigned char bytes[128];
  };
  // The buffers of a run, in the order of run()'s storage.
  static std::vector<Buffer> buffers_of(const GpuProgram& p) {
    std::vector<Buffer> all = p.args;
    all.insert(all.end(), p.workspace.begin(), p.workspace.end());
    if (p.packing != nullptr)
      std::copy_if(p.packing->args.begin(), p.packing->args.end(), std::back_inserter(all),
                   [](const Buffer& b) { return b->role == BufferRole::kConstant; });
    return all;
  }
  static std::vector<GpuKernel> kernels_of(const GpuProgram& p) {
    std::vector<GpuKernel> kernels;
    if (p.packing != nullptr) kernels = p.packing->kernels;
    kernels.insert(kernels.end(), p.kernels.begin(), p.kernels.end());
    return kernels;
  }
  // The tensor maps of all kernels, encoded as a driver would.
  static std::vector<EncodedMap> encode_maps(const GpuProgram& p, std::vector<Storage>& storage) {
    const std::vector<Buffer> all = buffers_of(p);
    std::vector<EncodedMap> maps;
    for (const GpuKernel& kernel : kernels_of(p))
      for (const KernelTensorMap& m : kernel.tensor_maps) {
        const auto place = std::find(all.begin(), all.end(), m.buffer) - all.begin();
        const std::vector<uint64_t> extents(m.map.extents.begin(), m.map.extents.end()),
            strides(m.map.strides.begin(), m.map.strides.end());
        const std::vector<uint32_t> box(m.map.box.begin(), m.map.box.end()), steps(m.map.rank(), 1);
        const int type = m.map.dtype == DType::kBFloat16 ? 9 : m.map.dtype == DType::kFloat16 ? 6 : 7;
        const int swizzle = m.map.swizzle_bytes == 128  ? 3
                            : m.map.swizzle_bytes == 64 ? 2
                                                        : m.map.swizzle_bytes / 32;
        const char* why = nullptr;
        const int code = software_map::encode_tiled(
            &maps.emplace_back(), type, static_cast<uint32_t>(m.map.rank()),
            storage[static_cast<size_t>(place)].elements(), extents.data(), strides.data(), box.data(),
            steps.data(), 0, swizzle, 0, m.map.fills_nan ? 1 : 0, &why);
        EXPECT_EQ(code, 0) << p.name << ": the map of " << m.buffer->name << " is refused: " << why;
      }
    return maps;
  }

  static void replace(std::string& text, std::string_view what, std::string_view by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
      text.replace(at, what.size(), by);
  }
  static float nan() { return std::numeric_limits<float>::quiet_NaN(); }
  static float unwritten(DType t) { return is_float(t) ? nan() : 77; }

  // extern "C" const char* run(int program, void** pointers): its kernels, one after the other. Null, or what
  // is wrong.
  std::string entry() const {
    std::string text =
        "static void** pointers;\nextern \"C\" const char* run(int program, void** given) {\n"
        "  pointers = given;\n";
    for (size_t n = 0; n < programs_.size(); ++n) {
      const GpuProgram& p = programs_[n];
      const std::vector<Buffer> all = buffers_of(p);
      size_t next_map = all.size();  // behind the buffers in `pointers`
      text += str("if (program == ", n, ") {\n");
      for (const GpuKernel& k : kernels_of(p)) {
        std::string arguments;
        for (const Buffer& b : k.params)
          arguments += str(arguments.empty() ? "(" : ", (", cuda::c_type(b->dtype), "*)pointers[",
                           std::find(all.begin(), all.end(), b) - all.begin(), "]");
        for (size_t m = 0; m < k.tensor_maps.size(); ++m)
          arguments += str(arguments.empty() ? "" : ", ", "*(program_", n, "::CUtensorMap*)pointers[",
                           next_map++, "]");
        const auto triple = [](const std::array<int64_t, 3>& a) {
          return str("{", a[0], ", ", a[1], ", ", a[2], "}");
        };
        text += str("{ const unsigned grid[] = ", triple(k.grid), ", block[] = ", triple(k.block),
                    ";\n  if (const char* f = host_cuda::fault_of(grid, block, ", k.shared_bytes,
                    ", [] { program_", n, "::", k.name, "(", arguments, "); })) return f; }\n");
      }
      text += "return nullptr; }\n";
    }
    return text + "return \"no such program\"; }\n";
  }

  std::vector<GpuProgram> programs_;
  std::string text_, folder_;
  void* handle_ = nullptr;
  const char* (*run_)(int, void**) = nullptr;
};

}  // namespace tuner::testing

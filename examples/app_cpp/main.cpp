// Runs every kernel of a library, knowing nothing of them but the table in its header: on random data, from
// eight threads at once, alone and on a pool. All must give the same answer, bit for bit. With a folder as
// argument, every operand is written there (KERNEL.ARGUMENT, raw), so that answers can be checked elsewhere.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "app_kernels.h"
#include "tuner_pool.h"

namespace {

// Memory as kernels want it: aligned to 64 bytes.
class Buffer {
 public:
  explicit Buffer(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes)), data_(std::aligned_alloc(64, (bytes_ + 127) / 64 * 64)) {
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0xff, bytes_);  // NaN: what a kernel leaves out will show
  }
  void* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  bool operator==(const Buffer& other) const {
    return bytes_ == other.bytes_ && std::memcmp(data(), other.data(), bytes_) == 0;
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  size_t bytes_;
  std::unique_ptr<void, Free> data_;
};

uint32_t next(uint32_t& seed) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

// Random elements: small integers, or fractions from -0.5 to 0.5.
void fill(const Buffer& buffer, const std::string& dtype, uint32_t seed) {
  if (dtype == "float32") {
    for (size_t i = 0; i < buffer.bytes() / 4; ++i)
      static_cast<float*>(buffer.data())[i] = static_cast<float>(next(seed)) / (1 << 24) - 0.5f;
  } else if (dtype == "bfloat16") {  // the upper half of a float
    for (size_t i = 0; i < buffer.bytes() / 2; ++i) {
      const float value = static_cast<float>(next(seed)) / (1 << 24) - 0.5f;
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      static_cast<uint16_t*>(buffer.data())[i] = static_cast<uint16_t>(bits >> 16);
    }
  } else if (dtype == "float16") {  // of one exponent: from 0.25 to 0.5, and their negatives
    for (size_t i = 0; i < buffer.bytes() / 2; ++i)
      static_cast<uint16_t*>(buffer.data())[i] = static_cast<uint16_t>(0x3400 | (next(seed) & 0x83ff));
  } else if (dtype == "int32") {
    for (size_t i = 0; i < buffer.bytes() / 4; ++i)
      static_cast<int32_t*>(buffer.data())[i] = static_cast<int32_t>(next(seed) % 200) - 100;
  } else {  // int8, uint8
    for (size_t i = 0; i < buffer.bytes(); ++i)
      static_cast<uint8_t*>(buffer.data())[i] = static_cast<uint8_t>(next(seed));
  }
}

// One kernel with inputs that all callers share.
class Subject {
 public:
  explicit Subject(const tuner_kernel& kernel) : kernel_(kernel) {
    // What is packed comes from the packing function, everything else from outside.
    std::vector<void*> pack_args;
    for (int32_t i = 0; i < kernel.num_pack_args; ++i) {
      const tuner_arg& arg = kernel.pack_args[i];
      pack_args.push_back(add(arg, static_cast<uint32_t>(100 + i)));
      if (arg.role == std::string("packed")) packed_.push_back(pack_args.back());
    }
    const tuner_runtime serial = tuner_serial_runtime(nullptr);
    if (kernel.pack != nullptr && kernel.pack(pack_args.data(), &serial) != 0)
      throw std::runtime_error("packing failed");
    size_t next_packed = 0;
    for (int32_t i = 0; i < kernel.num_args; ++i) {
      const tuner_arg& arg = kernel.args[i];
      if (arg.role == std::string("packed"))
        args_.push_back(packed_[next_packed++]);
      else if (arg.role != std::string("output") && arg.role != std::string("inout"))
        args_.push_back(add(arg, static_cast<uint32_t>(200 + i)));
    }
  }

  // The output is the last argument. One that is in and out starts with zeros.
  Buffer run(tuner_runtime runtime) const {
    const Buffer workspace(tuner_workspace_bytes(&kernel_, runtime.num_threads));
    const tuner_arg& last = kernel_.args[kernel_.num_args - 1];
    Buffer out(last.bytes);
    if (last.role == std::string("inout")) std::memset(out.data(), 0, out.bytes());
    std::vector<void*> args = args_;
    args.push_back(out.data());
    runtime.workspace = workspace.data();
    if (kernel_.entry(args.data(), &runtime) != 0) throw std::runtime_error("the kernel refused its runtime");
    return out;
  }

  void write(const std::string& folder, const Buffer& out) const {
    for (size_t i = 0; i < names_.size(); ++i) write(folder, names_[i], buffers_[i]);
    write(folder, kernel_.args[kernel_.num_args - 1].name, out);
  }

 private:
  void* add(const tuner_arg& arg, uint32_t seed) {
    names_.emplace_back(arg.name);
    buffers_.emplace_back(arg.bytes);
    if (arg.role != std::string("packed")) fill(buffers_.back(), arg.dtype, seed);
    return buffers_.back().data();
  }
  void write(const std::string& folder, const std::string& name, const Buffer& buffer) const {
    std::ofstream(folder + "/" + kernel_.name + "." + name, std::ios::binary)
        .write(static_cast<const char*>(buffer.data()), static_cast<std::streamsize>(buffer.bytes()));
  }

  const tuner_kernel& kernel_;
  std::vector<std::string> names_;  // of what lies in buffers_
  std::vector<Buffer> buffers_;
  std::vector<void*> packed_, args_;
};

struct PoolDeleter {
  void operator()(tuner_pool* pool) const { tuner_pool_destroy(pool); }
};

// Whether eight threads at once, half of them on the pool, find what one thread found.
bool agree_from_8_threads(const Subject& subject, const Buffer& expected, tuner_pool* pool) {
  int right[8] = {};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t)
    callers.emplace_back([&, t] {
      right[t] = 1;
      for (int i = 0; i < 20; ++i)
        right[t] &= subject.run(t % 2 == 0 ? tuner_serial_runtime(nullptr)
                                           : tuner_pool_runtime(pool, nullptr)) == expected;
    });
  for (std::thread& caller : callers) caller.join();
  for (const int r : right)
    if (r == 0) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  int32_t count = 0;
  const tuner_kernel* kernels = app_kernels_kernels(&count);
  const std::unique_ptr<tuner_pool, PoolDeleter> pool(tuner_pool_create(4));
  if (!pool) throw std::runtime_error("the system gives no threads");
  int failures = 0, ran = 0;
  for (int32_t i = 0; i < count; ++i) {
    const tuner_kernel& kernel = kernels[i];
    if (kernel.runs_here() == 0) {
      std::printf("%-10s left out: built for %s\n", kernel.name, kernel.target);
      continue;
    }
    const Subject subject(kernel);
    const Buffer expected = subject.run(tuner_serial_runtime(nullptr));
    const bool same = agree_from_8_threads(subject, expected, pool.get());
    std::printf("%-10s %s: %s\n", kernel.name, same ? "the same from 8 threads" : "DIFFERS", kernel.workload);
    if (argc > 1) subject.write(argv[1], expected);
    failures += same ? 0 : 1;
    ++ran;
  }
  return failures == 0 && ran > 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "app_cpp: %s\n", error.what());
  return 1;
}

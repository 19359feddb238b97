// Kernels as users bring them: y[i] = FACTOR * x[i] / FACTOR, in a job file's words.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "templates/source_kernel/source_document.h"
#include "templates/source_kernel/source_kernel_json.h"

namespace tuner::testing {

inline constexpr char kScaleSource[] =
    "void scale(const float* x, float* y, long n) {\n"
    "  for (long i = 0; i < n; ++i) y[i] = FACTOR * x[i] / FACTOR;\n"
    "}\n";

struct OwnSource {
  std::string function = "scale", compiler = "cc", before;  // before: of the text, as a comment or a macro
  int n = 64;
};

inline nlohmann::json own_entry(const OwnSource& of) {
  return {
      {"op", "kernel"},
      {"source", "scale.c"},
      {"function", of.function},
      {"compiler", of.compiler},
      {"sizes", {{"n", of.n}}},
      {"arguments",
       {{{"name", "x"}, {"type", "float32"}, {"shape", {"n"}}},
        {{"name", "y"}, {"type", "float32"}, {"shape", {"n"}}, {"role", "out"}},
        {{"name", "n"}, {"type", "int64"}, {"value", "n"}}}},
      {"knobs", {{"FACTOR", {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}}, {"REPEAT", {1, 2, 3, 4, 5, 6, 7, 8}}}},
      {"flags", {"-O2"}}};
}

inline std::string own_text(const OwnSource& of) {
  std::string text = kScaleSource;
  return of.before + text.replace(text.find("scale"), 5, of.function);
}

// A program that prints (10 - TILE) ms, built by make if it is `made`.
inline nlohmann::json own_program_entry(bool made) {
  nlohmann::json entry = {{"op", "kernel"},
                          {"language", "command"},
                          {"files", {"scale.c"}},
                          {"run", {"./scale.c", "{TILE}"}},
                          {"result", {{"pattern", "time: {number} ms"}, {"unit", "ms"}}},
                          {"knobs", {{"TILE", {1, 2, 3, 4, 5, 6}}}}};
  if (made) entry["build"] = {"make", "scale.c"};
  return entry;
}
inline constexpr char kProgramText[] = "#!/bin/sh\nsleep 0.02\necho time: $((10 - $1)) ms\n";

// The kernel of an entry whose one file has that text; this process does not know it.
inline std::shared_ptr<const SourceKernel> own_kernel(const nlohmann::json& entry, const std::string& text) {
  struct OneFile final : JobFolder {
    std::string text;
    bool has(const std::string& name) const override { return name == "scale.c"; }
    Result<std::string> read(const std::string& name, size_t) const override {
      return has(name) ? Result<std::string>(text) : not_found(name);
    }
  };
  OneFile folder;
  folder.text = text;
  json_input::Reader in(entry, "job.json: ");
  in.get("op");
  std::shared_ptr<const SourceKernel> kernel = read_source_kernel(in, folder);
  const Status read = in.finish();
  CHECK(read.is_ok() && kernel != nullptr) << read.message();
  return kernel;
}

inline std::shared_ptr<const SourceKernel> own_kernel(const OwnSource& of) {
  return own_kernel(own_entry(of), own_text(of));
}

inline std::string own_document(const OwnSource& of) { return source_document(*own_kernel(of)); }

// The key of its task, as text: nobody is asked for the kernel.
inline std::string own_key(const OwnSource& of) {
  return str("v1 kernel ", of.function, " n=", of.n, " x=float32[", of.n, "] y=out:float32[", of.n,
             "] n=int64:", of.n, " source=", source_digest(*own_kernel(of)));
}

}  // namespace tuner::testing

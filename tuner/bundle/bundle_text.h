// What people are told of a bundle.
#pragma once

#include <string>
#include <vector>

#include "tuner/bundle/bundle.h"

namespace tuner {

// Lines: each kernel with its time, then the files of `directory` that a program needs.
std::string bundle_text(const std::string& directory, const std::vector<BundleKernel>& kernels,
                        const std::vector<BundleFile>& files);

// The commands that tune what stands in job files: submit takes one file. `plain`: as manifest.json says it,
// which must not depend on where this program lies and which database it reads. `target`: in place of that of
// the files; empty: theirs.
std::string submit_commands(const std::vector<std::string>& files, bool plain, const std::string& target);
// Those for the kernels that run default configs: variants need one for each target.
std::string submit_commands(const std::vector<std::string>& files, const std::vector<BundleKernel>& kernels);

}  // namespace tuner

// What an application gets of a kernel that was chosen: the kernel, or its default config where the first use
// on this machine shows that it is slower or wrong.
#pragma once

#include <memory>

#include "deploy/runtime/function.h"
#include "deploy/runtime/say_once.h"
#include "deploy/runtime/source.h"
#include "deploy/runtime/verdicts.h"

namespace tuner::runtime {

// Races the choice of `source` against its default, unless the verdict is kept. What is told once, in one
// line: that the default is used instead, and why; that a locked kernel is slower (it stays: all who obey the
// file run it); and why a kernel could not be verified (it is used). Failed: the kernel does not fit the
// workload.
Result<std::shared_ptr<const Function>> verified_function(const Workload& workload, Choice choice,
                                                          const Source& source, const Verdicts& verdicts,
                                                          Pools& pools, const MessageSink& message);

}  // namespace tuner::runtime

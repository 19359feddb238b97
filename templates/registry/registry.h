// All templates: those of this repository, then those that a program registers. What can be asked of the list is declared
// in templates/schedule_template.h.
#pragma once

#include "templates/cpu/cpu_templates.h"
#include "templates/cuda/cuda_templates.h"

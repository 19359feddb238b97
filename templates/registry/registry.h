// The list of all templates: those of this repository, then those that a program registers.
// templates/schedule_template.h declares the questions that can be asked of it.
#pragma once

#include "templates/cpu/cpu_templates.h"
#include "templates/cuda/cuda_templates.h"

// Purpose: the algorithm that LQCD_SOLVER_<method> names. Owns nothing else.
#pragma once

#if defined(LQCD_SOLVER_cg)
#include "solver_cg.hpp"
#elif defined(LQCD_SOLVER_bicgstab)
#include "solver_bicgstab.hpp"
#else
#error "no algorithm is defined"
#endif

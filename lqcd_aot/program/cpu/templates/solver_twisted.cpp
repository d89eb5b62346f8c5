// Purpose: artifact of twisted_cg and twisted_bicgstab: a solver of the full twisted system.
// Owns: the choice of operator and algorithm. Refuses to know: everything else.
#include "twisted_operators.hpp"
#include "solver_full.hpp"
#include "solver_method.hpp"
#include "solver_entry.hpp"

// Purpose: artifact of wilson_cg and wilson_bicgstab: a solver of the full Wilson system.
// Owns: the choice of operator and algorithm. Refuses to know: everything else.
#include "wilson_operators.hpp"
#include "solver_full.hpp"
#include "solver_method.hpp"
#include "solver_entry.hpp"

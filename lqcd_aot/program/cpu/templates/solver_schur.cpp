// Purpose: artifact of wilson_schur_cg and wilson_schur_bicgstab: a solver of the even-odd Wilson system.
// Owns: the choice of operator and algorithm. Refuses to know: everything else.
#include "schur_operators.hpp"
#include "solver_even_odd.hpp"
#include "solver_method.hpp"
#include "solver_entry.hpp"
